#include "taper/exporter/quantize/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace taper::quantize {
namespace {

/// A square matrix in double.
class Square {
 public:
  explicit Square(size_t n) : n_(n), elements_(n * n) {}
  double* operator[](size_t row) { return elements_.data() + row * n_; }
  const double* operator[](size_t row) const { return elements_.data() + row * n_; }
  size_t size() const { return n_; }

 private:
  size_t n_;
  std::vector<double> elements_;
};

/// The upper triangle R with a = R Rᵀ, in the place of `a`'s upper triangle; column after column
/// from the last one (Cholesky's method, backwards).
void factorize(Square& a) {
  const size_t n = a.size();
  std::vector<double> column(n);
  for (size_t j = n; j-- > 0;) {
    const double root = std::sqrt(std::max(a[j][j], 1e-30));
    a[j][j] = root;
    for (size_t i = 0; i < j; ++i) column[i] = a[i][j] /= root;
    for (size_t i = 0; i < j; ++i) {
      double* row = a[i];
      const double factor = column[i];
      for (size_t k = i; k < j; ++k) row[k] -= factor * column[k];
    }
  }
}

/// The inverse of an upper triangle, from the last row up.
Square inverse_of(const Square& r) {
  const size_t n = r.size();
  Square u(n);
  for (size_t i = n; i-- > 0;) {
    double* row = u[i];
    for (size_t j = i + 1; j < n; ++j) {
      const double factor = r[i][j];
      const double* below = u[j];
      for (size_t k = j; k < n; ++k) row[k] -= factor * below[k];
    }
    const double diagonal = r[i][i];
    for (size_t k = i + 1; k < n; ++k) row[k] /= diagonal;
    row[i] = 1 / diagonal;
  }
  return u;
}

/// Rounds the matrix a row at a time. `w` is in the order in which elements are rounded.
class Rounder {
 public:
  Rounder(std::span<float> w, std::span<const float> factor, std::span<const int> order,
          const Rounding& rounding, bool fits_on_the_way)
      : w_(w),
        factor_(factor),
        order_(order),
        rounding_(rounding),
        fits_on_the_way_(fits_on_the_way) {}

  void round_row(int64_t row) {
    const size_t depth = order_.size(), block = static_cast<size_t>(rounding_.block);
    float* w = w_.data() + static_cast<size_t>(row) * depth;
    for (size_t j = 0; j < depth; ++j) {
      if (fits_on_the_way_ && j % block == 0)
        rounding_.fit(row, static_cast<int64_t>(j), {w + j, std::min(block, depth - j)});
      const float* u = factor_.data() + j * depth;
      const float value = rounding_.round(row, order_[j], w[j]), error = (w[j] - value) / u[j];
      w[j] = value;
      for (size_t k = j + 1; k < depth; ++k) w[k] -= error * u[k];
    }
  }

 private:
  std::span<float> w_;
  std::span<const float> factor_;
  std::span<const int> order_;
  const Rounding& rounding_;
  bool fits_on_the_way_;
};

}  // namespace

void Hessian::add(std::span<const float> products, int64_t count) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += products[i];
  inputs += count;
}

std::vector<float> Hessian::diagonal() const {
  std::vector<float> d(static_cast<size_t>(depth));
  for (size_t i = 0; i < d.size(); ++i) d[i] = sum[i * d.size() + i];
  return d;
}

std::vector<int> rounding_order(const Hessian& hessian, bool act_order) {
  std::vector<int> order(static_cast<size_t>(hessian.depth));
  std::iota(order.begin(), order.end(), 0);
  const std::vector<float> size = hessian.diagonal();
  if (act_order)
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](int i) { return size[static_cast<size_t>(i)]; });
  return order;
}

std::vector<float> error_factor(const Hessian& hessian, std::span<const int> order,
                                double damping) {
  const size_t n = order.size();
  const std::vector<float> diagonal = hessian.diagonal();
  const double mean = std::accumulate(diagonal.begin(), diagonal.end(), 0.0) /
                      static_cast<double>(std::max<size_t>(n, 1));
  Square a(n);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      a[i][k] = hessian.sum[static_cast<size_t>(order[i]) * n + static_cast<size_t>(order[k])];
  for (size_t i = 0; i < n; ++i) {
    if (a[i][i] == 0) a[i][i] = mean > 0 ? mean : 1;
    a[i][i] += damping * mean;
  }
  factorize(a);
  const Square u = inverse_of(a);
  std::vector<float> factor(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = i; k < n; ++k) factor[i * n + k] = static_cast<float>(u[i][k]);
  return factor;
}

void gptq(std::span<float> w, int64_t rows, const Hessian& hessian, const GptqOptions& options,
          const Rounding& rounding) {
  const std::vector<int> order = rounding_order(hessian, options.act_order);
  const std::vector<float> factor = error_factor(hessian, order, options.damping);
  const size_t depth = order.size(), block = static_cast<size_t>(rounding.block);
  if (!options.act_order) {
    Rounder rounder(w, factor, order, rounding, true);
    for (int64_t r = 0; r < rows; ++r) rounder.round_row(r);
    return;
  }
  std::vector<float> row(depth);
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<float> own = w.subspan(static_cast<size_t>(r) * depth, depth);
    for (size_t first = 0; first < depth; first += block)
      rounding.fit(r, static_cast<int64_t>(first),
                   own.subspan(first, std::min(block, depth - first)));
    for (size_t j = 0; j < depth; ++j) row[j] = own[static_cast<size_t>(order[j])];
    const Rounding of_row{rounding.block, {}, [&](int64_t, int64_t column, float x) {
                            return rounding.round(r, column, x);
                          }};
    Rounder(row, factor, order, of_row, false).round_row(0);
    for (size_t j = 0; j < depth; ++j) own[static_cast<size_t>(order[j])] = row[j];
  }
}

}  // namespace taper::quantize
