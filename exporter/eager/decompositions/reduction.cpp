// Composite reductions.
#include "taper/exporter/eager/ops/reduction.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager::decompositions {
namespace {

template <const Operator& op>
Scalar correction_by_bias(const Arguments<op>& a) {
  return a.template boolean<"unbiased">() ? 1 : 0;
}

/// `vector_norm`, called by another name: it refuses what is not floating.
Tensor vector_norm_of(const Tensor& self, double order, const Ints& dims, bool keepdim,
                      std::optional<DType> dtype, std::string_view op) {
  if (!is_inexact(self.dtype()) || !is_inexact(dtype.value_or(self.dtype())))
    throw EagerError(std::string(op) + ": needs a floating dtype, not " +
                     taper::name_of(self.dtype()));
  return vector_norm(self, order, dims, keepdim, dtype);
}

}  // namespace

TAPER_DECOMPOSITION(sum) { return {sum(a.tensor<"self">(), Ints{}, false, dtype_of(a))}; }
TAPER_DECOMPOSITION(std_dim) {
  return {
      std(a.tensor<"self">(), a.integers<"dim">(), correction_by_bias(a), a.boolean<"keepdim">())};
}
TAPER_DECOMPOSITION(var_mean_dim) {
  auto [variance, mean] = var_mean(a.tensor<"self">(), a.integers<"dim">(), correction_by_bias(a),
                                   a.boolean<"keepdim">());
  return {variance, mean};
}
// m + log(sum(exp(x - m))): m = max(x) keeps exp finite, and is 0 where it is infinite itself. m
// counts as a constant: its gradient cancels.
TAPER_DECOMPOSITION_ROUNDED_ONCE(logsumexp) {
  const Tensor self = a.tensor<"self">();
  const Tensor x = is_inexact(self.dtype()) ? self : cast(self, DType::f32);
  const Ints dim = a.integers<"dim">();
  const bool keepdim = a.boolean<"keepdim">();
  if (x.rank() == 0) return {x};
  bool empty = false;
  for (const Dim& d : x.sizes()) empty = empty || proves_equal(d, Dim(0));
  if (empty) return {log(sum(exp(x), dim, keepdim))};
  const Tensor peak = amax((is_complex(x.dtype()) ? real(x) : x).detach(), dim, true);
  const Tensor finite = masked_fill(peak, isinf(peak), 0);
  const Tensor total = log(sum(exp(sub(x, finite)), dim, keepdim));
  return {add(total, keepdim ? finite : reshape(finite, total.sizes()))};
}

TAPER_DECOMPOSITION(aminmax) {
  const Tensor self = a.tensor<"self">();
  const Ints dim = a.has<"dim">() ? Ints{a.integer<"dim">()} : Ints{};
  const bool keepdim = a.boolean<"keepdim">();
  return {amin(self, dim, keepdim), amax(self, dim, keepdim)};
}
TAPER_DECOMPOSITION(trace) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() != 2) throw EagerError("trace: needs a matrix, not " + to_string(self.sizes()));
  return {sum(diagonal(self))};
}
namespace {

/// The only argument of `op`, which must be bool.
template <const Operator& op>
Tensor truths(const Arguments<op>& a) {
  const Tensor self = a.template tensor<"self">();
  if (self.dtype() != DType::boolean)
    throw EagerError(std::string(name_of(op)) + ": self must be a tensor of bool, it is " +
                     taper::name_of(self.dtype()));
  return self;
}

}  // namespace
TAPER_DECOMPOSITION(_is_all_true) { return {all(truths(a))}; }
TAPER_DECOMPOSITION(_is_any_true) { return {any(truths(a))}; }
TAPER_DECOMPOSITION(count_nonzero) {
  return {sum(ne(a.tensor<"self">(), 0), a.has<"dim">() ? Ints{a.integer<"dim">()} : Ints{})};
}
TAPER_DECOMPOSITION(nanmean) {
  const Tensor self =
      a.has<"dtype">() ? cast(a.tensor<"self">(), a.dtype<"dtype">()) : a.tensor<"self">();
  if (!is_floating(self.dtype()))
    throw EagerError(std::string("nanmean: needs a floating dtype, not ") +
                     taper::name_of(self.dtype()));
  const Ints dim = a.integers<"dim">();
  const bool keepdim = a.boolean<"keepdim">();
  const Tensor count = sum(logical_not(isnan(self)), dim, keepdim);
  return {div(nansum(self, dim, keepdim), count)};
}

TAPER_DECOMPOSITION(norm_ScalarOpt_dim) {
  return {vector_norm_of(a.tensor<"self">(), a.has<"p">() ? a.real<"p">() : 2, a.integers<"dim">(),
                         a.boolean<"keepdim">(), {}, "norm")};
}
TAPER_DECOMPOSITION(norm_Scalar) {
  return {vector_norm_of(a.tensor<"self">(), a.real<"p">(), {}, false, {}, "norm")};
}
// Of a vector, or of all elements where no order is given. Of a matrix, the largest (smallest) sum
// of a column (1) or of a row (infinity).
TAPER_DECOMPOSITION(linalg_norm) {
  const Tensor self = a.tensor<"self">();
  Ints dims = a.integers<"dim">();
  const bool keepdim = a.boolean<"keepdim">();
  const size_t over = dims.empty() ? static_cast<size_t>(self.rank()) : dims.size();
  const double order = a.has<"ord">() ? a.real<"ord">() : 2;
  if (!a.has<"ord">() || over == 1)
    return {vector_norm_of(self, order, dims, keepdim, dtype_of(a), "linalg_norm")};
  const bool by_columns = std::abs(order) == 1;
  if (over != 2)
    throw EagerError("linalg_norm: with ord it must go over 1 or 2 dimensions, got " +
                     std::to_string(over) + " of self " + to_string(self.sizes()));
  if (!by_columns && !std::isinf(order) && std::abs(order) != 2)
    throw EagerError("linalg_norm: over 2 dimensions ord must be 1, -1, 2, -2, inf or -inf, got " +
                     to_text(order));
  if (dims.empty()) dims = {0, 1};
  if (std::abs(order) == 2)
    return {linalg_matrix_norm(self, Scalar(order), dims, keepdim, dtype_of(a))};
  const int64_t rows = checked_dim(dims[0], self.rank(), "linalg_norm", self),
                columns = checked_dim(dims[1], self.rank(), "linalg_norm", self);
  const Tensor sums =
      vector_norm_of(self, 1, {by_columns ? rows : columns}, true, dtype_of(a), "linalg_norm");
  const Tensor extreme =
      order > 0 ? amax(sums, {rows, columns}, keepdim) : amin(sums, {rows, columns}, keepdim);
  return {extreme};
}

TAPER_DECOMPOSITION(std_default) { return {std(a.tensor<"self">(), {}, correction_by_bias(a))}; }
TAPER_DECOMPOSITION(var) { return {var(a.tensor<"self">(), {}, correction_by_bias(a))}; }
TAPER_DECOMPOSITION(std_mean) {
  auto [deviation, mean] = std_mean(a.tensor<"self">(), {}, correction_by_bias(a));
  return {deviation, mean};
}
TAPER_DECOMPOSITION(std_mean_dim) {
  auto [deviation, mean] = std_mean(a.tensor<"self">(), a.integers<"dim">(), correction_by_bias(a),
                                    a.boolean<"keepdim">());
  return {deviation, mean};
}
TAPER_DECOMPOSITION(var_mean) {
  auto [variance, mean] = var_mean(a.tensor<"self">(), {}, correction_by_bias(a));
  return {variance, mean};
}
TAPER_DECOMPOSITION(count_nonzero_dim_IntList) {
  return {sum(ne(a.tensor<"self">(), 0), a.integers<"dim">())};
}
TAPER_DECOMPOSITION(norm_ScalarOpt_dim_dtype) {
  return {vector_norm_of(a.tensor<"self">(), a.has<"p">() ? a.real<"p">() : 2, a.integers<"dim">(),
                         a.boolean<"keepdim">(), a.dtype<"dtype">(), "norm")};
}
TAPER_DECOMPOSITION(norm_ScalarOpt_dtype) {
  return {vector_norm_of(a.tensor<"self">(), a.has<"p">() ? a.real<"p">() : 2, {}, false,
                         a.dtype<"dtype">(), "norm")};
}
TAPER_DECOMPOSITION(frobenius_norm_dim) {
  return {vector_norm_of(a.tensor<"self">(), 2, a.integers<"dim">(), a.boolean<"keepdim">(), {},
                         "frobenius_norm")};
}
TAPER_DECOMPOSITION(linalg_norm_ord_str) {
  const Tensor self = a.tensor<"self">();
  const Ints dim = a.integers<"dim">();
  const size_t over = dim.empty() ? static_cast<size_t>(self.rank()) : dim.size();
  const std::string order(a.text<"ord">());
  if ((order != "fro" && order != "nuc") || over != 2)
    throw EagerError("linalg_norm: ord must be 'fro' or 'nuc', over 2 dimensions, got '" + order +
                     "' over " + std::to_string(over) + " of self " + to_string(self.sizes()));
  if (order == "nuc")
    return {linalg_matrix_norm(self, "nuc", dim.empty() ? Ints{0, 1} : dim, a.boolean<"keepdim">(),
                               dtype_of(a))};
  return {vector_norm_of(self, 2, dim, a.boolean<"keepdim">(), dtype_of(a), "linalg_norm")};
}
TAPER_DECOMPOSITION(dist) {
  const Tensor difference = sub(a.tensor<"self">(), a.tensor<"other">());
  return {vector_norm_of(difference, a.real<"p">(), {}, false, {}, "dist")};
}
// Slices along `dim` that are longer than maxnorm are shortened to it.
TAPER_DECOMPOSITION_ROUNDED_ONCE(renorm) {
  const Tensor self = a.tensor<"self">();
  const double p = a.real<"p">(), most = a.real<"maxnorm">();
  if (self.rank() < 2 || !(p > 0) || !(most >= 0))
    throw EagerError(
        "renorm: needs at least 2 dimensions, p above 0 and maxnorm of at least "
        "0, got " +
        to_string(self.sizes()) + ", " + to_text(p) + " and " + to_text(most));
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "renorm", self);
  Ints others;
  for (int64_t d = 0; d < self.rank(); ++d)
    if (d != dim) others.push_back(d);
  const auto size = [&](const Tensor& t) {
    return vector_norm_of(t, p, others, true, {}, "renorm");
  };
  const Tensor stays = logical_not(gt(size(self.detach()), most));
  // what stays has no part in the factors, nor in their gradient: not even a NaN
  const Tensor shortened = masked_fill(self, stays, 1);
  const Tensor factor = mul(reciprocal(add(size(shortened), 1e-7)), most);
  return {where(stays, self, mul(shortened, factor))};
}

}  // namespace taper::eager::decompositions
