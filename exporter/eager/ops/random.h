// Random tensors. The numbers follow from a seed and a position in the stream (Philox 4x32-10:
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A state tensor i64[2]
// {seed, offset} holds both, and every draw advances it. So the numbers do not depend on threads,
// and a traced program keeps the stream as a state. Functions without a generator argument draw
// from the default generator. The numbers differ from PyTorch's. Errors: a parameter outside its
// range, a dtype that cannot hold the numbers.
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
  /// Restarts the stream with this seed.
  void seed(int64_t seed);
  /// i64[2] {seed, offset}
  Tensor& state() { return state_; }

 private:
  Tensor state_;
};

/// The generator of functions that are not given one. Its state is called "random".
Generator& default_generator();
/// Restarts the default generator with this seed.
void manual_seed(int64_t seed);

// ---- tensors of a size ----

/// Uniform in [0, 1), of a floating dtype.
Tensor rand(const Dims& size, DType dtype = DType::f32, Generator& generator = default_generator(),
            Location here = Location::current());
/// Normal with mean 0 and standard deviation 1, of a floating dtype.
Tensor randn(const Dims& size, DType dtype = DType::f32, Generator& generator = default_generator(),
             Location here = Location::current());
/// Uniform among the integers in [low, high).
inline Tensor randint(Dim low, Dim high, const Dims& size, DType dtype = DType::i64,
                      Location here = Location::current()) {
  return call<ops::randint_low>(here, low, high, size, dtype);
}
/// Uniform among the integers in [0, high).
inline Tensor randint(Dim high, const Dims& size, DType dtype = DType::i64,
                      Location here = Location::current()) {
  return call<ops::randint>(here, high, size, dtype);
}
/// Normal with this mean and standard deviation.
Tensor normal(double mean, double std, const Dims& size, DType dtype = DType::f32,
              Location here = Location::current());
/// The numbers 0 … n - 1 in random order: (n).
inline Tensor randperm(Dim n, DType dtype = DType::i64, Location here = Location::current()) {
  return call<ops::randperm>(here, n, dtype);
}

// ---- with the sizes of a tensor, and its dtype unless another is given ----

/// Uniform in [0, 1).
inline Tensor rand_like(const Tensor& self, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::rand_like>(here, self, dtype);
}
/// Normal with mean 0 and standard deviation 1.
inline Tensor randn_like(const Tensor& self, std::optional<DType> dtype = {},
                         Location here = Location::current()) {
  return call<ops::randn_like>(here, self, dtype);
}
/// Uniform among the integers in [low, high).
inline Tensor randint_like(const Tensor& self, Dim low, Dim high, std::optional<DType> dtype = {},
                           Location here = Location::current()) {
  return call<ops::randint_like_low_dtype>(here, self, low, high, dtype);
}
/// Uniform among the integers in [0, high).
inline Tensor randint_like(const Tensor& self, Dim high, std::optional<DType> dtype = {},
                           Location here = Location::current()) {
  return call<ops::randint_like>(here, self, high, dtype);
}
/// 1 with the probability in self, which lies in [0, 1]; else 0.
inline Tensor bernoulli(const Tensor& self, Location here = Location::current()) {
  return call<ops::bernoulli>(here, self);
}
/// 1 with probability p, else 0.
inline Tensor bernoulli(const Tensor& self, double p, Location here = Location::current()) {
  return call<ops::bernoulli_p>(here, self, p);
}
/// Poisson-distributed whole numbers, with a mean for each element: finite and 0 or more.
inline Tensor poisson(const Tensor& self, Location here = Location::current()) {
  return call<ops::poisson>(here, self);
}
/// Normal with a mean for each element.
inline Tensor normal(const Tensor& mean, double std = 1, Location here = Location::current()) {
  return call<ops::normal_Tensor_float>(here, mean, std);
}
/// Normal with a mean and a standard deviation for each element; they broadcast.
inline Tensor normal(const Tensor& mean, const Tensor& std, Location here = Location::current()) {
  return call<ops::normal_Tensor_Tensor>(here, mean, std);
}
/// Normal with a standard deviation for each element.
inline Tensor normal(double mean, const Tensor& std, Location here = Location::current()) {
  return call<ops::normal_float_Tensor>(here, mean, std);
}
/// Positions (i64) in rows of weights, drawn with probabilities in proportion to the weights: (n)
/// -> (num_samples), (rows, n) -> (rows, num_samples). Without `replacement`, a row has each
/// position at most once.
inline Tensor multinomial(const Tensor& self, Dim num_samples, bool replacement = false,
                          Location here = Location::current()) {
  return call<ops::multinomial>(here, self, num_samples, replacement);
}

// ---- dropout: p lies in [0, 1]; with p = 0 or without `train`, the result is `input` itself ----

/// Each element becomes zero with probability p; the others are divided by 1 - p. Srivastava et
/// al., JMLR 15, 2014.
Tensor dropout(const Tensor& input, double p, bool train = true,
               Generator& generator = default_generator(), Location here = Location::current());

/// The same for whole channels of (batch, channels, …).
inline Tensor feature_dropout(const Tensor& input, double p, bool train = true,
                              Location here = Location::current()) {
  return call<ops::feature_dropout>(here, input, p, train);
}
/// Dropout for use after selu: it keeps mean and variance. Klambauer et al., arXiv:1706.02515.
inline Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool train = true,
                            Location here = Location::current()) {
  return call<ops::alpha_dropout>(here, input, p, train);
}

/// The same for whole channels of (batch, channels, …).
inline Tensor feature_alpha_dropout(const Tensor& input, double p = 0.5, bool train = true,
                                    Location here = Location::current()) {
  return call<ops::feature_alpha_dropout>(here, input, p, train);
}
/// A leaky relu. While training, the slope of each element is drawn from [lower, upper); otherwise
/// the slope is the mean of both.
inline Tensor rrelu(const Tensor& self, Scalar lower = 0.125, Scalar upper = 1.0 / 3,
                    bool training = false, Location here = Location::current()) {
  return call<ops::rrelu>(here, self, lower, upper, training);
}

// ---- numbers of a distribution, with the sizes and the dtype of self ---- Functions whose names
// end in `_` write into self. nn/init.h has `uniform_` and `normal_`.

/// Uniform in [from, to).
inline Tensor uniform(const Tensor& self, double from = 0, double to = 1,
                      Location here = Location::current()) {
  return call<ops::uniform>(here, self, from, to);
}
/// Exponential with the rate lambd > 0.
inline Tensor exponential(const Tensor& self, double lambd = 1,
                          Location here = Location::current()) {
  return call<ops::exponential>(here, self, lambd);
}
/// The number of tries up to the first success. Each succeeds with probability p in (0, 1).
inline Tensor geometric(const Tensor& self, double p, Location here = Location::current()) {
  return call<ops::geometric>(here, self, p);
}
/// Normal with this mean and standard deviation.
inline Tensor normal_functional(const Tensor& self, double mean = 0, double std = 1,
                                Location here = Location::current()) {
  return call<ops::normal_functional>(here, self, mean, std);
}
/// exp of a normal number with this mean and standard deviation.
inline Tensor log_normal(const Tensor& self, double mean = 1, double std = 2,
                         Location here = Location::current()) {
  return call<ops::log_normal>(here, self, mean, std);
}
/// Cauchy's distribution around `median`, with half width sigma.
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
