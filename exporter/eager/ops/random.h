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

/// With the sizes and the dtype of self: even in [from, to), …
inline Tensor uniform(const Tensor& self, double from = 0, double to = 1,
                      Location here = Location::current()) {
  return call<ops::uniform>(here, self, from, to);
}
/// … of the exponential distribution with the rate lambd …
inline Tensor exponential(const Tensor& self, double lambd = 1,
                          Location here = Location::current()) {
  return call<ops::exponential>(here, self, lambd);
}
/// … the number of tries up to the first success …
inline Tensor geometric(const Tensor& self, double p, Location here = Location::current()) {
  return call<ops::geometric>(here, self, p);
}
/// … and integers in [low, high).
inline Tensor randint_like(const Tensor& self, Dim low, Dim high, std::optional<DType> dtype = {},
                           Location here = Location::current()) {
  return call<ops::randint_like_low_dtype>(here, self, low, high, dtype);
}
/// A leaky relu whose slope is drawn for each element while training, else the middle of both.
inline Tensor rrelu(const Tensor& self, Scalar lower = 0.125, Scalar upper = 1.0 / 3,
                    bool training = false, Location here = Location::current()) {
  return call<ops::rrelu>(here, self, lower, upper, training);
}
/// Dropout after selu: mean and variance stay.
inline Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool train = true,
                            Location here = Location::current()) {
  return call<ops::alpha_dropout>(here, input, p, train);
}

}  // namespace taper::eager
