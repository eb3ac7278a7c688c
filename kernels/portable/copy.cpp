// clone, _to_copy, copy: copies and casts of any strides.
#include "taper/kernels/portable/copy.h"

#include <cstring>
#include <utility>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/shapes/movement.h"

namespace taper::portable {
namespace {

template <int bytes>
void scatter(const void* from, index_t n, void* to, index_t stride) {
  const Bytes<bytes>* x = static_cast<const Bytes<bytes>*>(from);
  Bytes<bytes>* y = static_cast<Bytes<bytes>*>(to);
  for (index_t i = 0; i < n; ++i) y[i * stride] = x[i];
}

// Writes n dense elements from element `first` of a walk on, run by run.
void write_block(char* data, const Walk& walk, int element_bytes, index_t first, index_t n,
                 const char* from) {
  const int inner = walk.rank - 1;
  while (n > 0) {
    const index_t offset = walk.offset_of(first);
    index_t run = walk.rank == 1 ? n : walk.sizes[inner] - first % walk.sizes[inner];
    if (run > n) run = n;
    char* to = data + offset * element_bytes;
    const index_t stride = walk.strides[inner];
    if (stride == 1 || run == 1) {
      if (to != from) std::memcpy(to, from, static_cast<size_t>(run) * element_bytes);
    } else {
      switch (element_bytes) {
        case 1:
          scatter<1>(from, run, to, stride);
          break;
        case 2:
          scatter<2>(from, run, to, stride);
          break;
        case 4:
          scatter<4>(from, run, to, stride);
          break;
        default:
          scatter<8>(from, run, to, stride);
      }
    }
    from += run * element_bytes, first += run, n -= run;
  }
}

// ---- transposition: the source is dense along another dimension than the result
// -------------------------------------------------------

// A tile's rows are whole lines of the cache on both sides.
constexpr index_t tile = 32, tile_rows = 64;

/// A dense result (outer, rows, columns) whose columns lie `column` apart in the source and whose
/// rows lie densely there.
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
  t.outer.rank = from.rank - 1;  // the result's rows, but for the dense dimension
  for (int d = 0; d < last; ++d) {
    t.outer.sizes[d] = d == dense ? 1 : from.sizes[d], t.outer.strides[d] = from.strides[d];
    t.count *= t.outer.sizes[d];
  }
  return true;
}

/// Where the row 0 of outer element i begins in the dense result, and rows' distance there.
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

/// The lower (or upper) halves of a and b, element by element in turn.
template <class V, bool upper, size_t... i>
V interleave(V a, V b, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i), first = upper ? n / 2 : 0;
  return __builtin_shufflevector(a, b, (first + i / 2 + (i % 2) * n)...);
}

/// A square of n by n elements, n = 16 bytes of them, in log2(n) rounds of interleaving.
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

/// Copies `size` bytes, a number that the compiler knows.
template <index_t size>
void copy_line(const char* from, char* to) {
  for (index_t i = 0; i < size; i += 16) std::memcpy(to + i, from + i, 16);
}

/// Squares at the edges move back into the tile and write some elements twice. The result's rows
/// are gathered in a buffer: in the first-level cache lines that lie a power of two apart would
/// displace each other. `ahead`: the tile that will be asked for next, or nullptr.
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
    index_t r = 0;
    for (; r + n <= rows; r += n)
      transpose_square<bytes>(from + (c * column + r) * bytes, column * bytes, out[r] + c * bytes,
                              size);
    if (r < rows)
      transpose_square<bytes>(from + (c * column + rows - n) * bytes, column * bytes,
                              out[rows - n] + c * bytes, size);
  }
  if (columns == tile)
    for (index_t r = 0; r < rows; ++r) copy_line<size>(out[r], to + r * row * bytes);
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
  // a task: some tiles side by side in the result; the next one reads on in the same columns
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

/// The elements are the same bytes in both.
bool same_bytes(DType from, DType to) {
  return from == to || (from == DType::boolean && size_bytes(to) == 1);
}

}  // namespace

void copy_elements(const Threads* threads, const TensorRef& from, const Walk& from_walk, void* data,
                   DType dtype, const Walk& to, index_t count) {
  // A cast goes through a type that holds every value of the source: ten conversions in and ten
  // out, not a hundred.
  const bool casts = !same_bytes(from.dtype, dtype);
  const bool short_floats = is_floating(from.dtype) && from.dtype != DType::f64 &&
                            is_floating(dtype) && dtype != DType::f64;
  const DType through = !casts                    ? from.dtype
                        : short_floats            ? DType::f32
                        : is_floating(from.dtype) ? DType::f64
                                                  : DType::i64;
  const bool stores = casts && through != dtype;
  const Source source(from, from_walk, through);
  const Store store = storer(through, dtype);
  const int bytes = size_bytes(dtype);
  Transposition t;
  if (!casts && count > tile && is_transposition(from_walk, to, t))
    return transpose(threads, t, bytes, static_cast<const char*>(from.data),
                     static_cast<char*>(data));
  // an uncast block is as long as its source lies dense; others pass through buffers
  const index_t block = !casts && from_walk.is_linear() ? pointwise_grain : block_size<int64_t>;
  parallel_for(threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    alignas(16) char buffers[2][block_bytes];
    const index_t begin = task * pointwise_grain,
                  end = begin + pointwise_grain < count ? begin + pointwise_grain : count;
    for (index_t at = begin; at < end; at += block) {
      const index_t n = end - at < block ? end - at : block;
      const void* x = read_block(source, at, n, buffers[0]);
      if (stores) store(x, n, buffers[1]), x = buffers[1];
      write_block(static_cast<char*>(data), to, bytes, at, n, static_cast<const char*>(x));
    }
  });
}

namespace {

/// Both walks of a copy whose result is dense.
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
