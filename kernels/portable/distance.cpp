// Distances between vectors: the p-norm of their difference. lanes.h says how it is summed.
#include "taper/kernels/shapes/distance.h"

#include <cmath>
#include <type_traits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/matrices.h"

namespace taper::portable {
namespace {

/// NaN if x is NaN, else 0.
template <class T>
T nan_of(T x) {
  return x == x ? T(0) : x;
}

// The distance of two vectors of n elements: one function for each kind of p.
template <class T>
struct Differing {
  T operator()(index_t n, const T* a, const T* b) const {
    return sum_of<T>(n, [=](index_t i) {
      const T d = a[i] - b[i];
      return (d != T(0) ? T(1) : T(0)) + nan_of(d);
    });
  }
};
template <class T>
struct Manhattan {
  T operator()(index_t n, const T* a, const T* b) const {
    return sum_of<T>(n, [=](index_t i) { return std::fabs(a[i] - b[i]); });
  }
};
template <class T>
struct Euclidean {
  T operator()(index_t n, const T* a, const T* b) const {
    return std::sqrt(sum_of<T>(n, [=](index_t i) {
      const T d = a[i] - b[i];
      return d * d;
    }));
  }
};
template <class Distance>
inline constexpr bool is_euclidean = false;
template <class T>
inline constexpr bool is_euclidean<Euclidean<T>> = true;
/// The largest of the differences that are not NaN. PyTorch's cdist ignores NaN; its pdist does
/// not.
template <class T>
struct LargestNumber {
  T operator()(index_t n, const T* a, const T* b) const {
    T lane[lane_count] = {};
    index_t i = 0;
    for (; i + lane_count <= n; i += lane_count)
      for (int l = 0; l < lane_count; ++l) {
        const T d = std::fabs(a[i + l] - b[i + l]);
        lane[l] = d > lane[l] ? d : lane[l];
      }
    for (int l = 0; i < n; ++i, ++l) {
      const T d = std::fabs(a[i] - b[i]);
      lane[l] = d > lane[l] ? d : lane[l];
    }
    for (int l = 1; l < lane_count; ++l) lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return lane[0];
  }
};
/// NaN is looked for apart, because the larger of two numbers is one instruction.
template <class T>
struct Largest {
  T operator()(index_t n, const T* a, const T* b) const {
    return LargestNumber<T>()(n, a, b) +
           sum_of<T>(n, [=](index_t i) { return nan_of(a[i] - b[i]); });
  }
};
template <class T>
struct Minkowski {
  T p;
  T operator()(index_t n, const T* a, const T* b) const {
    return std::pow(sum_of<T>(n, [=](index_t i) { return std::pow(std::fabs(a[i] - b[i]), p); }),
                    T(1) / p);
  }
};

/// `Infinite` is the function for p = infinity.
template <class T, class Infinite, class Visitor>
void with_distance(double p, const Visitor& visitor) {
  if (p == 0)
    visitor(Differing<T>());
  else if (p == 1)
    visitor(Manhattan<T>());
  else if (p == 2)
    visitor(Euclidean<T>());
  else if (std::isinf(p))
    visitor(Infinite());
  else
    visitor(Minkowski<T>{static_cast<T>(p)});
}

/// Calls row(length) with the length of the vectors. For Euclidean distances of points in the plane
/// or in space, the length is a compile-time constant, so that the few terms need no loop.
template <class Distance, class Row>
void with_length(const Distance&, index_t length, const Row& row) {
  if constexpr (is_euclidean<Distance>) {
    if (length == 2) return row(std::integral_constant<index_t, 2>());
    if (length == 3) return row(std::integral_constant<index_t, 3>());
  }
  row(length);
}

/// Where the matrices of each batch begin, in the order of the result's batches.
struct Batches {
  Walk x1, x2;
};

template <class T>
Error prepare_cdist(Context&, Batches& plan, View<const T> x1, View<const T> x2, double,
                    Maybe<int64_t>, View<T> out) {
  plan = {walk_of_matrices(x1.shape(), out.shape()), walk_of_matrices(x2.shape(), out.shape())};
  return Error::ok;
}
template <class T>
Error cdist(Context& context, const Batches& plan, View<const T> x1, View<const T> x2, double p,
            Maybe<int64_t>, View<T> out) {
  const index_t m = x1.size(-1), rows = out.size(-2), columns = out.size(-1);
  if (out.numel() == 0) return Error::ok;
  with_distance<T, LargestNumber<T>>(p, [&](const auto& distance) {
    parallel_lines(context.threads, out.numel() / columns, columns * (m + 1), [&](index_t line) {
      const index_t batch = line / rows;
      const T* a = x1.data() + plan.x1.offset_of(batch) + line % rows * m;
      const T* b = x2.data() + plan.x2.offset_of(batch);
      T* y = out.data() + line * columns;
      with_length(distance, m, [=, &distance](auto n) {
        TAPER_INDEPENDENT_ITERATIONS
        for (index_t j = 0; j < columns; ++j) y[j] = distance(n, a, b + j * n);
      });
    });
  });
  return Error::ok;
}

template <class T>
Error pdist(Context& context, View<const T> self, double p, View<T> out) {
  const index_t n = self.size(0), m = self.size(1);
  if (n < 2) return Error::ok;
  with_distance<T, Largest<T>>(p, [&](const auto& distance) {
    parallel_for(context.threads, n - 1, [&](index_t i) {
      const T* x = self.data() + i * m;
      T* y = out.data() + i * (2 * n - i - 1) / 2;
      for (index_t j = 1; j < n - i; ++j) y[j - 1] = distance(m, x, x + j * m);
    });
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_cdist_forward, f32, prepare_cdist<float>, cdist<float>)
TAPER_KERNEL(_cdist_forward, f64, prepare_cdist<double>, cdist<double>)
TAPER_KERNEL(_pdist_forward, f32, pdist<float>)
TAPER_KERNEL(_pdist_forward, f64, pdist<double>)

}  // namespace taper::portable
