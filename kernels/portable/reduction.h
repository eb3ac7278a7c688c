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
// count. Pieces are joined pairwise, as blocks are. Shorter pieces of 2^n blocks therefore give the
// same bits to sums of rows.
#pragma once
#include <cstring>
#include <type_traits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

struct Reduction {
  Walk walk;             ///< rows: over (results, reduced); columns: over (outer, reduced, inner)
  index_t outer, inner;  ///< results = outer * inner; inner is 1 for rows
  index_t reduced;       ///< elements of one result
  bool rows;
  index_t pieces, piece;  ///< of one result, and elements in each but the last
  /// Rows: how many results have their elements side by side in memory, as the channels of an image
  /// that lie last do; each result's own elements are equally far from each other. 1: none.
  index_t beside;

  index_t results() const { return outer * inner; }
};

/// Elements that one task sums for one result (rows) …
inline constexpr index_t piece_length = 16384;
/// … and side by side (columns).
inline constexpr index_t tile_width = 128;
/// Rows whose elements lie side by side and that are summed together.
inline constexpr index_t beside_width = 64;

/// Rows that lie beside each other are cut further, as long as the values of their pieces are few.
inline constexpr index_t most_beside_pieces = 16, most_beside_values = 16384;

/// The most values of pieces that are kept until they are joined. Does not shrink if the shape
/// grows.
inline index_t partial_values(const Reduction& plan) {
  const index_t results = plan.results(), whole = plan.pieces > 1 ? results * plan.pieces : 0;
  if (plan.beside <= 1 || results == 0) return whole;
  const index_t blocks = (plan.reduced + tile_width - 1) / tile_width,
                each = blocks < most_beside_pieces ? blocks : most_beside_pieces,
                finer = results < most_beside_values / each ? results * each : most_beside_values;
  return whole > finer ? whole : finer;
}

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

/// Rows that lie side by side: `width` results of n elements, `stride` apart, at most a tile. Each
/// one's additions are those of reduce_row.
template <class Op, class T>
void reduce_rows_beside(const Op& op, const T* x, index_t stride, index_t n, index_t width,
                        const T* shift, T* result) {
  constexpr index_t lanes = 16, block = tile_width;
  static_assert(piece_length / block < 256);
  T sums[lanes][beside_width], levels[9][beside_width];
  uint64_t blocks = 0;
  for (index_t left = n; left > 0; left -= block, x += block * stride) {
    const index_t count = left < block ? left : block;
    for (auto& lane : sums)
      for (index_t c = 0; c < width; ++c) lane[c] = Op::identity();
    for (index_t i = 0; i < count; ++i) {
      const T* element = x + i * stride;
      T* lane = sums[i % lanes];
      TAPER_INDEPENDENT_ITERATIONS
      for (index_t c = 0; c < width; ++c)
        lane[c] = op.combine(lane[c], op.map(element[c], Op::shifts ? shift[c] : T()));
    }
    for (index_t k = count % lanes; k > 0 && k < lanes; ++k) {
      TAPER_INDEPENDENT_ITERATIONS
      for (index_t c = 0; c < width; ++c) sums[k][c] = op.combine(sums[k][c], Op::identity());
    }
    for (index_t half = lanes / 2; half > 0; half /= 2)
      for (index_t k = 0; k < half; ++k) {
        T *low = sums[k], *high = sums[k + half];
        TAPER_INDEPENDENT_ITERATIONS
        for (index_t c = 0; c < width; ++c) low[c] = op.combine(low[c], high[c]);
      }
    // as class Pairwise does
    int level = 0;
    for (uint64_t b = blocks++; b & 1; b >>= 1, ++level) {
      TAPER_INDEPENDENT_ITERATIONS
      for (index_t c = 0; c < width; ++c) sums[0][c] = op.combine(levels[level][c], sums[0][c]);
    }
    for (index_t c = 0; c < width; ++c) levels[level][c] = sums[0][c];
  }
  for (index_t c = 0; c < width; ++c) result[c] = Op::identity();
  for (int level = 0; blocks != 0; blocks >>= 1, ++level) {
    if ((blocks & 1) == 0) continue;
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t c = 0; c < width; ++c) result[c] = op.combine(levels[level][c], result[c]);
  }
}

/// `count` results, unfinished, whose elements, n each and at most a block, lie densely one behind
/// the other.
template <class Op, class T>
void reduce_short_rows(const Op& op, const T* x, index_t n, index_t count, const T* shift,
                       T* result) {
  for (index_t i = 0; i < count; ++i)
    if constexpr (Op::chooses) {
      Choice<Op, T> choice;
      choice.add(op, x + i * n, n);
      result[i] = choice.result(op);
    } else {
      result[i] = reduce_block(op, x + i * n, n, Op::shifts ? shift[i] : T());
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

/// The loops of one reduction over a type, behind pointers: what cuts the work and joins its parts
/// is compiled once for all. `op` is the operation, `shift` its entries from the first result on.
struct ReductionLoops {
  index_t bytes;  ///< of a value
  bool shifts;
  /// `count` results of `n` elements each, at most a block, that lie densely one behind the other.
  void (*short_rows)(const void* op, const Source& source, index_t first, index_t n, index_t count,
                     const void* shift, void* values);
  /// One result, or a piece of it: n elements.
  void (*row)(const void* op, const Source& source, index_t first, index_t n, const void* shift,
              void* value);
  /// `width` results whose elements lie side by side, or a piece of them; nullptr: one by one.
  void (*rows_beside)(const void* op, const Source& source, index_t first, index_t stride,
                      index_t n, index_t width, const void* shift, void* values);
  /// `width` results side by side, or a piece of them: n rows, `stride` apart.
  void (*columns)(const void* op, const Source& source, index_t first, index_t stride, index_t n,
                  index_t width, const void* shift, void* values);
  void (*join)(const void* op, const void* pieces, index_t n, void* value);
  void (*finish)(const void* op, void* values, index_t n);
};

/// Elements that are converted together where rows are short.
inline constexpr index_t converted = 16 * tile_width;

/// An operation whose loops are those of another one says so: `Sums`.
template <class Op, class = void>
struct sums_of {
  using type = Op;
};
template <class Op>
struct sums_of<Op, std::void_t<typename Op::Sums>> {
  using type = typename Op::Sums;
};

template <class Loops, class Op, class T>
struct LoopsOf {
  using Sums = typename sums_of<Op>::type;
  static const Sums& sums(const void* op) { return *static_cast<const Op*>(op); }

  static void short_rows(const void* op, const Source& source, index_t first, index_t n,
                         index_t count, const void* shift, void* values) {
    T buffer[converted];
    const void* const x =
        source.is_direct() ? source.at(first) : read_block(source, first, count * n, buffer);
    Loops::template call<reduce_short_rows<Sums, T>>(sums(op), static_cast<const T*>(x), n, count,
                                                     static_cast<const T*>(shift),
                                                     static_cast<T*>(values));
  }
  static void row(const void* op, const Source& source, index_t first, index_t n, const void* shift,
                  void* value) {
    *static_cast<T*>(value) = Loops::template call<reduce_row<Sums, T>>(
        sums(op), source, first, n, Op::shifts ? *static_cast<const T*>(shift) : T());
  }
  static void rows_beside(const void* op, const Source& source, index_t first, index_t stride,
                          index_t n, index_t width, const void* shift, void* values) {
    if constexpr (!Op::chooses)
      Loops::template call<reduce_rows_beside<Sums, T>>(
          sums(op), static_cast<const T*>(source.at(first)), stride, n, width,
          static_cast<const T*>(shift), static_cast<T*>(values));
  }
  static void columns(const void* op, const Source& source, index_t first, index_t stride,
                      index_t n, index_t width, const void* shift, void* values) {
    Loops::template call<reduce_columns<Sums, T>>(sums(op), source, first, stride, n, width,
                                                  static_cast<const T*>(shift),
                                                  static_cast<T*>(values));
  }
  static void join(const void* op, const void* pieces, index_t n, void* value) {
    Pairwise<Sums, T> all;
    for (index_t i = 0; i < n; ++i) all.add(sums(op), static_cast<const T*>(pieces)[i]);
    *static_cast<T*>(value) = all.result(sums(op));
  }
  static void finish(const void* op, void* values, index_t n) {
    T* const v = static_cast<T*>(values);
    for (index_t i = 0; i < n; ++i) v[i] = static_cast<const Op*>(op)->finish(v[i]);
  }
  static constexpr ReductionLoops table{
      sizeof(T), Op::shifts, short_rows, row, Op::chooses ? nullptr : rows_beside,
      columns,   join,       finish};
};

/// Where finished results go: call(context, first result, n, values).
struct Emit {
  const void* context;
  void (*call)(const void* context, index_t at, index_t n, const void* values);
};

void reduce(const Threads* threads, const Reduction& plan, const Source& source, const void* op,
            const ReductionLoops& loops, const void* shift, void* partial, const Emit& emit);

}  // namespace internal

/// Reduces the elements of `source`. `Op`: T identity(), T combine(T, T), T map(T element, T
/// shift), `shifts` (map uses the result's entry in `shift`), `chooses` (combine gives one of its
/// arguments), T finish(T). `partial` has room for results() * pieces values if there are several
/// pieces. Calls emit(first result, n, values), in parallel.
template <class Loops, class Op, class T, class F>
void reduce(const Threads* threads, const Reduction& plan, const Source& source, const Op& op,
            const T* shift, T* partial, const F& emit) {
  internal::reduce(threads, plan, source, &op, internal::LoopsOf<Loops, Op, T>::table, shift,
                   partial, {&emit, [](const void* f, index_t at, index_t n, const void* values) {
                               (*static_cast<const F*>(f))(at, n, static_cast<const T*>(values));
                             }});
}

}  // namespace taper::portable
