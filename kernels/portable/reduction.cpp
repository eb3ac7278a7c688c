#include "taper/kernels/portable/reduction_functions.h"

namespace taper::portable {

uint32_t listed_dims(int rank, Span<const int64_t> dims) {
  if (dims.empty()) return all_dims(rank);
  uint32_t set = 0;
  for (int64_t dim : dims) set |= one_dim(rank, dim);
  return set;
}

Reduction plan_reduction(const Shape& shape, uint32_t dims) {
  Reduction plan{};
  plan.walk = Walk();
  plan.outer = plan.inner = plan.reduced = 1;
  int innermost = shape.rank - 1;
  while (innermost >= 0 && shape.sizes[innermost] == 1) --innermost;
  plan.rows = innermost < 0 || (dims >> innermost & 1) != 0;
  // kept dimensions behind the last reduced one stay innermost in the columns form
  int inner_begin = shape.rank;
  if (!plan.rows)
    while (inner_begin > 0 && (dims >> (inner_begin - 1) & 1) == 0) --inner_begin;
  for (int d = 0; d < inner_begin; ++d)
    if ((dims >> d & 1) == 0)
      plan.outer *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
  for (int d = 0; d < inner_begin; ++d)
    if ((dims >> d & 1) != 0)
      plan.reduced *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
  for (int d = inner_begin; d < shape.rank; ++d)
    plan.inner *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
  const int last = plan.walk.rank - 1;
  const bool lie_beside = plan.rows && last > 0 && plan.reduced > 1 &&
                          plan.walk.sizes[last] == plan.reduced && plan.walk.strides[last] != 1 &&
                          plan.walk.strides[last - 1] == 1;
  plan.beside = lie_beside ? plan.walk.sizes[last - 1] : 1;
  plan.piece = piece_length;
  plan.pieces = plan.reduced <= piece_length ? 1 : (plan.reduced + piece_length - 1) / piece_length;
  return plan;
}

internal::Runs::Runs(const Source& source, index_t first)
    : source_(source), at_(*source.walk, first) {}

const void* internal::Runs::next(index_t most, void* buffer, index_t& count) {
  const int inner = source_.walk->rank - 1;
  const bool dense = !source_.converts && source_.walk->strides[inner] == 1;
  const index_t left = at_.left(inner);
  if (dense && (left >= most || left >= tile_width)) {
    const void* x = source_.at(at_.offset());
    count = left >= most ? most : left / tile_width * tile_width;
    at_.advance(inner, count);
    return x;
  }
  // where dense elements end within a block, that block is copied
  count = dense ? tile_width : buffered;
  if (count > most) count = most;
  char* to = static_cast<char*>(buffer);
  for (index_t n = count, run; n > 0; n -= run) {
    run = at_.left(inner) < n ? at_.left(inner) : n;
    source_.load(source_.at(at_.offset()), source_.walk->strides[inner], run, to);
    to += run * source_.buffer_bytes;
    at_.advance(inner, run);
  }
  return buffer;
}

void internal::convert_rows(const Source& source, index_t first, index_t stride, index_t n,
                            index_t width, void* rows) {
  const bool linear = source.walk->is_linear();
  char* to = static_cast<char*>(rows);
  for (index_t r = 0; r < n; ++r, first += stride, to += tile_width * source.buffer_bytes)
    if (linear)
      source.load(source.at(first), 1, width, to);
    else
      read_block(source, first, width, to);
}

namespace {

/// Cuts rows that lie beside each other into shorter pieces. Of an image with channels last, each
/// thread then sums some of the rows: those that it wrote.
void cut_finer(Reduction& plan) {
  if (plan.reduced <= 4 * tile_width) return;
  index_t piece = plan.piece;
  while (piece > tile_width && plan.reduced < most_beside_pieces / 2 * piece) piece /= 2;
  const index_t pieces = (plan.reduced + piece - 1) / piece;
  if (plan.results() <= most_beside_values / pieces) plan.piece = piece, plan.pieces = pieces;
}

/// Calls `body(result index, width, piece, first reduced element, count)` for every tile and piece,
/// in parallel. A tile has at most `tile` of the `line` results that are computed side by side.
template <class Body>
void for_each_piece(const Threads* threads, const Reduction& plan, index_t line, index_t tile,
                    const Body& body) {
  const index_t tiles = (line + tile - 1) / tile;
  const index_t items = plan.results() / line * tiles * plan.pieces;
  const index_t work = (plan.reduced < plan.piece ? plan.reduced : plan.piece) * tile;
  const index_t items_per_task =
      work < 2 * piece_length ? 2 * piece_length / (work > 0 ? work : 1) : 1;
  parallel_for(threads, (items + items_per_task - 1) / items_per_task, [&](index_t task) {
    const index_t end = (task + 1) * items_per_task < items ? (task + 1) * items_per_task : items;
    index_t item = task * items_per_task, at = item % tiles, piece = item / tiles % plan.pieces,
            row = item / tiles / plan.pieces;
    for (; item < end; ++item) {
      const index_t left = line - at * tile, from = piece * plan.piece;
      const index_t count = plan.reduced - from < plan.piece ? plan.reduced - from : plan.piece;
      body(row * line + at * tile, left < tile ? left : tile, piece, from, count);
      if (++at < tiles) continue;
      at = 0;
      if (++piece == plan.pieces) piece = 0, ++row;
    }
  });
}

}  // namespace

void internal::reduce(const Threads* threads, const Reduction& whole, const Source& source,
                      const void* op, const ReductionLoops& loops, const void* shift, void* partial,
                      const Emit& emit) {
  Reduction plan = whole;
  const bool beside = plan.beside > 1 && loops.rows_beside != nullptr && !source.converts;
  if (beside) cut_finer(plan);
  const index_t bytes = loops.bytes, results = plan.results();
  const auto shift_of = [&](index_t result) {
    return loops.shifts ? static_cast<const char*>(shift) + result * bytes : nullptr;
  };
  using Values = char[tile_width * sizeof(int64_t)];
  // short rows that lie one behind the other, converted together if need be
  if (plan.rows && source.walk->is_linear() && plan.reduced > 0 && plan.reduced <= tile_width) {
    const index_t fitting = source.is_direct() ? tile_width : converted / plan.reduced,
                  tile = fitting < tile_width ? fitting : tile_width;
    const index_t tiles = 1 + 2 * piece_length / (plan.reduced * tile), per_task = tiles * tile;
    parallel_for(threads, (results + per_task - 1) / per_task, [&](index_t task) {
      const index_t begin = task * per_task,
                    end = begin + per_task < results ? begin + per_task : results;
      for (index_t first = begin; first < end; first += tile) {
        const index_t count = end - first < tile ? end - first : tile;
        alignas(int64_t) Values values;
        loops.short_rows(op, source, first * plan.reduced, plan.reduced, count, shift_of(first),
                         values);
        loops.finish(op, values, count);
        emit.call(emit.context, first, count, values);
      }
    });
    return;
  }
  char* const pieces = static_cast<char*>(partial);
  const index_t line = beside ? plan.beside : plan.inner, tile = beside      ? beside_width
                                                                 : plan.rows ? 1
                                                                             : tile_width;
  const index_t stride = plan.walk.strides[plan.walk.rank - 1];
  for_each_piece(threads, plan, line > 0 ? line : 1, tile,
                 [&](index_t result, index_t width, index_t piece, index_t from, index_t count) {
                   alignas(int64_t) Values values;
                   if (beside) {
                     const index_t first = plan.walk.offset_of(result * plan.reduced);
                     loops.rows_beside(op, source, first + from * stride, stride, count, width,
                                       shift_of(result), values);
                   } else if (plan.rows) {
                     loops.row(op, source, result * plan.reduced + from, count, shift_of(result),
                               values);
                   } else {
                     const index_t row = result / plan.inner, column = result % plan.inner;
                     loops.columns(op, source, (row * plan.reduced + from) * plan.inner + column,
                                   plan.inner, count, width, shift_of(result), values);
                   }
                   if (plan.pieces == 1) {
                     loops.finish(op, values, width);
                     emit.call(emit.context, result, width, values);
                     return;
                   }
                   for (index_t k = 0; k < width; ++k)
                     std::memcpy(pieces + ((result + k) * plan.pieces + piece) * bytes,
                                 values + k * bytes, static_cast<size_t>(bytes));
                 });
  if (plan.pieces == 1) return;
  for (index_t result = 0; result < results; ++result) {
    alignas(int64_t) char value[sizeof(int64_t)];
    loops.join(op, pieces + result * plan.pieces * bytes, plan.pieces, value);
    loops.finish(op, value, 1);
    emit.call(emit.context, result, 1, value);
  }
}

#define TAPER_REDUCTION(op, variant, ...)                             \
  TAPER_KERNEL(op, variant, Reduce<PlainLoops, __VA_ARGS__>::prepare, \
               Reduce<PlainLoops, __VA_ARGS__>::run)
#define TAPER_REDUCTION_FLOATING(op, Op, ...)      \
  TAPER_REDUCTION(op, f32, Op, float __VA_ARGS__)  \
  TAPER_REDUCTION(op, f64, Op, double __VA_ARGS__) \
  TAPER_REDUCTION(op, small_float, Op, SmallFloat __VA_ARGS__)
#define TAPER_REDUCTION_NUMERIC(op, Op, ...)        \
  TAPER_REDUCTION_FLOATING(op, Op, __VA_ARGS__)     \
  TAPER_REDUCTION(op, i64, Op, int64_t __VA_ARGS__) \
  TAPER_REDUCTION(op, small_integer, Op, SmallInteger __VA_ARGS__)
#define TAPER_COMMA ,

TAPER_REDUCTION_NUMERIC(sum_dim_IntList, Sum,
                        TAPER_COMMA MaybeDims TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(nansum, SumOfNumbers,
                        TAPER_COMMA MaybeDims TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_FLOATING(mean, Mean, TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_FLOATING(mean_dim, Mean,
                         TAPER_COMMA MaybeDims TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(prod, Product, TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(prod_dim_int, Product,
                        TAPER_COMMA int64_t TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(amax, Largest, TAPER_COMMA DimList_ TAPER_COMMA bool)
TAPER_REDUCTION_NUMERIC(amin, Smallest, TAPER_COMMA DimList_ TAPER_COMMA bool)
TAPER_REDUCTION_NUMERIC(max, Largest)
TAPER_REDUCTION_NUMERIC(min, Smallest)
#define TAPER_TRUTH(op, Op)                                               \
  TAPER_REDUCTION(op, bool, Op, bool)                                     \
  TAPER_REDUCTION(op, u8, Op, uint8_t)                                    \
  TAPER_REDUCTION(op##_dim, bool, Op, bool, int64_t, bool)                \
  TAPER_REDUCTION(op##_dim, u8, Op, uint8_t, int64_t, bool)               \
  TAPER_KERNEL(op##_dims, bool, OverDims<PlainLoops, Op, bool>::prepare,  \
               OverDims<PlainLoops, Op, bool>::run)                       \
  TAPER_KERNEL(op##_dims, u8, OverDims<PlainLoops, Op, uint8_t>::prepare, \
               OverDims<PlainLoops, Op, uint8_t>::run)
TAPER_TRUTH(any, AnyOf)
TAPER_TRUTH(all, AllOf)

#define TAPER_VECTOR_NORM(variant, E)                                             \
  TAPER_KERNEL(linalg_vector_norm, variant, (VectorNorm<PlainLoops, E>::prepare), \
               (VectorNorm<PlainLoops, E>::run))
TAPER_VECTOR_NORM(f32, float)
TAPER_VECTOR_NORM(f64, double)
TAPER_VECTOR_NORM(small_float, SmallFloat)

#define TAPER_VARIANCE(op, variant, ...)                                \
  TAPER_KERNEL(op, variant, Variance<PlainLoops, __VA_ARGS__>::prepare, \
               Variance<PlainLoops, __VA_ARGS__>::run)
TAPER_VARIANCE(var_correction, f32, float, Maybe<Scalar>)
TAPER_VARIANCE(var_correction, f64, double, Maybe<Scalar>)
TAPER_VARIANCE(var_correction, small_float, SmallFloat, Maybe<Scalar>)
TAPER_VARIANCE(std_correction, f32, float, Maybe<Scalar>, Spread::deviation)
TAPER_VARIANCE(std_correction, f64, double, Maybe<Scalar>, Spread::deviation)
TAPER_VARIANCE(std_correction, small_float, SmallFloat, Maybe<Scalar>, Spread::deviation)
TAPER_VARIANCE(var_dim, f32, float, bool)
TAPER_VARIANCE(var_dim, f64, double, bool)
TAPER_VARIANCE(var_dim, small_float, SmallFloat, bool)

#define TAPER_VARIANCE_AND_MEAN(op, variant, ...)                                \
  TAPER_KERNEL(op, variant, (VarianceAndMean<PlainLoops, __VA_ARGS__>::prepare), \
               (VarianceAndMean<PlainLoops, __VA_ARGS__>::run))
TAPER_VARIANCE_AND_MEAN(var_mean_correction, f32, float, Spread::variance)
TAPER_VARIANCE_AND_MEAN(var_mean_correction, f64, double, Spread::variance)
TAPER_VARIANCE_AND_MEAN(var_mean_correction, small_float, SmallFloat, Spread::variance)
TAPER_VARIANCE_AND_MEAN(std_mean_correction, f32, float, Spread::deviation)
TAPER_VARIANCE_AND_MEAN(std_mean_correction, f64, double, Spread::deviation)
TAPER_VARIANCE_AND_MEAN(std_mean_correction, small_float, SmallFloat, Spread::deviation)

}  // namespace taper::portable
