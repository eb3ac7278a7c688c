// The arguments of a call without their C++ types, for dispatch, the tape and the tracer. A Boxed
// does not own what it points to.
#pragma once
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/kernels/rule.h"

namespace taper::eager {

/// One argument. A tensor is a pointer. An integer is a `Dim`, because it may be symbolic.
struct Boxed {
  Kind kind = Kind::none;  ///< of a Scalar: integer, real or boolean
  bool list = false, present = false;
  bool symbolic = false;  ///< of an integer list: `dims`, not `integers`
  uint32_t size = 0;      ///< elements of a list, bytes of a string
  union {
    const Tensor* tensors;    ///< `Tensor` (one) and lists; an undefined one is absent
    Dim dim;                  ///< integer; also boolean (0, 1) and dtype
    const Dim* dims;          ///< SymInt[]
    const int64_t* integers;  ///< int[], bool[]
    double real;
    const double* reals;
    const char* text;
  };

  Boxed() : dim(0) {}
  const Tensor& tensor() const { return *tensors; }
  int64_t integer() const { return dim.value(); }
  Scalar scalar() const {
    if (kind == Kind::real) return Scalar(real);
    if (kind == Kind::boolean) return Scalar(dim.value() != 0);
    return Scalar(dim.value());
  }

  static Boxed absent(Kind kind, bool list = false) {
    Boxed b;
    b.kind = kind, b.list = list;
    if (kind == Kind::tensor) b.tensors = nullptr;
    return b;
  }
  static Boxed of(const Tensor& t) {
    Boxed b;
    b.kind = Kind::tensor, b.present = t.defined(), b.size = 1, b.tensors = &t;
    return b;
  }
  static Boxed of(const std::vector<Tensor>& list) {
    Boxed b;
    b.kind = Kind::tensor, b.list = b.present = true, b.size = static_cast<uint32_t>(list.size()),
    b.tensors = list.data();
    return b;
  }
  static Boxed of(Dim d) {
    Boxed b;
    b.kind = Kind::integer, b.present = true, b.dim = d;
    return b;
  }
  static Boxed of(bool v) {
    Boxed b = of(Dim(int64_t{v}));
    b.kind = Kind::boolean;
    return b;
  }
  static Boxed of(DType d) {
    Boxed b = of(Dim(static_cast<int64_t>(d)));
    b.kind = Kind::dtype;
    return b;
  }
  static Boxed of(double v) {
    Boxed b;
    b.kind = Kind::real, b.present = true, b.real = v;
    return b;
  }
  static Boxed of(Scalar s) {
    return s.is_real ? of(s.real) : s.is_bool ? of(s.integer != 0) : of(Dim(s.integer));
  }
  static Boxed of(std::string_view s) {
    Boxed b;
    b.kind = Kind::string, b.present = true, b.size = static_cast<uint32_t>(s.size()),
    b.text = s.data();
    return b;
  }
  static Boxed of(const Dims& list) {
    Boxed b;
    b.kind = Kind::integer, b.list = b.present = b.symbolic = true,
    b.size = static_cast<uint32_t>(list.size()), b.dims = list.data();
    return b;
  }
  static Boxed of(const Ints& list) {
    Boxed b;
    b.kind = Kind::integer, b.list = b.present = true, b.size = static_cast<uint32_t>(list.size()),
    b.integers = list.data();
    return b;
  }
  static Boxed of(const std::vector<double>& list) {
    Boxed b;
    b.kind = Kind::real, b.list = b.present = true, b.size = static_cast<uint32_t>(list.size()),
    b.reals = list.data();
    return b;
  }
};

}  // namespace taper::eager

namespace taper {

/// How rules over symbolic extents read boxed arguments.
template <>
struct RuleReader<Dim> {
  using Argument = eager::Boxed;
  using List = DimList<Dim>;

  struct OptionalType {
    TensorType<Dim> type;
    operator const TensorType<Dim>*() const { return type.present ? &type : nullptr; }
  };
  template <class P>
  static auto read(const eager::Boxed& b) {
    if constexpr (std::is_same_v<P, TensorType<Dim>>)
      return type_of(b.tensor());
    else if constexpr (std::is_same_v<P, const TensorType<Dim>*>)
      return OptionalType{b.present ? type_of(b.tensor()) : absent()};
    else if constexpr (std::is_same_v<P, TypeList<Dim>>)
      return TypeList<Dim>{b.tensors, b.size, [](const void* source, index_t i) {
                             return type_of(static_cast<const eager::Tensor*>(source)[i]);
                           }};
    else if constexpr (std::is_same_v<P, Dim>)
      return b.dim;
    else if constexpr (std::is_same_v<P, Number<Dim>>)
      return number(b);
    else if constexpr (std::is_same_v<P, Maybe<Dim>>)
      return Maybe<Dim>{b.present ? b.dim : Dim(0), b.present};
    else if constexpr (std::is_same_v<P, List>)
      return dims(b);
    else if constexpr (std::is_same_v<P, Maybe<List>>)
      return Maybe<List>{b.present ? dims(b) : List{}, b.present};
    else
      return plain(b, static_cast<P*>(nullptr));
  }

 private:
  static TensorType<Dim> absent() {
    TensorType<Dim> t;
    t.present = false;
    return t;
  }
  static TensorType<Dim> type_of(const eager::Tensor& t) {
    return t.defined() ? t.type() : absent();
  }
  static Number<Dim> number(const eager::Boxed& b) {
    if (b.kind == Kind::real) return {true, false, 0, b.real};
    return {false, b.kind == Kind::boolean, b.dim, 0};
  }
  static List dims(const eager::Boxed& b) {
    return {b.dims, b.size,
            [](const void* source, index_t i) { return static_cast<const Dim*>(source)[i]; }};
  }
  static int64_t plain(const eager::Boxed& b, int64_t*) { return b.integer(); }
  static bool plain(const eager::Boxed& b, bool*) { return b.integer() != 0; }
  static double plain(const eager::Boxed& b, double*) { return b.scalar().to<double>(); }
  static Scalar plain(const eager::Boxed& b, Scalar*) {
    return b.kind == Kind::integer && !b.dim.is_constant() ? Scalar(int64_t{1}) : b.scalar();
  }
  static DType plain(const eager::Boxed& b, DType*) { return static_cast<DType>(b.integer()); }
  static std::string_view plain(const eager::Boxed& b, std::string_view*) {
    return {b.text, b.size};
  }
  static Span<const int64_t> plain(const eager::Boxed& b, Span<const int64_t>*) {
    return {b.integers, static_cast<index_t>(b.size)};
  }
  static Span<const double> plain(const eager::Boxed& b, Span<const double>*) {
    return {b.reals, static_cast<index_t>(b.size)};
  }
  template <class T>
  static Maybe<T> plain(const eager::Boxed& b, Maybe<T>*) {
    if (!b.present) return {};
    return {plain(b, static_cast<T*>(nullptr)), true};
  }
};

}  // namespace taper
