// Sums, means and maxima of a table's rows, bag by bag. Rows are read where they lie; until a bag
// is done its result stays in registers.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/maximum.h"
#include "taper/kernels/portable/small_floats.h"

namespace taper::portable::embedding_bag {

enum class Mode : int64_t { sum, mean, max };

/// Offsets must begin with 0, ascend, and not exceed `count`, the number of indices. If `closed`,
/// the last offset must be `count`.
template <class I>
Error check_offsets(Context& context, View<const I> offsets, index_t count, bool closed) {
  const I* at = offsets.data();
  const index_t n = offsets.numel();
  bool right =
      n > 0 ? at[0] == 0 && (closed ? at[n - 1] == count : at[n - 1] <= count) : count == 0;
  for (index_t i = 1; i < n; ++i) right &= at[i - 1] <= at[i];
  if (right) return Error::ok;
  return context.fail(Error::invalid_argument,
                      TAPER_TEXT("offsets must begin with 0, ascend, and not end beyond {}, the "
                                 "number of indices; with include_last_offset just there"),
                      count);
}

/// The type in which elements of T are summed.
template <class T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
/// `widen(n, x, y)` converts n elements of f16 or bf16 to float.
struct PlainWidening {
  template <class T>
  static void widen(index_t n, const T* x, float* y) {
    for (index_t i = 0; i < n; ++i) y[i] = to_float(x[i]);
  }
};

/// One bag: indices [begin, end), of which `taken` are not padding.
template <class T, class I>
struct Bag {
  const T* table;  // (words, width)
  index_t width;
  const I* word;    // the indices of all bags, `count` of them
  const T* weight;  // one for each index; nullptr: all are 1
  int64_t padding;
  Mode mode;
  index_t count, begin, end, taken;

  Wide<T> weight_of(index_t i) const {
    if (weight == nullptr) return 1;
    if constexpr (std::is_arithmetic_v<T>)
      return weight[i];
    else
      return to_float(weight[i]);
  }
};

/// Computes columns [first, first + n) of a bag's result. n is `lanes`, or less if `rest`.
template <class Widening, int lanes, bool rest, class T, class I, class Take>
void take_columns(const Bag<T, I>& bag, index_t first, index_t n, T* out, const Take& take) {
  using A = Wide<T>;
  constexpr index_t ahead = 16, cache_line = 64 / static_cast<index_t>(sizeof(T));
  A value[lanes];
  for (A& v : value) v = bag.mode == Mode::max && bag.taken > 0 ? lowest<A>() : A(0);
  for (index_t i = bag.begin; i < bag.end; ++i) {
    // The processor cannot predict where the next row lies, so rows are prefetched. The pass over
    // the first columns prefetches whole rows, also those of the next bag.
    if (first == 0 && i + ahead < bag.count) {
      const T* next = bag.table + static_cast<index_t>(bag.word[i + ahead]) * bag.width;
      for (index_t c = 0; c < bag.width; c += cache_line) __builtin_prefetch(next + c);
    }
    if (bag.word[i] == bag.padding) continue;
    const T* row = bag.table + static_cast<index_t>(bag.word[i]) * bag.width + first;
    const A weight = bag.weight_of(i);
    const A* x;
    A wide[lanes];
    if constexpr (std::is_same_v<T, A>)
      x = row;
    else
      Widening::widen(rest ? n : lanes, row, wide), x = wide;
    if constexpr (rest) {
      for (index_t c = 0; c < n; ++c) value[c] = take(value[c], x[c], weight);
    } else {
      TAPER_LANES
      for (int c = 0; c < lanes; ++c) value[c] = take(value[c], x[c], weight);
    }
  }
  const A divisor = bag.mode == Mode::mean && bag.taken > 0 ? static_cast<A>(bag.taken) : A(1);
  for (index_t c = 0; c < n; ++c) {
    const A result = value[c] / divisor;
    if constexpr (std::is_same_v<T, A>)
      out[first + c] = result;
    else
      out[first + c] = to_small<T>(result);
  }
}

template <class Widening, class T, class I, class Take>
void take_rows(const Bag<T, I>& bag, T* out, const Take& take) {
  constexpr int lanes = 32;
  index_t first = 0;
  for (; first + lanes <= bag.width; first += lanes)
    take_columns<Widening, lanes, false>(bag, first, lanes, out, take);
  if (first < bag.width)
    take_columns<Widening, lanes, true>(bag, first, bag.width - first, out, take);
}

/// Takes rows in order. f16 and bf16 are computed in float and rounded once.
template <class Widening, class T, class I>
void reduce_bag(const Bag<T, I>& bag, T* out) {
  using A = Wide<T>;
  if (bag.mode == Mode::max)
    take_rows<Widening>(bag, out, [](A value, A x, A) { return greater_of(value, x); });
  else if (bag.weight != nullptr)
    take_rows<Widening>(bag, out, [](A value, A x, A weight) { return value + x * weight; });
  else
    take_rows<Widening>(bag, out, [](A value, A x, A) { return value + x; });
}

template <class Loops, class Widening, class T, class I>
Error forward(Context& context, View<const T> weight, View<const I> indices, View<const I> offsets,
              bool, int64_t mode, bool, Maybe<View<const T>> per_sample_weights,
              bool include_last_offset, int64_t padding_idx, View<T> out, View<int64_t> bag_of,
              View<int64_t> sizes, View<int64_t> maxima) {
  const index_t count = indices.numel(), bags = out.size(0), width = out.size(1);
  TAPER_TRY(check_offsets(context, offsets, count, include_last_offset));
  TAPER_TRY(check_indices(context, indices, weight.size(0)));
  const T* const weights = per_sample_weights ? per_sample_weights->data() : nullptr;
  const index_t per_bag = bags > 0 ? pieces(count, bags) * width : 0;
  parallel_lines(context.threads, bags, per_bag, [&](index_t b) {
    const I* const starts = offsets.data();
    Bag<T, I> bag{weight.data(),
                  width,
                  indices.data(),
                  weights,
                  padding_idx,
                  static_cast<Mode>(mode),
                  count,
                  static_cast<index_t>(starts[b]),
                  b + 1 < offsets.numel() ? static_cast<index_t>(starts[b + 1]) : count,
                  0};
    for (index_t i = bag.begin; i < bag.end; ++i)
      bag_of.data()[i] = b, bag.taken += bag.word[i] != padding_idx;
    sizes.data()[b] = maxima.data()[b] = bag.taken;
    Loops::template call<reduce_bag<Widening, T, I>>(bag, out.data() + b * width);
  });
  return Error::ok;
}

}  // namespace taper::portable::embedding_bag
