// Advanced indexing: self[indices], and writes to it. The index tensors broadcast to one space. If
// the dimensions that they replace are neighbours, the space takes their place in the result;
// otherwise it comes first. Negative indices count from the end.
#include <cstring>

#include "taper/kernels/portable/index_walk.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/small_floats.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

/// How the elements of self[indices] are visited, chunk by chunk. A chunk is `tail` elements that
/// lie together in self.
struct Selection {
  /// One index tensor.
  struct Index {
    int32_t position;           ///< in the list of indices
    index_t extent, stride;     ///< of the dimension of self that it replaces
    index_t strides[max_rank];  ///< of its own elements along the walked dimensions; 0: broadcast
  };
  int32_t rank, count;  ///< number of walked dimensions; number of index tensors
  index_t chunks, tail;
  int32_t joined;               ///< how many dimensions of self form the tail
  index_t first, first_beside;  ///< where the walk begins in self, and in the tensor beside it
  index_t sizes[max_rank];
  /// Strides of self along the walked dimensions; 0 along the space of the indices
  index_t strides[max_rank];
  index_t beside[max_rank];  ///< of the tensor that is written from self, or to it
  Index index[max_rank];
};

/// At most `most_joined` dimensions of self behind the last indexed one form the tail.
Selection select(const Shape& self, MaybeViewList<const int64_t> indices, int most_joined) {
  Selection s;
  s.count = 0, s.rank = 0, s.joined = 0, s.first = 0, s.first_beside = 0;
  int space = 0, last = -1, first = 0;
  bool adjacent = true;
  for (int i = 0; i < indices.count; ++i) {
    if (indices.refs[i] == nullptr) continue;
    if (s.count == 0)
      first = i;
    else if (last != i - 1)
      adjacent = false;
    last = i;
    if (indices[i].rank() > space) space = indices[i].rank();
    s.index[s.count++] = {i, self.sizes[i], self.strides[i], {}};
  }
  if (!adjacent) first = 0;

  const auto add_space = [&] {
    for (int k = 0; k < space; ++k, ++s.rank) {
      s.sizes[s.rank] = 1, s.strides[s.rank] = 0;
      for (int n = 0; n < s.count; ++n) {
        const Shape& shape = indices[s.index[n].position].shape();
        const int own = k - (space - shape.rank);
        const bool repeats = own < 0 || shape.sizes[own] == 1;
        s.index[n].strides[s.rank] = repeats ? 0 : shape.strides[own];
        if (!repeats) s.sizes[s.rank] = shape.sizes[own];
      }
    }
  };
  s.tail = 1;
  int kept = 0;
  bool placed = false;
  for (int i = 0; i < self.rank; ++i) {
    if (i < indices.count && indices.refs[i] != nullptr) continue;
    if (kept++ == first) add_space(), placed = true;
    if (i > last && i >= self.rank - most_joined) {
      s.tail *= self.sizes[i], ++s.joined;
      continue;
    }
    s.sizes[s.rank] = self.sizes[i], s.strides[s.rank] = self.strides[i];
    for (int n = 0; n < s.count; ++n) s.index[n].strides[s.rank] = 0;
    ++s.rank;
  }
  if (!placed) add_space();
  s.chunks = 1;
  for (int d = 0; d < s.rank; ++d) s.chunks *= s.sizes[d];
  return s;
}

Error check(Context& context, const Selection& s, MaybeViewList<const int64_t> indices) {
  for (int n = 0; n < s.count; ++n) {
    const index_t extent = s.index[n].extent;
    TAPER_TRY(check_indices(context, indices[s.index[n].position], extent, -extent));
  }
  return Error::ok;
}

/// How far into self the place lies that index `i` names.
inline index_t place(int64_t i, index_t extent, index_t stride) {
  return static_cast<index_t>(i < 0 ? i + extent : i) * stride;
}

/// Some chunks along the last walked dimension.
struct Chunks {
  static constexpr index_t most_listed = 64;
  index_t count;
  /// Place of the first chunk; distance to the next, without the index's part
  index_t self, step_self;
  index_t beside, step_beside;  ///< the same in the tensor beside self
  const int64_t* index;         ///< the only index that changes along the dimension
  index_t step_index, extent, stride;
  const index_t* listed;  ///< if several indices change: the places in self; else nullptr

  /// Calls body(offset in self, offset beside self) for each chunk.
  template <class Body>
  void for_each(const Body& body) const {
    const Chunks c = *this;  // a copy, so that it stays in registers whatever the body writes
    if (c.listed != nullptr)
      for (index_t k = 0, to = c.beside; k < c.count; ++k, to += c.step_beside)
        body(c.listed[k], to);
    else
      for (index_t k = 0; k < c.count; ++k)
        body(c.self + k * c.step_self + place(c.index[k * c.step_index], c.extent, c.stride),
             c.beside + k * c.step_beside);
  }
};

/// Passes chunks [begin, end) to `take`, in order. The walk is compiled only once for all bodies.
void walk_chunks(const Selection& s, MaybeViewList<const int64_t> indices, index_t begin,
                 index_t end, void (*take)(const void* body, const Chunks&), const void* body) {
  if (begin >= end) return;
  static constexpr int64_t zero = 0;
  index_t at[max_rank] = {};
  for (index_t d = s.rank - 1, rest = begin; d >= 0; --d)
    at[d] = rest % s.sizes[d], rest /= s.sizes[d];
  const int last = s.rank - 1;
  for (index_t chunk = begin; chunk < end;) {
    // along the last dimension; what does not change along it is computed once
    index_t offset = s.first, beside = s.first_beside;
    for (int d = 0; d < last; ++d) offset += at[d] * s.strides[d], beside += at[d] * s.beside[d];
    const int64_t* moving[max_rank];
    int which[max_rank], moves = 0;
    for (int n = 0; n < s.count; ++n) {
      const int64_t* from = indices[s.index[n].position].data();
      for (int d = 0; d < last; ++d) from += at[d] * s.index[n].strides[d];
      if (last >= 0 && s.index[n].strides[last] != 0)
        moving[moves] = from, which[moves++] = n;
      else
        offset += place(*from, s.index[n].extent, s.index[n].stride);
    }
    if (last < 0) return take(body, {1, offset, 0, beside, 0, &zero, 0, 1, 0, nullptr});
    const index_t step = s.strides[last], first = at[last], left = s.sizes[last] - first,
                  stop = end - chunk < left ? first + end - chunk : s.sizes[last];
    Chunks run{stop - first,
               offset + first * step,
               step,
               beside + first * s.beside[last],
               s.beside[last],
               &zero,
               0,
               1,
               0,
               nullptr};
    if (moves <= 1) {
      if (moves == 1) {
        const Selection::Index& index = s.index[which[0]];
        run.step_index = index.strides[last], run.index = moving[0] + first * run.step_index;
        run.extent = index.extent, run.stride = index.stride;
      }
      take(body, run);
    } else {
      index_t places[Chunks::most_listed];
      run.listed = places;
      for (index_t i = first; i < stop; i += run.count) {
        run.count = stop - i < Chunks::most_listed ? stop - i : Chunks::most_listed;
        run.beside = beside + i * run.step_beside;
        const index_t n = run.count;
        for (index_t k = 0; k < n; ++k) places[k] = offset + (i + k) * step;
        for (int m = 0; m < moves; ++m) {
          const Selection::Index index = s.index[which[m]];
          const index_t stride = index.strides[last];
          const int64_t* from = moving[m] + i * stride;
          for (index_t k = 0; k < n; ++k, from += stride)
            places[k] += place(*from, index.extent, index.stride);
        }
        take(body, run);
      }
    }
    chunk += stop - first, at[last] = stop;
    for (int d = last; d >= 0 && at[d] == s.sizes[d]; --d) {
      at[d] = 0;
      if (d > 0) ++at[d - 1];
    }
  }
}
/// Calls body(chunks) for chunks [begin, end), a few at a time.
template <class Body>
void for_each_chunks(const Selection& s, MaybeViewList<const int64_t> indices, index_t begin,
                     index_t end, const Body& body) {
  walk_chunks(
      s, indices, begin, end,
      [](const void* b, const Chunks& c) { (*static_cast<const Body*>(b))(c); }, &body);
}

template <class E>
Error prepare(Context&, Selection& s, View<const E> self, MaybeViewList<const int64_t> indices,
              View<E>) {
  s = select(self.shape(), indices, max_rank);
  index_t step = s.tail;
  for (int d = s.rank - 1; d >= 0; --d) s.beside[d] = step, step *= s.sizes[d];
  return Error::ok;
}

template <class E>
Error index(Context& context, const Selection& s, View<const E> self,
            MaybeViewList<const int64_t> indices, View<E> out) {
  if (out.numel() == 0) return Error::ok;
  TAPER_TRY(check(context, s, indices));
  const E* const x = self.data();
  E* const y = out.data();
  parallel_ranges(context.threads, s.chunks, s.tail, [&](index_t begin, index_t end) {
    for_each_chunks(s, indices, begin, end, [x, y, tail = s.tail](const Chunks& c) {
      if (tail == 1)
        c.for_each([=](index_t from, index_t to) { y[to] = x[from]; });
      else
        c.for_each([=](index_t from, index_t to) {
          std::memcpy(y + to, x + from, static_cast<size_t>(tail) * sizeof(E));
        });
    });
  });
  return Error::ok;
}

/// The walk of index_put. Tasks share out one dimension that no index replaces. So two tasks never
/// write to the same element.
struct Writes : Selection {
  static constexpr uint32_t overwrites = 1;
  index_t tail_beside;  ///< distance in values between two elements of a tail
  int32_t shared;       ///< the dimension that tasks share out, or -1: the tail
  /// Its extent is `units` times `unit` elements (the last unit may be shorter)
  index_t units, unit;

  Writes part(index_t begin, index_t end) const {
    Writes w = *this;
    index_t& extent = shared < 0 ? w.tail : w.sizes[shared];
    w.first = begin * (shared < 0 ? 1 : strides[shared]);
    w.first_beside = begin * (shared < 0 ? tail_beside : beside[shared]);
    if (shared >= 0) w.chunks = chunks / extent * (end - begin);
    extent = end - begin;
    return w;
  }
};

template <class T>
Error prepare_put(Context& context, Writes& w, View<const T> self,
                  MaybeViewList<const int64_t> indices, AnyView<const T> values, bool accumulate,
                  View<T>) {
  static_cast<Selection&>(w) = select(self.shape(), indices, 1);
  // the last dimension of values is a tail
  const bool has_tail = w.joined > 0 && values.rank() > 0;
  const int walked = values.rank() - has_tail;
  w.tail_beside = has_tail && values.size(-1) != 1 ? values.stride(-1) : 0;
  constexpr index_t unit = 16;  // elements of a tail; mostly a cache line
  w.shared = -1, w.units = pieces(w.tail, unit), w.unit = unit;
  for (int d = 0; d < w.rank; ++d) {
    const int own = d - (w.rank - walked);
    w.beside[d] = own < 0 || values.size(own) == 1 ? 0 : values.stride(own);
    if (w.strides[d] != 0 && w.sizes[d] > w.units) w.shared = d, w.units = w.sizes[d], w.unit = 1;
  }
  if (accumulate && is_half(self.dtype()))
    context.need_scratch(static_cast<size_t>(self.numel()) * sizeof(float));
  return Error::ok;
}

/// Calls the body for each element written, in the row-major order of the indices. So the last of
/// several writes to one place wins, and sums have one order.
template <class Body>
void write_part(const Writes& w, MaybeViewList<const int64_t> indices, const Body& body) {
  for_each_chunks(w, indices, 0, w.chunks, [=, n = w.tail, step = w.tail_beside](const Chunks& c) {
    if (n == 1)
      c.for_each(body);
    else if (step == 1)
      c.for_each([=](index_t to, index_t from) { body.slice(to, from, n); });
    else
      c.for_each([=](index_t to, index_t from) {
        for (index_t i = 0; i < n; ++i) body(to + i, from + i * step);
      });
  });
}
/// At most as many parts as threads, because each part reads all indices again.
template <class Body>
void write(const Threads* threads, const Writes& w, MaybeViewList<const int64_t> indices,
           const Body& body) {
  const index_t work = w.chunks * w.tail, extent = w.shared < 0 ? w.tail : w.sizes[w.shared];
  if (work == 0) return;
  index_t parts = threads == nullptr ? 1 : threads->count;
  if (parts > w.units) parts = w.units;
  if (parts > work / 16384) parts = work / 16384;
  if (parts <= 1) return write_part(w, indices, body);
  parallel_for(threads, parts, [&](index_t i) {
    const index_t begin = w.units * i / parts * w.unit, end = w.units * (i + 1) / parts * w.unit;
    write_part(w.part(begin, end < extent ? end : extent), indices, body);
  });
}

/// out += values at the indices. f16 and bf16 are summed in float, in scratch, and rounded once.
template <class T>
void accumulate_at(Context& context, const Writes& w, MaybeViewList<const int64_t> indices,
                   const T* values, T* out) {
  const auto at_each = [&](const auto& f) { write(context.threads, w, indices, Each(f)); };
  if constexpr (std::is_arithmetic_v<T>) {
    at_each([=](index_t to, index_t from) { out[to] = wrapping_add(out[to], values[from]); });
  } else {
    float* const sums = static_cast<float*>(context.scratch);
    at_each([=](index_t to, index_t) { sums[to] = to_float(out[to]); });
    at_each([=](index_t to, index_t from) { sums[to] += to_float(values[from]); });
    at_each([=](index_t to, index_t) { out[to] = to_small<T>(sums[to]); });
  }
}

template <class T>
Error index_put(Context& context, const Writes& w, View<const T> self,
                MaybeViewList<const int64_t> indices, AnyView<const T> values, bool accumulate,
                View<T> out) {
  if (w.chunks > 0) TAPER_TRY(check(context, w, indices));
  copy_unless_in_place(context.threads, self, out);
  using E = Bytes<sizeof(T)>;
  if (accumulate)
    accumulate_at(context, w, indices, values.data(), out.data());
  else
    write(context.threads, w, indices,
          Move<E>(static_cast<E*>(out.ref->data), static_cast<const E*>(values.ref->data)));
  return Error::ok;
}

}  // namespace

TAPER_BY_SIZE(index_Tensor, prepare, index)
TAPER_BY_DTYPE(index_put, prepare_put, index_put)
TAPER_PREPARE_AND_RUN_OF(f16, Half, index_put, prepare_put, index_put)
TAPER_PREPARE_AND_RUN_OF(bf16, BFloat16, index_put, prepare_put, index_put)

}  // namespace taper::portable
