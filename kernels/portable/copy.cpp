// clone, _to_copy, copy: copies and casts between any strides.
#include "taper/kernels/portable/copy.h"

#include <cstring>
#include <utility>

#include "taper/kernels/float8.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/movement.h"

namespace taper::portable {
namespace {

/// Splits the dimensions of two walks over the same elements until both have the same extents.
void align(const Walk& a, const Walk& b, Walk& a_cut, Walk& b_cut) {
  index_t sizes[max_rank], a_strides[max_rank], b_strides[max_rank];
  int rank = 0, i = a.rank - 1, j = b.rank - 1;
  index_t a_left = a.sizes[i], b_left = b.sizes[j], a_stride = a.strides[i],
          b_stride = b.strides[j];
  while (true) {
    const index_t n = a_left < b_left ? a_left : b_left;
    sizes[rank] = n, a_strides[rank] = a_stride, b_strides[rank] = b_stride, ++rank;
    a_left /= n, a_stride *= n, b_left /= n, b_stride *= n;
    if (a_left == 1) {
      if (--i < 0) break;
      a_left = a.sizes[i], a_stride = a.strides[i];
    }
    if (b_left == 1) {
      if (--j < 0) break;
      b_left = b.sizes[j], b_stride = b.strides[j];
    }
  }
  a_cut.rank = b_cut.rank = rank;
  for (int d = 0; d < rank; ++d) {
    const int k = rank - 1 - d;
    a_cut.sizes[d] = b_cut.sizes[d] = sizes[k];
    a_cut.strides[d] = a_strides[k], b_cut.strides[d] = b_strides[k];
  }
}

/// Before a loop over strides that are not 1. clang would add one for strides of 1, and unroll
/// both.
#ifdef __clang__
#define TAPER_STRIDED _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define TAPER_STRIDED
#endif

/// Copies n elements; strides are in elements.
template <int bytes>
inline void copy_line(const char* from, index_t from_stride, char* to, index_t to_stride,
                      index_t n) {
  if (from_stride == 1 && to_stride == 1) return copy_bytes(from, to, n * bytes);
  const Bytes<bytes>* x = reinterpret_cast<const Bytes<bytes>*>(from);
  Bytes<bytes>* y = reinterpret_cast<Bytes<bytes>*>(to);
  TAPER_STRIDED
  for (index_t i = 0; i < n; ++i) y[i * to_stride] = x[i * from_stride];
}

/// Writes n dense elements to a walk, from its element number `first` on.
void write_block(char* data, const Walk& walk, int bytes, index_t first, index_t n,
                 const char* from) {
  const int inner = walk.rank - 1;
  Cursor to(walk, first);
  while (n > 0) {
    const index_t run = to.left(inner) < n ? to.left(inner) : n;
    switch (bytes) {
      case 1:
        copy_line<1>(from, 1, data + to.offset(), walk.strides[inner], run);
        break;
      case 2:
        copy_line<2>(from, 1, data + to.offset() * 2, walk.strides[inner], run);
        break;
      case 4:
        copy_line<4>(from, 1, data + to.offset() * 4, walk.strides[inner], run);
        break;
      default:
        copy_line<8>(from, 1, data + to.offset() * 8, walk.strides[inner], run);
    }
    from += run * bytes, n -= run;
    to.advance(inner, run);
  }
}

/// Sixteen bytes of each of three planes of four-byte elements, to channels last.
inline void interleave_twelve(const char* from, index_t plane, char* to) {
  typedef uint32_t Vector __attribute__((vector_size(16)));
  Vector a, b, c;
  std::memcpy(&a, from, 16), std::memcpy(&b, from + plane, 16),
      std::memcpy(&c, from + 2 * plane, 16);
  const Vector ca = __builtin_shufflevector(c, a, 0, 0, 5, 5),
               bc = __builtin_shufflevector(b, c, 1, 1, 5, 5);
  const Vector ca_last = __builtin_shufflevector(c, a, 2, 2, 7, 7),
               bc_last = __builtin_shufflevector(b, c, 3, 3, 7, 7);
  const Vector out[3] = {
      __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 4, 1, 5), ca, 0, 1, 4, 6),
      __builtin_shufflevector(bc, __builtin_shufflevector(a, b, 2, 6, 3, 7), 0, 2, 4, 5),
      __builtin_shufflevector(ca_last, bc_last, 0, 2, 4, 6)};
  std::memcpy(to, out, sizeof out);
}

/// Copies `rows` dense rows, `row` elements apart, so that each becomes a column: a picture's
/// planes to channels last.
template <int bytes, int rows>
void interleave(const char* from, index_t row, char* to, index_t n) {
  const Bytes<bytes>* __restrict x = reinterpret_cast<const Bytes<bytes>*>(from);
  Bytes<bytes>* __restrict y = reinterpret_cast<Bytes<bytes>*>(to);
  index_t i = 0;
  if constexpr (bytes == 4 && rows == 3)
    for (; i + 4 <= n; i += 4)
      interleave_twelve(from + i * bytes, row * bytes, to + i * rows * bytes);
  for (; i < n; ++i)
    for (int r = 0; r < rows; ++r) y[i * rows + r] = x[r * row + i];
}

/// Copies elements [first, end) between two walks with the same extents: line by line, or many
/// lines of a plane at once.
template <int bytes>
void copy_lines(const char* from, const Walk& from_walk, char* to, const Walk& to_walk,
                index_t first, index_t end) {
  const int line = from_walk.rank - 1, plane = line - 1;
  const index_t length = from_walk.sizes[line], from_step = from_walk.strides[line],
                to_step = to_walk.strides[line];
  Cursor x(from_walk, first), y(to_walk, first);
  for (index_t at = first; at < end;) {
    const char* source = from + x.offset() * bytes;
    char* target = to + y.offset() * bytes;
    index_t lines = plane < 0 || x.position(line) != 0 ? 0 : (end - at) / length, n = length;
    index_t from_line = 0, to_line = 0;
    const bool whole = lines > 0;
    if (whole) {
      if (lines > x.left(plane)) lines = x.left(plane);
      from_line = from_walk.strides[plane] * bytes, to_line = to_walk.strides[plane] * bytes;
    } else {
      lines = 1, n = x.left(line) < end - at ? x.left(line) : end - at;
    }
    const bool gathers = from_line == bytes && to_step == 1 && to_line == length * bytes;
    if (gathers && length == 2)
      interleave<bytes, 2>(source, from_step, target, lines);
    else if (gathers && length == 3)
      interleave<bytes, 3>(source, from_step, target, lines);
    else
      for (index_t i = 0; i < lines; ++i, source += from_line, target += to_line)
        copy_line<bytes>(source, from_step, target, to_step, n);
    const int moved = whole ? plane : line;
    x.advance(moved, whole ? lines : n), y.advance(moved, whole ? lines : n);
    at += lines * n;
  }
}
void copy_lines(int bytes, const char* from, const Walk& from_walk, char* to, const Walk& to_walk,
                index_t first, index_t end) {
  switch (bytes) {
    case 1:
      return copy_lines<1>(from, from_walk, to, to_walk, first, end);
    case 2:
      return copy_lines<2>(from, from_walk, to, to_walk, first, end);
    case 4:
      return copy_lines<4>(from, from_walk, to, to_walk, first, end);
    default:
      return copy_lines<8>(from, from_walk, to, to_walk, first, end);
  }
}

// ---- transposition: source and result are dense along different dimensions ----

// A row of a tile is whole cache lines in the source and in the result.
constexpr index_t tile = 32, tile_rows = 64;

/// A dense result (outer, rows, columns). In the source, rows lie densely and columns are `column`
/// elements apart.
struct Transposition {
  Walk outer;
  index_t count = 0, rows, columns, column;
};

bool is_transposition(const Walk& from, const Walk& to, Transposition& t) {
  if (!to.is_linear() || from.rank < 2 || from.strides[from.rank - 1] <= 1) return false;
  const int last = from.rank - 1;
  int dense = -1;
  for (int d = 0; d < last; ++d)
    if (from.strides[d] == 1) dense = d;
  if (dense < 0 || from.sizes[dense] < 4 || from.sizes[last] < 4) return false;
  t.rows = from.sizes[dense], t.columns = from.sizes[last], t.column = from.strides[last];
  t.count = 1;
  t.outer = Walk();
  t.outer.rank = from.rank - 1;  // the result's rows without the dense dimension
  for (int d = 0; d < last; ++d) {
    t.outer.sizes[d] = d == dense ? 1 : from.sizes[d], t.outer.strides[d] = from.strides[d];
    t.count *= t.outer.sizes[d];
  }
  return true;
}

/// Gives where row 0 of outer element i begins in the source (`from`) and in the result (`to`), and
/// the distance `row` between rows of the result.
void place_of(const Transposition& t, index_t i, index_t& from, index_t& to, index_t& row) {
  index_t stride = t.columns;
  from = to = 0, row = 0;
  for (int d = t.outer.rank - 1; d >= 0; --d) {
    const bool dense = t.outer.strides[d] == 1 && row == 0 && t.outer.sizes[d] == 1;
    if (dense) {
      row = stride, stride *= t.rows;
      continue;
    }
    const index_t at = i % t.outer.sizes[d];
    i /= t.outer.sizes[d];
    from += at * t.outer.strides[d], to += at * stride, stride *= t.outer.sizes[d];
  }
}

template <int bytes>
struct Unsigned;
#define TAPER_UNSIGNED(bytes_, ...)                          \
  template <>                                                \
  struct Unsigned<bytes_> {                                  \
    using Element = uint##__VA_ARGS__##_t;                   \
    typedef Element Vector __attribute__((vector_size(16))); \
  };
TAPER_UNSIGNED(1, 8)
TAPER_UNSIGNED(2, 16)
TAPER_UNSIGNED(4, 32)
TAPER_UNSIGNED(8, 64)
#undef TAPER_UNSIGNED

/// Takes elements of a and b in turn, from their lower (or upper) halves.
template <class V, bool upper, size_t... i>
V interleave(V a, V b, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i), first = upper ? n / 2 : 0;
  return __builtin_shufflevector(a, b, (first + i / 2 + (i % 2) * n)...);
}

/// Transposes a square of n by n elements, where n elements are 16 bytes, in log2(n) rounds of
/// interleaving.
template <int bytes>
void transpose_square(const char* from, index_t from_row, char* to, index_t to_row) {
  using V = typename Unsigned<bytes>::Vector;
  constexpr int n = 16 / bytes;
  using Indices = std::make_index_sequence<n>;
  V line[n], next[n];
  for (int r = 0; r < n; ++r) std::memcpy(&line[r], from + r * from_row, 16);
  for (int round = 1; round < n; round *= 2) {
    for (int r = 0; r < n / 2; ++r) {
      next[2 * r] = interleave<V, false>(line[r], line[r + n / 2], Indices());
      next[2 * r + 1] = interleave<V, true>(line[r], line[r + n / 2], Indices());
    }
    for (int r = 0; r < n; ++r) line[r] = next[r];
  }
  for (int r = 0; r < n; ++r) std::memcpy(to + r * to_row, &line[r], 16);
}

/// Squares at the edges move back into the tile, so some elements are written twice. The result's
/// rows are gathered in a buffer, because cache lines that lie a power of two apart would evict
/// each other from the first-level cache. `ahead` is the tile to fetch for the next call, or
/// nullptr.
template <int bytes>
void transpose_tile(const char* from, index_t column, index_t rows, index_t columns, char* to,
                    index_t row, const char* ahead) {
  constexpr index_t n = 16 / bytes, size = tile * bytes;
  alignas(64) char out[tile_rows][size];
  if (rows < n || columns < n) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < columns; ++c)
        std::memcpy(to + (r * row + c) * bytes, from + (c * column + r) * bytes, bytes);
    return;
  }
  for (index_t i = 0; i < columns; i += n) {
    const index_t c = i + n <= columns ? i : columns - n;
    if (ahead != nullptr)
      for (index_t k = i; k < i + n; ++k)
        for (index_t at = 0; at < rows * bytes; at += 64)
          __builtin_prefetch(ahead + k * column * bytes + at, 0, 2);
    for (index_t begin = 0; begin < rows; begin += n) {
      const index_t r = begin + n <= rows ? begin : rows - n;
      transpose_square<bytes>(from + (c * column + r) * bytes, column * bytes, out[r] + c * bytes,
                              size);
    }
  }
  if (columns == tile)
    for (index_t r = 0; r < rows; ++r) copy_bytes(out[r], to + r * row * bytes, size);
  else
    for (index_t r = 0; r < rows; ++r)
      std::memcpy(to + r * row * bytes, out[r], static_cast<size_t>(columns) * bytes);
}
void transpose_tile(int bytes, const char* from, index_t column, index_t rows, index_t columns,
                    char* to, index_t row, const char* ahead) {
  switch (bytes) {
    case 1:
      return transpose_tile<1>(from, column, rows, columns, to, row, ahead);
    case 2:
      return transpose_tile<2>(from, column, rows, columns, to, row, ahead);
    case 4:
      return transpose_tile<4>(from, column, rows, columns, to, row, ahead);
    default:
      return transpose_tile<8>(from, column, rows, columns, to, row, ahead);
  }
}

void transpose(const Threads* threads, const Transposition& t, int bytes, const char* from,
               char* to) {
  // a task takes some tiles side by side in the result; the next task continues in the same columns
  constexpr index_t group = 12 * tile;
  const index_t across = (t.columns + group - 1) / group,
                down = (t.rows + tile_rows - 1) / tile_rows;
  parallel_for(threads, t.count * across * down, [&](index_t task) {
    index_t source, target, row;
    place_of(t, task / (across * down), source, target, row);
    const index_t r = task % down * tile_rows,
                  rows = t.rows - r < tile_rows ? t.rows - r : tile_rows;
    const index_t begin = task / down % across * group,
                  end = t.columns - begin < group ? t.columns : begin + group;
    for (index_t c = begin; c < end; c += tile) {
      const char* at = from + (source + r + c * t.column) * bytes;
      transpose_tile(bytes, at, t.column, rows, end - c < tile ? end - c : tile,
                     to + (target + r * row + c) * bytes, row,
                     end - c > tile ? at + tile * t.column * bytes : nullptr);
    }
  });
}

constexpr bool is_whole(DType d) {
  return d == DType::boolean || is_integral(d) || is_wide_unsigned(d);
}
constexpr bool is_real(DType d) { return is_floating(d) || is_float8(d); }

/// Whether an element is the same bytes in both dtypes.
bool same_bytes(DType from, DType to) {
  if (from == to) return true;
  return is_whole(from) && is_whole(to) && to != DType::boolean &&
         size_bytes(from) == size_bytes(to);
}

/// A cast goes through a type that holds every value of the source. So a conversion in and one out
/// for each dtype are enough. A u64 is rounded once to f32, as in PyTorch.
DType way_between(DType from, DType to) {
  if (is_real(to) && (is_real(from) || from == DType::u64))
    return from == DType::f64 || to == DType::f64 ? DType::f64 : DType::f32;
  return is_real(from) ? DType::f64 : DType::i64;
}

}  // namespace

void copy_elements(const Threads* threads, const TensorRef& from, const Walk& from_walk, void* data,
                   DType dtype, const Walk& to, index_t count) {
  if (count == 0) return;
  const int bytes = size_bytes(dtype);
  char* const target = static_cast<char*>(data);
  const auto in_tasks = [&](const auto& body) {
    parallel_for(threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
      const index_t begin = task * pointwise_grain;
      body(begin, count - begin < pointwise_grain ? count : begin + pointwise_grain);
    });
  };
  if (same_bytes(from.dtype, dtype)) {
    const char* const source = static_cast<const char*>(from.data);
    if (source == target && from_walk.is_linear() && to.is_linear()) return;
    Transposition t;
    if (count > tile && is_transposition(from_walk, to, t))
      return transpose(threads, t, bytes, source, target);
    Walk from_cut, to_cut;
    align(from_walk, to, from_cut, to_cut);
    return in_tasks([&](index_t begin, index_t end) {
      copy_lines(bytes, source, from_cut, target, to_cut, begin, end);
    });
  }
  const DType through = way_between(from.dtype, dtype);
  const Source source(from, from_walk, through);
  const Store store = storer(through, dtype);
  in_tasks([&](index_t begin, index_t end) {
    alignas(16) char buffers[2][block_bytes];
    constexpr index_t block = block_size<int64_t>;
    for (index_t at = begin; at < end; at += block) {
      const index_t n = end - at < block ? end - at : block;
      const void* x = read_block(source, at, n, buffers[0]);
      if (to.is_linear()) {
        store(x, n, target + at * bytes);
      } else {
        store(x, n, buffers[1]);
        write_block(target, to, bytes, at, n, buffers[1]);
      }
    }
  });
}

namespace {

/// The walks of source and result. The result is dense.
struct Copy {
  static constexpr uint32_t overwrites = 1;
  Walk from, to;
};

Walk dense_walk(index_t count) {
  Walk walk;
  walk.add(count, 1);
  return walk;
}

Error prepare_clone(Context&, Copy& plan, AnyView<const AnyElement> self, View<AnyElement> out) {
  plan = {Walk::of(self.shape()), dense_walk(out.numel())};
  return Error::ok;
}
Error clone_(Context& context, const Copy& plan, AnyView<const AnyElement> self,
             View<AnyElement> out) {
  copy_elements(context.threads, *self.ref, plan.from, out.ref->data, out.dtype(), plan.to,
                out.numel());
  return Error::ok;
}
Error prepare_cast(Context&, Copy& plan, AnyView<const AnyElement> self, Maybe<DType>,
                   View<AnyElement> out) {
  plan = {Walk::of(self.shape()), dense_walk(out.numel())};
  return Error::ok;
}
Error cast(Context& context, const Copy& plan, AnyView<const AnyElement> self, Maybe<DType>,
           View<AnyElement> out) {
  copy_elements(context.threads, *self.ref, plan.from, out.ref->data, out.dtype(), plan.to,
                out.numel());
  return Error::ok;
}

struct CopyFrom {
  static constexpr uint32_t overwrites = 1;  // its elements are not read
  Walk from, to;
};
Error prepare_copy(Context&, CopyFrom& plan, AnyView<const AnyElement>,
                   AnyView<const AnyElement> src, View<AnyElement> out) {
  plan = {Walk::broadcast(src.shape(), out.shape()), dense_walk(out.numel())};
  return Error::ok;
}
Error copy_(Context& context, const CopyFrom& plan, AnyView<const AnyElement>,
            AnyView<const AnyElement> src, View<AnyElement> out) {
  copy_elements(context.threads, *src.ref, plan.from, out.ref->data, out.dtype(), plan.to,
                out.numel());
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(clone, any, prepare_clone, clone_)
TAPER_KERNEL(_to_copy, any, prepare_cast, cast)
TAPER_KERNEL(copy, any, prepare_copy, copy_)

}  // namespace taper::portable
