// The usual signatures of elementwise functions, so that a function is one documented line.
#pragma once
#include "taper/exporter/eager/call.h"

/// name(self)
#define TAPER_EAGER_UNARY(name)                                                 \
  inline Tensor name(const Tensor& self, Location here = Location::current()) { \
    return call<ops::name>(here, self);                                         \
  }
/// name_(self): the same in place
#define TAPER_EAGER_UNARY_IN_PLACE(name)                                      \
  inline Tensor& name##_(Tensor& self, Location here = Location::current()) { \
    return call_in_place<ops::name>(here, self);                              \
  }
/// name(self, other)
#define TAPER_EAGER_BINARY(name)                              \
  inline Tensor name(const Tensor& self, const Tensor& other, \
                     Location here = Location::current()) {   \
    return call<ops::name>(here, self, other);                \
  }
/// name(self, other), where other is a tensor or a number
#define TAPER_EAGER_TENSOR_OR_NUMBER(name)                                                    \
  inline Tensor name(const Tensor& self, const Tensor& other,                                 \
                     Location here = Location::current()) {                                   \
    return call<ops::name##_Tensor>(here, self, other);                                       \
  }                                                                                           \
  inline Tensor name(const Tensor& self, Scalar other, Location here = Location::current()) { \
    return call<ops::name##_Scalar>(here, self, other);                                       \
  }
/// a op b, where b is a tensor or a number. Both tensors are Operands: C++20 also tries `b == a`,
/// and two different parameter types would make `a == b` ambiguous.
#define TAPER_EAGER_OPERATOR(op, name, ...)                                     \
  inline Tensor operator op(Operand a, Operand b) {                             \
    return call<ops::name##_Tensor>(a.here, a.tensor, b.tensor, ##__VA_ARGS__); \
  }                                                                             \
  inline Tensor operator op(Operand a, Scalar b) {                              \
    return call<ops::name##_Scalar>(a.here, a.tensor, b, ##__VA_ARGS__);        \
  }
