// Rules of random numbers. `state` is i64[2] {seed, offset}; the last result is the advanced state.
#pragma once
#include "taper/kernels/shapes/creation.h"

namespace taper {
namespace internal {

template <class D>
bool is_random_state(Facts<D>& facts, const TensorType<D>& state, TensorType<D>& next_state) {
  next_state.dtype = DType::i64, next_state.rank = 1, next_state.sizes[0] = D(2);
  return facts.require(state.dtype == DType::i64 && state.rank == 1,
                       TAPER_TEXT("state must be an i64 tensor of 2 elements")) &&
         facts.equal(state[0], D(2), TAPER_TEXT("state has {} elements, needs {}"));
}
struct RandomRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& state, DimList<D> size,
                    Maybe<DType> dtype, TensorType<D>& out, TensorType<D>& next_state) {
    out.dtype = dtype ? *dtype : DType::f32;
    return is_random_state(facts, state, next_state) && listed_sizes(facts, size, out) &&
           facts.require(is_floating(out.dtype), TAPER_TEXT("needs a floating dtype"));
  }
};

}  // namespace internal

template <>
struct Rule<ops::taper_rand> : internal::RandomRule {};
template <>
struct Rule<ops::taper_randn> : internal::RandomRule {};
template <>
struct Rule<ops::taper_native_dropout> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& state, const TensorType<D>& input,
                    double p, TensorType<D>& out, TensorType<D>& mask, TensorType<D>& next_state) {
    out.like(input);
    mask.like(input, DType::boolean);
    return internal::is_random_state(facts, state, next_state) &&
           facts.require(p >= 0 && p <= 1, TAPER_TEXT("p must be in [0, 1]")) &&
           facts.require(is_floating(input.dtype), TAPER_TEXT("needs a floating dtype"));
  }
};
/// A number for each mean in self.
template <>
struct Rule<ops::taper_poisson> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& state, const TensorType<D>& self,
                    TensorType<D>& out, TensorType<D>& next_state) {
    out.like(self);
    return internal::is_random_state(facts, state, next_state) &&
           facts.require(is_floating(self.dtype), TAPER_TEXT("needs a floating dtype"));
  }
};

}  // namespace taper
