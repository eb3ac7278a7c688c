// Advanced indexing: self[indices] and writes to it. Index tensors broadcast to one space; where
// the dimensions they replace are neighbours, the space takes their place in the result, else it
// comes first. Negative indices count from the end.
#include <cstring>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

/// How self[indices] is walked, chunk by chunk. `tail` elements that lie together in self make a
/// chunk.
struct Selection {
  static constexpr uint32_t overwrites = 1;  // of index_put: the result may lie on self

  /// One index tensor.
  struct Index {
    int32_t position;           ///< in the list of indices
    index_t extent, stride;     ///< of the dimension of self that it replaces
    index_t strides[max_rank];  ///< of its own elements along the walked dimensions; 0: broadcast
  };
  int32_t rank, count;  ///< walked dimensions; index tensors
  index_t chunks, tail;
  int32_t joined;  ///< dimensions of self in the tail
  index_t sizes[max_rank];
  index_t strides[max_rank];  ///< of self along the walked dimensions; 0 along the indices' space
  Index index[max_rank];
};

/// Dimensions of self behind the last indexed one, at most `most_joined`, are moved together.
Selection select(const Shape& self, MaybeViewList<const int64_t> indices, int most_joined) {
  Selection s;
  s.count = 0, s.rank = 0, s.joined = 0;
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
    const View<const int64_t> index = indices[s.index[n].position];
    const int64_t extent = s.index[n].extent;
    for (index_t i = 0; i < index.numel(); ++i)
      if (const int64_t at = index.data()[i]; at < -extent || at >= extent)
        return context.fail(Error::invalid_argument, TAPER_TEXT("index {} is outside [{}, {})"), at,
                            -extent, extent);
  }
  return Error::ok;
}

/// Calls body(chunk, coordinates, offset in self) for chunks [begin, end), in order.
template <class Body>
void for_each_chunk(const Selection& s, MaybeViewList<const int64_t> indices, index_t begin,
                    index_t end, const Body& body) {
  if (begin >= end) return;
  index_t at[max_rank] = {};
  for (index_t d = s.rank - 1, rest = begin; d >= 0; --d)
    at[d] = rest % s.sizes[d], rest /= s.sizes[d];
  const int last = s.rank - 1;
  const auto place = [](int64_t i, const Selection::Index& index) {
    return static_cast<index_t>(i < 0 ? i + index.extent : i) * index.stride;
  };
  for (index_t chunk = begin; chunk < end;) {
    // along the last dimension; what it leaves alone is found once
    index_t offset = 0;
    for (int d = 0; d < last; ++d) offset += at[d] * s.strides[d];
    const int64_t* moving[max_rank];
    int which[max_rank], moves = 0;
    for (int n = 0; n < s.count; ++n) {
      const int64_t* from = indices[s.index[n].position].data();
      for (int d = 0; d < last; ++d) from += at[d] * s.index[n].strides[d];
      if (last >= 0 && s.index[n].strides[last] != 0)
        moving[moves] = from, which[moves++] = n;
      else
        offset += place(*from, s.index[n]);
    }
    if (last < 0) return body(chunk, at, offset);
    const index_t step = s.strides[last], left = s.sizes[last] - at[last],
                  stop = end - chunk < left ? end : chunk + left;
    for (; chunk < stop; ++chunk, ++at[last]) {
      index_t here = offset + at[last] * step;
      for (int m = 0; m < moves; ++m) {
        const Selection::Index& index = s.index[which[m]];
        here += place(moving[m][at[last] * index.strides[last]], index);
      }
      body(chunk, at, here);
    }
    for (int d = last; d >= 0 && at[d] == s.sizes[d]; --d) {
      at[d] = 0;
      if (d > 0) ++at[d - 1];
    }
  }
}

/// Of `index`: without a result on self.
struct Picked : Selection {
  static constexpr uint32_t overwrites = 0;
};

template <class E>
Error prepare(Context&, Picked& plan, View<const E> self, MaybeViewList<const int64_t> indices,
              View<E>) {
  static_cast<Selection&>(plan) = select(self.shape(), indices, max_rank);
  return Error::ok;
}

template <class E>
Error index(Context& context, const Picked& s, View<const E> self,
            MaybeViewList<const int64_t> indices, View<E> out) {
  if (out.numel() == 0) return Error::ok;
  TAPER_TRY(check(context, s, indices));
  const index_t per_task = pieces(4096, s.tail);
  parallel_for(context.threads, pieces(s.chunks, per_task), [&](index_t task) {
    const index_t begin = task * per_task,
                  end = begin + per_task < s.chunks ? begin + per_task : s.chunks;
    if (s.tail == 1)
      return for_each_chunk(
          s, indices, begin, end,
          [x = self.data(), y = out.data()](index_t chunk, const index_t*, index_t from) {
            y[chunk] = x[from];
          });
    for_each_chunk(s, indices, begin, end, [&](index_t chunk, const index_t*, index_t from) {
      std::memcpy(out.data() + chunk * s.tail, self.data() + from,
                  static_cast<size_t>(s.tail) * sizeof(E));
    });
  });
  return Error::ok;
}

/// Writes take place one element after the other in row-major order: the last of several to one
/// place wins, sums are ordered.
template <class E, class Write>
Error put(Context& context, const Selection& s, View<const E> self,
          MaybeViewList<const int64_t> indices, AnyView<const E> values, View<E> out,
          const Write& write) {
  if (s.chunks > 0) TAPER_TRY(check(context, s, indices));
  if (out.data() != self.data() && self.numel() > 0)
    std::memcpy(out.data(), self.data(), static_cast<size_t>(self.numel()) * sizeof(E));
  index_t strides[max_rank];  // of values along the walked dimensions
  // a tail is the last dimension of values
  const bool has_tail = s.joined > 0 && values.rank() > 0;
  const int walked = values.rank() - has_tail;
  for (int d = 0; d < s.rank; ++d) {
    const int own = d - (s.rank - walked);
    strides[d] = own < 0 || values.size(own) == 1 ? 0 : values.stride(own);
  }
  const index_t tail_stride = has_tail && values.size(-1) != 1 ? values.stride(-1) : 0;
  for_each_chunk(s, indices, 0, s.chunks, [&](index_t, const index_t* at, index_t to) {
    index_t from = 0;
    for (int d = 0; d < s.rank; ++d) from += at[d] * strides[d];
    const E* x = values.data() + from;
    E* y = out.data() + to;
    if (tail_stride == 1)
      for (index_t i = 0; i < s.tail; ++i) write(y[i], x[i]);
    else
      for (index_t i = 0; i < s.tail; ++i) write(y[i], x[i * tail_stride]);
  });
  return Error::ok;
}

template <class E>
Error prepare_put(Context&, Selection& plan, View<const E> self,
                  MaybeViewList<const int64_t> indices, AnyView<const E>, bool, View<E>) {
  plan = select(self.shape(), indices, 1);
  return Error::ok;
}

template <class T>
Error index_put(Context& context, const Selection& s, View<const T> self,
                MaybeViewList<const int64_t> indices, AnyView<const T> values, bool accumulate,
                View<T> out) {
  if (accumulate)
    return put(context, s, self, indices, values, out,
               [](T& to, T value) { to = wrapping_add(to, value); });
  return put(context, s, self, indices, values, out, [](T& to, T value) { to = value; });
}

}  // namespace

TAPER_BY_SIZE(index_Tensor, prepare, index)
TAPER_BY_DTYPE(index_put, prepare_put, index_put)

}  // namespace taper::portable
