// Composite indexing. If the size of a result depends on data, eager reads the elements. A trace
// has a symbol for this size instead, and a run of the program finds its value.
#include "taper/exporter/eager/ops/indexing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/eager/text.h"
#include "taper/kernels/shapes/broadcast.h"

namespace taper::eager::decompositions {
namespace {

Tensor flat(const Tensor& t) { return reshape(t, {Dim(-1)}); }

/// The positions of the true elements: (count, rank).
Tensor positions_of_true(const Tensor& self, std::string_view op) {
  NoGrad guard;
  const Tensor mask = contiguous(cast(self, DType::boolean));
  const Dim most = mask.numel();
  if (!mask.is_traced()) {
    const bool* m = mask.data<bool>();
    return call<ops::taper_nonzero>(mask, Dim(std::count(m, m + most.value(), true)));
  }
  const Dim found = element_as_dim(sum(cast(mask, DType::i64)), 0, most.upper());
  if (recorder() != nullptr && !most.is_constant())
    recorder()->assume({Comparison::less_equal, found, most, std::string(op)});
  return call<ops::taper_nonzero>(mask, found);
}

/// The sizes of two tensors broadcast together.
Dims broadcast_sizes(const Tensor& a, const Tensor& b, std::string_view op) {
  Facts<Dim> facts;
  TensorType<Dim> both;
  if (!taper::internal::broadcast(facts, both, a.type(), b.type()))
    throw EagerError(std::string(op) + ": " + to_string(a.sizes()) + " and " +
                     to_string(b.sizes()) + " do not broadcast");
  return {both.sizes, both.sizes + both.rank};
}

}  // namespace

TAPER_DECOMPOSITION(argsort) {
  return {std::get<1>(
      call<ops::sort>(a.tensor<"self">(), a.integer<"dim">(), a.boolean<"descending">()))};
}

// Expands both tensors to each other's sizes, except along `dim`. Negative indices, which gather
// does not take, become positive first.
TAPER_DECOMPOSITION(take_along_dim) {
  const Tensor self = a.tensor<"self">(), indices = a.tensor<"indices">();
  const auto gathered = [&](const Tensor& t, int64_t dim, const Tensor& places) -> Tensor {
    const Tensor extent = dim_as_tensor(t.rank() > 0 ? t.size(dim) : Dim(1), DType::i64);
    const Tensor from_front = where(lt(places, Scalar(0)), add(places, extent), places);
    return gather(t, dim, from_front);
  };
  if (!a.has<"dim">()) return {gathered(flatten(self), 0, flatten(indices))};
  const int64_t rank = self.rank(), dim = a.integer<"dim">();
  if (indices.rank() != rank || dim < -rank || dim >= rank)
    throw EagerError(
        "take_along_dim: needs as many dimensions of self and indices, and one "
        "of them, got " +
        to_string(self.sizes()) + ", " + to_string(indices.sizes()) + " and dim " +
        std::to_string(dim));
  Dims from = self.sizes(), to = indices.sizes();
  for (size_t i = 0; i < from.size(); ++i) {
    if (static_cast<int64_t>(i) == (dim + rank) % rank) continue;
    if (proves_equal(from[i], Dim(1)))
      from[i] = to[i];
    else
      to[i] = from[i];
  }
  return {gathered(expand(self, from), dim, expand(indices, to))};
}
TAPER_DECOMPOSITION(nonzero) { return {positions_of_true(a.tensor<"self">(), "nonzero")}; }
TAPER_DECOMPOSITION(argwhere) { return {positions_of_true(a.tensor<"self">(), "argwhere")}; }
// Kernels take bool.
TAPER_DECOMPOSITION(nonzero_static) {
  return {nonzero_static(cast(a.tensor<"self">(), DType::boolean), a.dim<"size">(),
                         a.integer<"fill_value">())};
}
TAPER_DECOMPOSITION(masked_select) {
  const Tensor self = a.tensor<"self">(), mask = a.tensor<"mask">();
  if (mask.dtype() != DType::boolean)
    throw EagerError(std::string("masked_select: mask must be a bool tensor, not ") +
                     taper::name_of(mask.dtype()));
  const Dims sizes = broadcast_sizes(self, mask, "masked_select");
  const Tensor places = positions_of_true(flat(expand(mask, sizes)), "masked_select");
  return {index_select(flat(expand(self, sizes)), 0, flat(places))};
}

TAPER_DECOMPOSITION(take) { return {index(flat(a.tensor<"self">()), {a.tensor<"index">()})}; }

// Place p of the result comes from the first slice k at which the running sum of `repeats` exceeds
// p.
TAPER_DECOMPOSITION(repeat_interleave_self_Tensor) {
  const Tensor self = a.has<"dim">() ? a.tensor<"self">() : flat(a.tensor<"self">());
  const int64_t dim =
      checked_dim(a.has<"dim">() ? a.integer<"dim">() : 0, self.rank(), "repeat_interleave", self);
  Tensor repeats = a.tensor<"repeats">();
  if (repeats.rank() > 1 || (repeats.dtype() != DType::i64 && repeats.dtype() != DType::i32))
    throw EagerError("repeat_interleave: repeats must be a vector of i64 or i32, got " +
                     to_string(repeats.sizes()) + " " + taper::name_of(repeats.dtype()));
  repeats = cast(repeats, DType::i64);
  const Dim count = self.rank() > 0 ? self.size(dim) : Dim(1);
  if (proves_equal(repeats.numel(), Dim(1)))
    repeats = expand(flat(repeats), {count});
  else if (proves_different(repeats.numel(), count))
    throw EagerError("repeat_interleave: repeats " + to_string(repeats.sizes()) +
                     " must have one element, or one for each of the " + to_string({count}) +
                     " slices");
  Dim total = 0;
  if (a.has<"output_size">()) {
    total = a.dim<"output_size">();
  } else {
    total = element_as_dim(sum(repeats), 0, std::numeric_limits<int64_t>::max());
  }
  if (!repeats.is_traced() && !proves_equal(repeats.numel(), Dim(0))) {
    if (const auto least = min(repeats).item<int64_t>(); least < 0)
      throw EagerError("repeat_interleave: repeats must be 0 or more, got " +
                       std::to_string(least));
    const double about = sum(cast(repeats, DType::f64)).item();
    if (about > 9e18)
      throw EagerError("repeat_interleave: repeats must sum to less than 2^63, they sum to " +
                       to_text(about));
    if (const auto all = sum(repeats).item<int64_t>(); all != total.value())
      throw EagerError("repeat_interleave: output_size must be the sum of repeats, " +
                       std::to_string(all) + ", got " + total.to_string());
  }
  return {index_select(self, dim, searchsorted(cumsum(repeats, 0), positions(total), true))};
}

// The numbers of the slices, each as often as `repeats` says.
TAPER_DECOMPOSITION(repeat_interleave_Tensor) {
  const Tensor repeats = a.tensor<"repeats">();
  if (repeats.rank() != 1)
    throw EagerError("repeat_interleave: repeats must be a vector of i64 or i32, got " +
                     to_string(repeats.sizes()) + " " + taper::name_of(repeats.dtype()));
  const std::optional<Dim> size =
      a.has<"output_size">() ? std::optional(a.dim<"output_size">()) : std::nullopt;
  return {call<ops::repeat_interleave_self_Tensor>(
      cast(positions(repeats.size(0)), repeats.dtype()), repeats, std::optional<int64_t>(0), size)};
}

// Rows that `indices` name become shorter, if their norm is above max_norm.
TAPER_DECOMPOSITION(embedding_renorm) {
  const Tensor self = a.tensor<"self">(), indices = a.tensor<"indices">();
  if (self.rank() != 2 || !is_floating(self.dtype()))
    throw EagerError("embedding_renorm: self must be a floating matrix, got " +
                     to_string(self.sizes()));
  const Tensor named = scatter(zeros({self.size(0)}, DType::boolean), 0,
                               flat(cast(indices, DType::i64)), Scalar(true));
  const Tensor norms = vector_norm(self, Scalar(a.real<"norm_type">()), {1});
  const double most = a.real<"max_norm">();
  const Tensor factor = mul(reciprocal(add(norms, 1e-7)), most);
  const Tensor shrinks = logical_and(named, gt(norms, most));
  return {mul(self, unsqueeze(where(shrinks, factor, ones_like(norms)), 1))};
}

// Searches each element among the sorted test elements.
TAPER_DECOMPOSITION(isin_Tensor_Tensor) {
  DType common = promote_types(a.tensor<"elements">().dtype(), a.tensor<"test_elements">().dtype());
  if (common == DType::f16 || common == DType::bf16) common = DType::f32;
  if (common == DType::boolean) common = DType::u8;
  const Tensor elements = cast(a.tensor<"elements">(), common);
  const Tensor test = flat(cast(a.tensor<"test_elements">(), common));
  const bool invert = a.boolean<"invert">();
  if (proves_equal(test.numel(), Dim(0)))
    return {full(elements.sizes(), Scalar(invert), DType::boolean)};
  const Tensor sorted = std::get<0>(sort(test, 0));
  const Tensor last = sub(sum(ones_like(test, DType::i64)), 1);
  // NaN is sorted last, and the search must not stop at it
  const Tensor searched =
      is_floating(common)
          ? masked_fill(sorted, isnan(sorted), Scalar(std::numeric_limits<double>::infinity()))
          : sorted;
  const Tensor place = minimum(searchsorted(searched, elements), last);
  const Tensor found = eq(index(sorted, {place}), elements);
  return {invert ? logical_not(found) : found};
}

TAPER_DECOMPOSITION(bincount) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() != 1 || is_floating(self.dtype()))
    throw EagerError("bincount: self must be a vector of integers, got " + to_string(self.sizes()) +
                     " " + taper::name_of(self.dtype()));
  Dim size = a.dim<"minlength">();
  if (proves_less(size, 0))
    throw EagerError("bincount: minlength must be 0 or more, got " + size.to_string());
  if (proves_different(self.numel(), 0)) {
    const Tensor most = max(self);
    if (!self.is_traced()) {
      constexpr int64_t limit = int64_t{1} << 60;  // there are as many results, of 8 bytes
      const auto least = min(self).item<int64_t>(), greatest = most.item<int64_t>();
      if (least < 0 || greatest >= limit)
        throw EagerError("bincount: the elements of self must lie in [0, 2^60), got " +
                         std::to_string(least < 0 ? least : greatest));
    }
    size = max(size, element_as_dim(add(cast(most, DType::i64), 1), 1,
                                    std::numeric_limits<int64_t>::max()));
  }
  const Tensor at = cast(self, DType::i64);
  Tensor weights = a.has<"weights">() ? a.tensor<"weights">() : ones_like(at, DType::i64);
  if (a.has<"weights">() && weights.dtype() != DType::f32) weights = cast(weights, DType::f64);
  return {index_add(zeros({size}, weights.dtype()), 0, at, weights)};
}

// Bin k holds the elements in [min + k w, min + (k + 1) w). The last bin also holds max. Counts of
// halves are added in f32.
TAPER_DECOMPOSITION(histc) {
  const Tensor x = flat(a.tensor<"self">());
  const int64_t bins = a.integer<"bins">();
  const double least = a.real<"min">(), most = a.real<"max">();
  if (bins < 1 || !is_floating(x.dtype()) || !(least <= most) || !std::isfinite(least) ||
      !std::isfinite(most))
    throw EagerError("histc: needs a floating dtype, bins > 0 and finite min <= max");
  const bool of_data = least == most && !proves_equal(x.numel(), Dim(0));
  Tensor low = of_data ? min(x) : scalar_tensor(least, x.dtype());
  Tensor high = of_data ? max(x) : scalar_tensor(most, x.dtype());
  if (of_data && !x.is_traced() && !logical_and(isfinite(low), isfinite(high)).item<bool>())
    throw EagerError("histc: the range of self is not finite; give min and max");
  const Tensor is_point = to(eq(low, high), x.dtype());
  low = sub(low, is_point), high = add(high, is_point);
  const Tensor inside = logical_and(ge(x, low), le(x, high));
  const Tensor place = div(mul(sub(x, low), Scalar(bins)), sub(high, low));
  const Tensor bin = clamp_max(to(where(inside, place, Scalar(0)), DType::i64), bins - 1);
  const DType sums = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  return {cast(index_add(zeros({bins}, sums), 0, bin, cast(inside, sums)), x.dtype())};
}

namespace {

/// The coordinates of the true elements: one vector for each dimension.
Results coordinates_of_true(Tensor self, std::string_view op) {
  if (self.rank() == 0) self = unsqueeze(self, 0);
  const Tensor positions = positions_of_true(self, op);
  Results coordinates;
  for (int64_t d = 0; d < self.rank(); ++d) coordinates.push_back(select(positions, 1, d));
  return coordinates;
}

}  // namespace

TAPER_DECOMPOSITION(nonzero_numpy) { return coordinates_of_true(a.tensor<"self">(), "nonzero"); }
TAPER_DECOMPOSITION(where) { return coordinates_of_true(a.tensor<"condition">(), "where"); }
// Indices count the elements of self in row-major order.
TAPER_DECOMPOSITION(put) {
  const Tensor self = a.tensor<"self">(), at = a.tensor<"index">(), source = a.tensor<"source">();
  if (at.dtype() != DType::i64 || self.dtype() != source.dtype())
    throw EagerError(std::string("put: index must be i64, and source of self's dtype ") +
                     taper::name_of(self.dtype()) + ", got " + taper::name_of(at.dtype()) +
                     " and " + taper::name_of(source.dtype()));
  const Tensor line = index_put(flat(self), {flat(at)}, flat(source), a.boolean<"accumulate">());
  return {reshape(line, self.sizes())};
}
TAPER_DECOMPOSITION(isin_Tensor_Scalar) {
  const Tensor elements = a.tensor<"elements">();
  const Tensor same = eq(elements, a.scalar<"test_element">());
  return {a.boolean<"invert">() ? logical_not(same) : same};
}
TAPER_DECOMPOSITION(isin_Scalar_Tensor) {
  const Tensor same = eq(a.tensor<"test_elements">(), a.scalar<"element">());
  const Tensor found = any(same);
  return {a.boolean<"invert">() ? logical_not(found) : found};
}
TAPER_DECOMPOSITION(searchsorted_Scalar) {
  const Tensor sorted = a.tensor<"sorted_sequence">();
  std::optional<std::string_view> side;  // gcc 12 warns of an uninitialized one for `? :`
  if (a.has<"side">()) side = a.text<"side">();
  const auto sorter = a.has<"sorter">() ? std::optional(a.tensor<"sorter">()) : std::nullopt;
  return {call<ops::searchsorted_Tensor>(sorted, scalar_tensor(a.scalar<"self">(), sorted.dtype()),
                                         a.boolean<"out_int32">(), a.boolean<"right">(), side,
                                         sorter)};
}
TAPER_DECOMPOSITION(bucketize_Scalar) {
  const Tensor boundaries = a.tensor<"boundaries">();
  return {bucketize(scalar_tensor(a.scalar<"self">(), boundaries.dtype()), boundaries,
                    a.boolean<"right">(), a.boolean<"out_int32">())};
}
TAPER_DECOMPOSITION(index_fill_int_Tensor) {
  const Tensor self = a.tensor<"self">(), at = a.tensor<"index">(), value = a.tensor<"value">();
  if (value.rank() != 0)
    throw EagerError("index_fill: value must have no dimensions, it is " +
                     to_string(value.sizes()));
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "index_fill", self);
  if (self.rank() == 0) return {cast(value, self.dtype())};
  // uses a mask: then an element that several indices name is written once, and its gradient counts
  // once
  Dims sizes(static_cast<size_t>(self.rank()), Dim(1));
  sizes[static_cast<size_t>(dim)] = self.size(dim);
  const Tensor mask =
      index_fill(zeros({self.size(dim)}, DType::boolean), 0, flat(at), Scalar(true));
  return {where(reshape(mask, sizes), cast(value, self.dtype()), self)};
}

namespace {

/// The name that scatter_reduce uses for `reduce` of scatter.
template <const Operator& op>
std::string_view reduction_of(const Arguments<op>& a) {
  const std::string_view reduce = a.template text<"reduce">();
  if (reduce == "add") return "sum";
  if (reduce == "multiply") return "prod";
  throw EagerError("scatter: reduce must be add or multiply, not " + std::string(reduce));
}

}  // namespace

TAPER_DECOMPOSITION(scatter_reduce) {
  return {scatter_reduce(a.tensor<"self">(), a.integer<"dim">(), a.tensor<"index">(),
                         a.tensor<"src">(), reduction_of(a))};
}
TAPER_DECOMPOSITION(scatter_value_reduce) {
  const Tensor self = a.tensor<"self">(), at = a.tensor<"index">();
  const Tensor src = full(at.sizes(), a.scalar<"value">(), self.dtype());
  return {scatter_reduce(self, a.integer<"dim">(), at, src, reduction_of(a))};
}
// Sorting is always stable.
TAPER_DECOMPOSITION(argsort_stable) {
  return {argsort(a.tensor<"self">(), a.integer<"dim">(), a.boolean<"descending">())};
}

}  // namespace taper::eager::decompositions
