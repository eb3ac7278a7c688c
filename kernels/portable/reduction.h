// One loop for every reduction over any set of dimensions.
//
// The order of the additions follows from the logical shape alone: not from strides, threads or the
// dtype's width. The reduced elements of a result are numbered in row-major order and cut into
// pieces of fixed length; a piece is summed in two ways:
//
//   rows     the innermost extent is reduced: blocks of 128 elements in 16 lanes, block results
//            pairwise; where nothing is rounded (amax), 64 lanes and no blocks
//   columns  the innermost extent is kept: 128 results side by side, three levels of partial sums
//            of 16 and 256 rows
//
// so that rounding errors grow with the logarithm, or the cube root, of the count instead of the
// count.
#pragma once
#include <cstring>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

struct Reduction {
  Walk walk;             ///< rows: over (results, reduced); columns: over (outer, reduced, inner)
  index_t outer, inner;  ///< results = outer * inner; inner is 1 for rows
  index_t reduced;       ///< elements of one result
  bool rows;
  index_t pieces;  ///< of one result

  index_t results() const { return outer * inner; }
};

/// Elements that one task sums for one result (rows) …
inline constexpr index_t piece_length = 16384;
/// … and side by side (columns).
inline constexpr index_t tile_width = 128;

/// `dims`: bit i set: dimension i is reduced.
Reduction plan_reduction(const Shape& shape, uint32_t dims);

/// Which dimensions an operator's parameters after `self` name. A list that is absent or empty
/// means all.
inline uint32_t all_dims(int rank) { return (1u << rank) - 1; }
inline uint32_t one_dim(int rank, int64_t dim) {
  return rank == 0 ? 0 : 1u << (dim < 0 ? dim + rank : dim);
}
uint32_t listed_dims(int rank, Span<const int64_t> dims);
template <class... P>
uint32_t reduced_dims(int rank, const P&...) {
  return all_dims(rank);
}
template <class... P>
uint32_t reduced_dims(int rank, int64_t dim, const P&...) {
  return one_dim(rank, dim);
}
template <class... P>
uint32_t reduced_dims(int rank, Span<const int64_t> dims, const P&...) {
  return listed_dims(rank, dims);
}
template <class... P>
uint32_t reduced_dims(int rank, const Maybe<Span<const int64_t>>& dims, const P&...) {
  return listed_dims(rank, dims ? *dims : Span<const int64_t>());
}

namespace internal {

/// Pairwise sums of a stream: `levels[k]` holds the sum of 2^k values where bit k of `count` is
/// set.
template <class Op, class T>
class Pairwise {
 public:
  void add(const Op& op, T value) {
    int k = 0;
    for (uint64_t c = count_; c & 1; c >>= 1, ++k) value = op.combine(levels_[k], value);
    levels_[k] = value;
    ++count_;
  }
  T result(const Op& op) const {
    T sum = Op::identity();
    int k = 0;
    for (uint64_t c = count_; c != 0; c >>= 1, ++k)
      if (c & 1) sum = op.combine(levels_[k], sum);
    return sum;
  }

 private:
  uint64_t count_ = 0;
  T levels_[40];
};

template <class Op, class T>
T reduce_block(const Op& op, const T* x, index_t n, T shift) {
  constexpr int lanes = 16;
  T sums[lanes];
  for (T& s : sums) s = Op::identity();
  index_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int k = 0; k < lanes; ++k) sums[k] = op.combine(sums[k], op.map(x[i + k], shift));
  if (const int rest = static_cast<int>(n - i); rest > 0) {
    TAPER_LANES
    for (int k = 0; k < lanes; ++k)
      sums[k] = op.combine(sums[k], k < rest ? op.map(x[i + k], shift) : Op::identity());
  }
  TAPER_UNROLLED
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) sums[k] = op.combine(sums[k], sums[k + width]);
  return sums[0];
}

/// A result that is one of its elements rounds nothing: it needs no pairs. Element i of a stream
/// goes to lane i % lanes; there are many, as a choice takes long.
template <class Op, class T>
class Choice {
 public:
  Choice() {
    for (auto& group : chosen_)
      for (T& c : group) c = Op::identity();
  }
  /// All calls but the last: of a multiple of 64 elements.
  void add(const Op& op, const T* x, index_t n) {
    index_t i = 0;
    T c[groups][lanes];  // in registers
    std::memcpy(c, chosen_, sizeof c);
    for (; i + groups * lanes <= n; i += groups * lanes) {
      TAPER_UNROLLED
      for (int g = 0; g < groups; ++g) {
        TAPER_LANES
        for (int k = 0; k < lanes; ++k)
          c[g][k] = op.combine(c[g][k], op.map(x[i + g * lanes + k], T()));
      }
    }
    std::memcpy(chosen_, c, sizeof c);
    for (int g = 0; i < n; ++g, i += lanes) {
      const int rest = n - i < lanes ? static_cast<int>(n - i) : lanes;
      TAPER_LANES
      for (int k = 0; k < lanes; ++k)
        chosen_[g][k] =
            op.combine(chosen_[g][k], k < rest ? op.map(x[i + k], T()) : Op::identity());
    }
  }
  T result(const Op& op) {
    for (int g = 1; g < groups; ++g) {
      TAPER_LANES
      for (int k = 0; k < lanes; ++k) chosen_[0][k] = op.combine(chosen_[0][k], chosen_[g][k]);
    }
    TAPER_UNROLLED
    for (int width = lanes / 2; width > 0; width /= 2)
      for (int k = 0; k < width; ++k)
        chosen_[0][k] = op.combine(chosen_[0][k], chosen_[0][k + width]);
    return chosen_[0][0];
  }

 private:
  static constexpr int groups = 4, lanes = 16;
  T chosen_[groups][lanes];
};

/// Elements of a source that are copied together.
inline constexpr index_t buffered = 8 * tile_width;

/// A source's elements from `first` on, run by run.
class Runs {
 public:
  Runs(const Source& source, index_t first);
  /// At most `most` elements: where they lie if they can be read there, else in `buffer`, which
  /// has room for `buffered`. `count`: how many, `most` or a multiple of tile_width.
  const void* next(index_t most, void* buffer, index_t& count);

 private:
  const Source& source_;
  Cursor at_;
};

/// Elements [first, first + n) of one result.
template <class Op, class T>
T reduce_row(const Op& op, const Source& source, index_t first, index_t n, T shift) {
  constexpr index_t block = tile_width;
  std::conditional_t<Op::chooses, Choice<Op, T>, Pairwise<Op, T>> all;
  const auto add = [&](const void* elements, index_t count) {
    const T* x = static_cast<const T*>(elements);
    if constexpr (Op::chooses) {
      all.add(op, x, count);
    } else {
      index_t i = 0;
      for (; i + block <= count; i += block) all.add(op, reduce_block(op, x + i, block, shift));
      if (i < count) all.add(op, reduce_block(op, x + i, count - i, shift));
    }
  };
  if (source.is_direct() || n == 0) {
    add(source.at(first), n);
    return all.result(op);
  }
  T buffer[buffered];
  Runs runs(source, first);
  for (index_t count; n > 0; n -= count) {
    const void* x = runs.next(n, buffer, count);
    add(x, count);
  }
  return all.result(op);
}

/// `count` results whose elements, n each and at most a block, lie densely one behind the other.
template <class Op, class T>
void reduce_short_rows(const Op& op, const T* x, index_t n, index_t count, const T* shift,
                       T* result) {
  for (index_t i = 0; i < count; ++i)
    if constexpr (Op::chooses) {
      Choice<Op, T> choice;
      choice.add(op, x + i * n, n);
      result[i] = op.finish(choice.result(op));
    } else {
      result[i] = op.finish(reduce_block(op, x + i * n, n, Op::shifts ? shift[i] : T()));
    }
}

/// Copies n rows of `width` elements, `stride` apart, to rows of tile_width in the type computed
/// on.
void convert_rows(const Source& source, index_t first, index_t stride, index_t n, index_t width,
                  void* rows);

/// `width` results side by side: rows [0, n), the first at element `first`, the next `stride`
/// elements on.
template <class Op, class T>
void reduce_columns(const Op& op, const Source& source, index_t first, index_t stride, index_t n,
                    index_t width, const T* shift, T* result) {
  constexpr index_t step = 16;
  T buffer[tile_width], levels[2][tile_width];
  const auto clear = [width](T* x) {
    for (index_t k = 0; k < width; ++k) x[k] = Op::identity();
  };
  const auto merge = [&](T* into, T* from) {
    for (index_t k = 0; k < width; ++k) into[k] = op.combine(into[k], from[k]);
    clear(from);
  };
  const T* dense = source.is_direct() ? static_cast<const T*>(source.at(first)) : nullptr;
  if constexpr (Op::chooses) {  // in whatever order
    clear(result);
    for (index_t i = 0; i < n; ++i) {
      const T* x =
          dense ? dense + i * stride
                : static_cast<const T*>(read_block(source, first + i * stride, width, buffer));
      TAPER_INDEPENDENT_ITERATIONS
      for (index_t k = 0; k < width; ++k) result[k] = op.combine(result[k], op.map(x[k], T()));
    }
    return;
  }
  clear(levels[0]), clear(levels[1]), clear(result);
  for (index_t i = 0; i < n;) {
    if (n - i >= step && (dense || source.converts)) {
      // a step's rows at once: the sums stay in registers
      T rows[step * tile_width];
      if (!dense) convert_rows(source, first + i * stride, stride, step, width, rows);
      const T* x = dense ? dense + i * stride : rows;
      const index_t next = dense ? stride : tile_width;
      TAPER_INDEPENDENT_ITERATIONS
      for (index_t k = 0; k < width; ++k) {
        const T s = Op::shifts ? shift[k] : T();
        T sum = Op::identity();
        _Pragma("GCC unroll 16") for (index_t r = 0; r < step; ++r) sum =
            op.combine(sum, op.map(x[r * next + k], s));
        levels[1][k] = op.combine(levels[1][k], sum);
      }
      i += step;
    } else {
      const T* x = static_cast<const T*>(read_block(source, first + i * stride, width, buffer));
      for (index_t k = 0; k < width; ++k)
        levels[0][k] = op.combine(levels[0][k], op.map(x[k], Op::shifts ? shift[k] : T()));
      if (++i % step != 0) continue;
      merge(levels[1], levels[0]);
    }
    if (i % (step * step) == 0) merge(result, levels[1]);
  }
  merge(levels[1], levels[0]);
  merge(result, levels[1]);
}

/// Calls `body(result index, width, piece, first reduced element, count)` for every tile and piece,
/// in parallel.
template <class Body>
void for_each_piece(const Threads* threads, const Reduction& plan, const Body& body) {
  const index_t tiles_across = plan.rows ? 1 : (plan.inner + tile_width - 1) / tile_width;
  const index_t items = plan.outer * tiles_across * plan.pieces;
  const index_t work =
      (plan.reduced < piece_length ? plan.reduced : piece_length) * (plan.rows ? 1 : tile_width);
  const index_t items_per_task =
      work < 2 * piece_length ? 2 * piece_length / (work > 0 ? work : 1) : 1;
  parallel_for(threads, (items + items_per_task - 1) / items_per_task, [&](index_t task) {
    const index_t end = (task + 1) * items_per_task < items ? (task + 1) * items_per_task : items;
    index_t item = task * items_per_task, piece = item % plan.pieces,
            tile = item / plan.pieces % tiles_across, row = item / plan.pieces / tiles_across;
    for (; item < end; ++item) {
      const index_t left = plan.inner - tile * tile_width, from = piece * piece_length;
      const index_t count = plan.reduced - from < piece_length ? plan.reduced - from : piece_length;
      body(row * plan.inner + tile * tile_width, left < tile_width ? left : tile_width, piece, from,
           count);
      if (++piece < plan.pieces) continue;
      piece = 0;
      if (++tile == tiles_across) tile = 0, ++row;
    }
  });
}

}  // namespace internal

/// Reduces the elements of `source`. `Op`: T identity(), T combine(T, T), T map(T element, T
/// shift), `shifts` (map uses the result's entry in `shift`), `chooses` (combine gives one of its
/// arguments), T finish(T). `partial` has room for
/// results() * pieces values if there are several pieces.
template <class Loops, class Op, class T, class Emit>
void reduce(const Threads* threads, const Reduction& plan, const Source& source, const Op& op,
            const T* shift, T* partial, const Emit& emit) {
  // short rows that lie one behind the other, converted together if need be
  if (plan.rows && source.walk->is_linear() && plan.reduced > 0 && plan.reduced <= tile_width) {
    constexpr index_t converted = 16 * tile_width;
    const bool direct = source.is_direct();
    const index_t fitting = direct ? tile_width : converted / plan.reduced,
                  tile = fitting < tile_width ? fitting : tile_width;
    const index_t results = plan.results(), tiles = 1 + 2 * piece_length / (plan.reduced * tile),
                  per_task = tiles * tile;
    parallel_for(threads, (results + per_task - 1) / per_task, [&](index_t task) {
      const index_t begin = task * per_task,
                    end = begin + per_task < results ? begin + per_task : results;
      T buffer[converted];
      for (index_t first = begin; first < end; first += tile) {
        const index_t count = end - first < tile ? end - first : tile;
        const void* x =
            direct ? source.at(first * plan.reduced)
                   : read_block(source, first * plan.reduced, count * plan.reduced, buffer);
        T values[tile_width];
        Loops::template call<internal::reduce_short_rows<Op, T>>(
            op, static_cast<const T*>(x), plan.reduced, count, Op::shifts ? shift + first : nullptr,
            values);
        emit(first, count, values);
      }
    });
    return;
  }
  internal::for_each_piece(
      threads, plan,
      [&](index_t result, index_t width, index_t piece, index_t from, index_t count) {
        T values[tile_width];
        const T* shifts = Op::shifts ? shift + result : nullptr;
        if (plan.rows) {
          values[0] = Loops::template call<internal::reduce_row<Op, T>>(
              op, source, result * plan.reduced + from, count, Op::shifts ? *shifts : T());
        } else {
          const index_t row = result / plan.inner, column = result % plan.inner;
          Loops::template call<internal::reduce_columns<Op, T>>(
              op, source, (row * plan.reduced + from) * plan.inner + column, plan.inner, count,
              width, shifts, values);
        }
        for (index_t k = 0; k < width; ++k) {
          if (plan.pieces > 1)
            partial[(result + k) * plan.pieces + piece] = values[k];
          else
            values[k] = op.finish(values[k]);
        }
        if (plan.pieces == 1) emit(result, width, values);
      });
  if (plan.pieces == 1) return;
  for (index_t result = 0; result < plan.results(); ++result) {
    internal::Pairwise<Op, T> sum;
    for (index_t piece = 0; piece < plan.pieces; ++piece)
      sum.add(op, partial[result * plan.pieces + piece]);
    const T value = op.finish(sum.result(op));
    emit(result, 1, &value);
  }
}

}  // namespace taper::portable
