#include "taper/exporter/eager/ops/matmul.h"

#include <algorithm>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/shared.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/indexing.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::derivatives {
namespace {

/// (…, n) as a matrix.
Tensor as_rows(const Tensor& t) {
  Dim rows(1);
  for (int i = 0; i + 1 < t.rank(); ++i) rows *= t.size(i);
  return t.reshape({rows, t.size(-1)});
}

/// d W with a weight (out, in) in blocks. So many rows become f32 at a time that they take 16 MB,
/// where `mm` makes a dense copy of the whole weight.
Tensor times_blocks(const Tensor& d, const Tensor& weight) {
  constexpr int64_t most_elements = int64_t{4} << 20;
  const int64_t rows = weight.size(0).value(), columns = weight.size(1).value();
  const int64_t part = std::max<int64_t>(most_elements / std::max<int64_t>(columns, 1), 1);
  if (rows <= part) return mm(d, weight);
  Tensor sum;
  for (int64_t first = 0; first < rows; first += part) {
    const int64_t end = std::min(first + part, rows);
    const Tensor product =
        mm(narrow(d, 1, first, end - first), embedding(weight, arange(first, end)));
    sum = sum.defined() ? sum + product : product;
  }
  return sum;
}

}  // namespace

// C = A B:  dA = dC B^T,  dB = A^T dC

TAPER_DERIVATIVE(mm, "self", "mat2") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"mat2">();
  return {saved.needs<"self">() ? mm(dy, b.t()) : Tensor(),
          saved.needs<"mat2">() ? mm(a.t(), dy) : Tensor()};
}

TAPER_DERIVATIVE(bmm, "self", "mat2") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"mat2">();
  return {saved.needs<"self">() ? bmm(dy, b.transpose(1, 2)) : Tensor(),
          saved.needs<"mat2">() ? bmm(a.transpose(1, 2), dy) : Tensor()};
}

TAPER_DERIVATIVE(addmm, "mat1", "mat2") {
  const Tensor a = saved.tensor<"mat1">(), b = saved.tensor<"mat2">();
  const Scalar alpha = saved.scalar<"alpha">(), beta = saved.scalar<"beta">();
  return {saved.needs<"self">() ? scaled(dy, beta) : Tensor(),
          saved.needs<"mat1">() ? scaled(mm(dy, b.t()), alpha) : Tensor(),
          saved.needs<"mat2">() ? scaled(mm(a.t(), dy), alpha) : Tensor()};
}

TAPER_DERIVATIVE(baddbmm, "batch1", "batch2") {
  const Tensor a = saved.tensor<"batch1">(), b = saved.tensor<"batch2">();
  const Scalar alpha = saved.scalar<"alpha">(), beta = saved.scalar<"beta">();
  return {saved.needs<"self">() ? scaled(dy, beta) : Tensor(),
          saved.needs<"batch1">() ? scaled(bmm(dy, b.transpose(1, 2)), alpha) : Tensor(),
          saved.needs<"batch2">() ? scaled(bmm(a.transpose(1, 2), dy), alpha) : Tensor()};
}

// As for one product. The groups divide the same extent in these products as before: rows, columns
// or k. So offs stays.
TAPER_DERIVATIVE(_grouped_mm, "self", "mat2", "offs") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"mat2">(),
               offs = saved.tensor<"offs">();
  return {saved.needs<"self">() ? grouped_mm(dy, b.transpose(-2, -1), offs) : Tensor(),
          saved.needs<"mat2">() ? grouped_mm(a.transpose(-2, -1), dy, offs) : Tensor(), Tensor(),
          Tensor()};
}

// Y = X W^T + b:  dX = dY W,  dW = dY^T X,  db = the sum of dY's rows (the engine sums over
// broadcast dimensions)
TAPER_DERIVATIVE(linear, "input", "weight") {
  const Tensor x = saved.tensor<"input">(), w = saved.tensor<"weight">();
  const bool vector = w.rank() == 1;  // a weight (in) gives a result without the dimension `out`
  const Tensor d = as_rows(vector ? dy.unsqueeze(-1) : dy);
  const Tensor matrix = vector ? w.unsqueeze(0) : w;
  Tensor dx, dw;
  if (saved.needs<"input">())
    dx = (is_in_blocks(matrix.layout()) ? times_blocks(d, matrix) : mm(d, matrix))
             .reshape(x.sizes());
  if (saved.needs<"weight">()) dw = mm(d.t(), as_rows(x)).reshape(w.sizes());
  return {dx, dw, saved.needs<"bias">() ? dy : Tensor()};
}

}  // namespace taper::eager::derivatives
