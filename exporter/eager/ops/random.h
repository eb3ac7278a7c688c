// Random tensors. The stream is a function of a seed and a position (Philox 4x32-10). A state
// tensor i64[2] {seed, offset} holds both, and every draw advances it. So the stream does not
// depend on threads, and a traced program keeps it as a state. Functions without a generator
// argument draw from the default generator. Philox: Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3",
// SC 2011. The numbers differ from PyTorch's. Errors: a parameter outside its range, a dtype that
// cannot hold the numbers.
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

// ---- of a size ----

/// Even in [0, 1), of a floating dtype.
Tensor rand(const Dims& size, DType dtype = DType::f32, Generator& generator = default_generator(),
            Location here = Location::current());
/// Normal, mean 0 and deviation 1, of a floating dtype.
Tensor randn(const Dims& size, DType dtype = DType::f32, Generator& generator = default_generator(),
             Location here = Location::current());
/// Even among the integers in [low, high).
inline Tensor randint(Dim low, Dim high, const Dims& size, DType dtype = DType::i64,
                      Location here = Location::current()) {
  return call<ops::randint_low>(here, low, high, size, dtype);
}
/// Even among the integers in [0, high).
inline Tensor randint(Dim high, const Dims& size, DType dtype = DType::i64,
                      Location here = Location::current()) {
  return call<ops::randint>(here, high, size, dtype);
}
/// Normal, with this mean and deviation.
Tensor normal(double mean, double std, const Dims& size, DType dtype = DType::f32,
              Location here = Location::current());
/// The numbers 0 … n - 1 in random order: (n).
inline Tensor randperm(Dim n, DType dtype = DType::i64, Location here = Location::current()) {
  return call<ops::randperm>(here, n, dtype);
}

// ---- with the sizes of a tensor, and its dtype unless another is given ----

/// Even in [0, 1).
inline Tensor rand_like(const Tensor& self, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::rand_like>(here, self, dtype);
}
/// Normal, mean 0 and deviation 1.
inline Tensor randn_like(const Tensor& self, std::optional<DType> dtype = {},
                         Location here = Location::current()) {
  return call<ops::randn_like>(here, self, dtype);
}
/// Even among the integers in [low, high).
inline Tensor randint_like(const Tensor& self, Dim low, Dim high, std::optional<DType> dtype = {},
                           Location here = Location::current()) {
  return call<ops::randint_like_low_dtype>(here, self, low, high, dtype);
}
/// Even among the integers in [0, high).
inline Tensor randint_like(const Tensor& self, Dim high, std::optional<DType> dtype = {},
                           Location here = Location::current()) {
  return call<ops::randint_like>(here, self, high, dtype);
}
/// 1 with probability self, which is in [0, 1], else 0.
inline Tensor bernoulli(const Tensor& self, Location here = Location::current()) {
  return call<ops::bernoulli>(here, self);
}
/// 1 with probability p, else 0.
inline Tensor bernoulli(const Tensor& self, double p, Location here = Location::current()) {
  return call<ops::bernoulli_p>(here, self, p);
}
/// Normal, with a mean for each element.
inline Tensor normal(const Tensor& mean, double std = 1, Location here = Location::current()) {
  return call<ops::normal_Tensor_float>(here, mean, std);
}
/// Normal, with a mean and a deviation for each element; they broadcast.
inline Tensor normal(const Tensor& mean, const Tensor& std, Location here = Location::current()) {
  return call<ops::normal_Tensor_Tensor>(here, mean, std);
}
/// Normal, with a deviation for each element.
inline Tensor normal(double mean, const Tensor& std, Location here = Location::current()) {
  return call<ops::normal_float_Tensor>(here, mean, std);
}
/// Positions (i64) in a row of weights, drawn with probabilities in proportion to the weights: (n)
/// -> (num_samples), (rows, n) -> (rows, num_samples). Without `replacement`, the positions of a
/// row all differ.
inline Tensor multinomial(const Tensor& self, Dim num_samples, bool replacement = false,
                          Location here = Location::current()) {
  return call<ops::multinomial>(here, self, num_samples, replacement);
}

// ---- dropout: p in [0, 1]; without `train`, or with p = 0, `input` itself ----

/// While training, each element becomes zero with probability p; the others are divided by 1 - p.
/// Otherwise `input` itself. Srivastava et al., JMLR 15, 2014.
Tensor dropout(const Tensor& input, double p, bool train = true,
               Generator& generator = default_generator(), Location here = Location::current());

/// The same of whole channels of (batch, channels, …).
inline Tensor feature_dropout(const Tensor& input, double p, bool train = true,
                              Location here = Location::current()) {
  return call<ops::feature_dropout>(here, input, p, train);
}
/// Dropout after selu: mean and variance stay. Klambauer et al., arXiv:1706.02515.
inline Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool train = true,
                            Location here = Location::current()) {
  return call<ops::alpha_dropout>(here, input, p, train);
}

/// The same of whole channels of (batch, channels, …).
inline Tensor feature_alpha_dropout(const Tensor& input, double p = 0.5, bool train = true,
                                    Location here = Location::current()) {
  return call<ops::feature_alpha_dropout>(here, input, p, train);
}
/// A leaky relu. While training, its slope is drawn for each element; otherwise it is the mean of
/// `lower` and `upper`.
inline Tensor rrelu(const Tensor& self, Scalar lower = 0.125, Scalar upper = 1.0 / 3,
                    bool training = false, Location here = Location::current()) {
  return call<ops::rrelu>(here, self, lower, upper, training);
}

// ---- of a distribution, with the sizes and the dtype of self ----
// Names ending in `_` write self; nn/init.h has `uniform_` and `normal_`.

/// Even in [from, to).
inline Tensor uniform(const Tensor& self, double from = 0, double to = 1,
                      Location here = Location::current()) {
  return call<ops::uniform>(here, self, from, to);
}
/// Exponential, with the rate lambd > 0.
inline Tensor exponential(const Tensor& self, double lambd = 1,
                          Location here = Location::current()) {
  return call<ops::exponential>(here, self, lambd);
}
/// The number of tries up to the first success, of probability p in (0, 1).
inline Tensor geometric(const Tensor& self, double p, Location here = Location::current()) {
  return call<ops::geometric>(here, self, p);
}
/// Normal, with this mean and deviation.
inline Tensor normal_functional(const Tensor& self, double mean = 0, double std = 1,
                                Location here = Location::current()) {
  return call<ops::normal_functional>(here, self, mean, std);
}
/// exp of a normal number with this mean and deviation.
inline Tensor log_normal(const Tensor& self, double mean = 1, double std = 2,
                         Location here = Location::current()) {
  return call<ops::log_normal>(here, self, mean, std);
}
/// Of Cauchy's distribution about `median`, of half width sigma.
inline Tensor cauchy(const Tensor& self, double median = 0, double sigma = 1,
                     Location here = Location::current()) {
  return call<ops::cauchy>(here, self, median, sigma);
}
/// `bernoulli` in place.
inline Tensor& bernoulli_(Tensor& self, double p = 0.5, Location here = Location::current()) {
  return call_in_place<ops::bernoulli_p>(here, self, p);
}
/// `exponential` in place.
inline Tensor& exponential_(Tensor& self, double lambd = 1, Location here = Location::current()) {
  return call_in_place<ops::exponential>(here, self, lambd);
}
/// `geometric` in place.
inline Tensor& geometric_(Tensor& self, double p, Location here = Location::current()) {
  return call_in_place<ops::geometric>(here, self, p);
}
/// `log_normal` in place.
inline Tensor& log_normal_(Tensor& self, double mean = 1, double std = 2,
                           Location here = Location::current()) {
  return call_in_place<ops::log_normal>(here, self, mean, std);
}
/// `cauchy` in place.
inline Tensor& cauchy_(Tensor& self, double median = 0, double sigma = 1,
                       Location here = Location::current()) {
  return call_in_place<ops::cauchy>(here, self, median, sigma);
}

}  // namespace taper::eager
