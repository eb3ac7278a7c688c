// Poisson-distributed numbers. Element i draws from group offset + i of the stream, as often as it
// needs: the third word of the counter counts its draws. So every element takes one group of the
// stream, and no element depends on another one.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/gamma_functions.h"
#include "taper/kernels/portable/philox.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/shapes/random.h"

namespace taper::portable {
namespace {

/// The random numbers of one element.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t group)
      : key0_(static_cast<uint32_t>(seed)),
        key1_(static_cast<uint32_t>(seed >> 32)),
        counter_{{static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32), 0, 0}} {}
  /// A number in [0, 1) with 53 random bits.
  double next() {
    if (used_ == 4) {
      words_ = philox(counter_, key0_, key1_);
      ++counter_.word[2], used_ = 0;
    }
    used_ += 2;
    return uniform53(words_.word[used_ - 2], words_.word[used_ - 1]);
  }

 private:
  uint32_t key0_, key1_;
  PhiloxWords counter_, words_{};
  int used_ = 4;
};

/// The number of factors that a product of uniform numbers needs to fall to exp(-mean), without the
/// last: D. Knuth, "The Art of Computer Programming", volume 2, 3.4.1. For means below 10, more
/// than `most` never happens.
double poisson_by_products(double mean, Draws& draws) {
  constexpr int most = 1000;
  const double limit = std::exp(-mean);
  int k = 0;
  for (double product = draws.next(); product > limit && k < most; ++k) product *= draws.next();
  return k;
}

/// For means of 10 and more: W. Hörmann, "The transformed rejection method for generating Poisson
/// random variables", 1993, algorithm PTRS. At least three of five tries succeed.
double poisson_by_rejection(double mean, Draws& draws) {
  constexpr int most_tries = 1000;
  const double b = 0.931 + 2.53 * std::sqrt(mean), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
  for (int i = 0; i < most_tries; ++i) {
    const double u = draws.next() - 0.5, v = draws.next();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= inside) return k;
    if (!(k >= 0) || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= math::log_poisson(k, mean)) return k;
  }
  return std::floor(mean);
}

double poisson_number(double mean, Draws draws) {
  if (mean == 0) return 0;
  return mean < 10 ? poisson_by_products(mean, draws) : poisson_by_rejection(mean, draws);
}

template <class T>
Error poisson(Context& context, View<const int64_t> state, View<const T> self, View<T> out,
              View<int64_t> next_state) {
  const index_t count = self.numel();
  const T* means = self.data();
  for (index_t i = 0; i < count; ++i)
    if (!(means[i] >= 0 && std::isfinite(means[i])))
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("element {} of self is no mean: a finite number, 0 or more"),
                          i);
  const int64_t seed = state.data()[0], offset = state.data()[1];
  constexpr index_t grain = 4096;
  parallel_for(context.threads, (count + grain - 1) / grain, [&](index_t task) {
    const index_t begin = task * grain, end = begin + grain < count ? begin + grain : count;
    for (index_t i = begin; i < end; ++i) {
      const Draws draws(static_cast<uint64_t>(seed),
                        static_cast<uint64_t>(offset) + static_cast<uint64_t>(i));
      out.data()[i] = static_cast<T>(poisson_number(double{means[i]}, draws));
    }
  });
  next_state.data()[0] = seed;
  next_state.data()[1] = wrapping_add<int64_t>(offset, count);
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_poisson, f32, poisson<float>)
TAPER_KERNEL(taper_poisson, f64, poisson<double>)

}  // namespace taper::portable
