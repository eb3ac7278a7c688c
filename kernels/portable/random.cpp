// Random tensors. `state` is {seed, offset}: the key of the stream, and the number of its first
// unused group of four words. An element of f32, f16 or bf16 takes one word, one of f64 two. The
// next state's offset comes after the last group used.
#include "taper/kernels/shapes/random.h"

#include <cmath>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/philox.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {
namespace {

/// Elements that one group of words gives.
template <class T>
inline constexpr index_t group_size = sizeof(T) == 8 ? 2 : 4;
/// Elements that are computed together.
template <class T>
inline constexpr index_t batch = group_size<T>* PhiloxGroups::count;

struct Uniform {
  DType dtype;
  // Takes as many bits as the significand of the dtype holds. With more bits, a number could round
  // up to 1.
  void operator()(const PhiloxGroups& groups, float* y) const {
    if (dtype == DType::f32)
      fill<24>(groups, y);
    else if (dtype == DType::f16)
      fill<11>(groups, y);
    else
      fill<8>(groups, y);
  }
  template <int bits>
  static void fill(const PhiloxGroups& groups, float* y) {
    const auto& w = groups.word;
    TAPER_LANES
    for (int g = 0; g < PhiloxGroups::count; ++g)
      for (int k = 0; k < 4; ++k) y[4 * g + k] = uniform<bits>(w[k][g]);
  }
  void operator()(const PhiloxGroups& groups, double* y) const {
    const auto& w = groups.word;
    TAPER_LANES
    for (int g = 0; g < PhiloxGroups::count; ++g)
      y[2 * g] = uniform53(w[0][g], w[1][g]), y[2 * g + 1] = uniform53(w[2][g], w[3][g]);
  }
};
/// Two normal numbers from two uniform ones: G. Box, M. Muller, "A note on the generation of random
/// normal deviates", 1958.
struct Normal {
  DType dtype;
  static float sine(float x, int quarters) { return math::sine(x, quarters); }
  static double sine(double x, int quarters) { return quarters == 0 ? std::sin(x) : std::cos(x); }
  template <class T>
  static void pair(T u, T v, T* y) {
    const T radius = std::sqrt(T(-2) * math::log(u)), angle = T(6.28318530717958647693) * v;
    y[0] = radius * sine(angle, 1), y[1] = radius * sine(angle, 0);
  }
  // 1 - u lies in (0, 1], where the logarithm is finite.
  void operator()(const PhiloxGroups& groups, float* y) const {
    const auto& w = groups.word;
    for (int k = 0; k < 4; k += 2) {
      TAPER_LANES
      for (int g = 0; g < PhiloxGroups::count; ++g)
        pair(1.0f - uniform<24>(w[k][g]), uniform<24>(w[k + 1][g]), y + 4 * g + k);
    }
  }
  void operator()(const PhiloxGroups& groups, double* y) const {
    const auto& w = groups.word;
    for (int g = 0; g < PhiloxGroups::count; ++g)
      pair(1.0 - uniform53(w[0][g], w[1][g]), uniform53(w[2][g], w[3][g]), y + 2 * g);
  }
};

template <class T, class F>
void generate(Context& context, const PhiloxStream& stream, index_t count, const F& body) {
  static_assert(pointwise_grain % batch<T> == 0);
  parallel_for(context.threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    const index_t begin = task * pointwise_grain,
                  end = begin + pointwise_grain < count ? begin + pointwise_grain : count;
    for (index_t at = begin; at < end; at += batch<T>)
      body(at, end - at < batch<T> ? end - at : batch<T>, stream.groups(at / group_size<T>));
  });
}

template <class T>
void advance(const View<const int64_t>& state, index_t count, const View<int64_t>& next) {
  const int64_t seed = state.data()[0], offset = state.data()[1];
  next.data()[0] = seed;
  next.data()[1] = wrapping_add<int64_t>(offset, (count + group_size<T> - 1) / group_size<T>);
}

template <class Distribution, class E>
Error random(Context& context, View<const int64_t> state, Span<const int64_t>, Maybe<DType>,
             View<E> out, View<int64_t> next_state) {
  using T = Compute<E>;
  const Distribution distribution{out.dtype()};
  const Store store = storer(internal::computed_dtype<E>(*out.ref), out.dtype());
  const int bytes = size_bytes(out.dtype());
  generate<T>(context, PhiloxStream(state.data()[0], state.data()[1]), out.numel(),
              [&](index_t at, index_t n, const PhiloxGroups& groups) {
                T values[batch<T>];
                distribution(groups, values);
                store(values, n, static_cast<char*>(out.ref->data) + at * bytes);
              });
  advance<T>(state, out.numel(), next_state);
  return Error::ok;
}

// x * 0 with probability p, else x / (1 - p). As in PyTorch, a dropped NaN or infinity becomes NaN.
template <class E>
Error native_dropout(Context& context, View<const int64_t> state, AnyView<const E> input, double p,
                     View<E> out, View<bool> mask, View<int64_t> next_state) {
  using T = Compute<E>;
  const Walk walk = Walk::of(input.shape());
  const DType computes = internal::computed_dtype<E>(*input.ref);
  const Source source(*input.ref, walk, computes);
  const Store store = storer(computes, out.dtype());
  const int bytes = size_bytes(out.dtype());
  const T scale = p < 1 ? static_cast<T>(1 / (1 - p)) : T(0);
  const double threshold = p * 4294967296.0;  // a word below it drops the element
  generate<float>(context, PhiloxStream(state.data()[0], state.data()[1]), out.numel(),
                  [&](index_t at, index_t n, const PhiloxGroups& groups) {
                    T buffer[batch<float>], values[batch<float>];
                    const T* x = static_cast<const T*>(read_block(source, at, n, buffer));
                    for (index_t k = 0; k < n; ++k) {
                      const bool keeps =
                          static_cast<double>(groups.word[k % 4][k / 4]) >= threshold;
                      mask.data()[at + k] = keeps;
                      values[k] = x[k] * (keeps ? scale : T(0));
                    }
                    store(values, n, static_cast<char*>(out.ref->data) + at * bytes);
                  });
  advance<float>(state, out.numel(), next_state);
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_rand, f32, random<Uniform, float>)
TAPER_KERNEL(taper_rand, f64, random<Uniform, double>)
TAPER_KERNEL(taper_rand, small_float, random<Uniform, SmallFloat>)
TAPER_KERNEL(taper_randn, f32, random<Normal, float>)
TAPER_KERNEL(taper_randn, f64, random<Normal, double>)
TAPER_KERNEL(taper_randn, small_float, random<Normal, SmallFloat>)
TAPER_KERNEL(taper_native_dropout, f32, native_dropout<float>)
TAPER_KERNEL(taper_native_dropout, f64, native_dropout<double>)
TAPER_KERNEL(taper_native_dropout, small_float, native_dropout<SmallFloat>)

}  // namespace taper::portable
