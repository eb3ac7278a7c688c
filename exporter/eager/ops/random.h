// Random tensors. The stream is a function of a seed and a position (Philox 4x32-10), held in a
// state tensor i64[2] {seed, offset} that every draw advances: it does not depend on threads, and a
// traced function carries it as a state of its program.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// A stream of random numbers.
class Generator {
 public:
  explicit Generator(int64_t seed = 0);
  /// Starts the stream of `seed` anew.
  void seed(int64_t seed);
  /// i64[2] {seed, offset}
  Tensor& state() { return state_; }

 private:
  Tensor state_;
};

/// The generator of functions that are not given one. Its state is called "random".
Generator& default_generator();
/// Starts the default generator anew.
void manual_seed(int64_t seed);

/// Even in [0, 1).
Tensor rand(const Dims& size, DType dtype = DType::f32, Generator& generator = default_generator(),
            Location here = Location::current());
/// Normal, mean 0 and deviation 1.
Tensor randn(const Dims& size, DType dtype = DType::f32, Generator& generator = default_generator(),
             Location here = Location::current());
inline Tensor rand_like(const Tensor& self, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::rand_like>(here, self, dtype);
}
inline Tensor randn_like(const Tensor& self, std::optional<DType> dtype = {},
                         Location here = Location::current()) {
  return call<ops::randn_like>(here, self, dtype);
}
/// One with the probability that self gives, else zero.
inline Tensor bernoulli(const Tensor& self, Location here = Location::current()) {
  return call<ops::bernoulli>(here, self);
}
/// Positions (i64) in a row of weights, drawn with probabilities in proportion to them.
inline Tensor multinomial(const Tensor& self, Dim num_samples, bool replacement = false,
                          Location here = Location::current()) {
  return call<ops::multinomial>(here, self, num_samples, replacement);
}
/// The numbers 0 … n - 1 in random order.
inline Tensor randperm(Dim n, DType dtype = DType::i64, Location here = Location::current()) {
  return call<ops::randperm>(here, n, dtype);
}
/// While training, elements become zero with probability p, others are divided by 1 - p; else
/// `input` itself.
Tensor dropout(const Tensor& input, double p, bool train = true,
               Generator& generator = default_generator(), Location here = Location::current());

/// The same of whole channels of (batch, channels, …).
inline Tensor feature_dropout(const Tensor& input, double p, bool train = true,
                              Location here = Location::current()) {
  return call<ops::feature_dropout>(here, input, p, train);
}

}  // namespace taper::eager
