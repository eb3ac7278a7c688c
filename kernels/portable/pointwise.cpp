#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {
namespace {

// Elements [first, first + n), block by block through buffers.
void run_blocks(Span<const Source> sources, const TensorRef& out, DType computes, BlockFunction f,
                const void* functor, index_t first, index_t n) {
  constexpr int max_sources = 3;
  alignas(16) char buffers[max_sources + 1][block_bytes];
  const void* in[max_sources] = {};
  bool filled[max_sources] =
      {};  // a constant argument's buffer is filled once: no later block is longer
  const int out_bytes = size_bytes(out.dtype);
  const bool stores = computes != out.dtype;
  const Store store = storer(computes, out.dtype);
  constexpr index_t block = block_bytes / 8;  // as many as fit of the widest type
  for (index_t at = first, end = first + n; at < end; at += block) {
    const index_t count = end - at < block ? end - at : block;
    for (index_t k = 0; k < sources.size(); ++k) {
      if (filled[k]) continue;
      in[k] = read_block(sources[k], at, count, buffers[k]);
      filled[k] = sources[k].walk->is_constant();
    }
    void* to = static_cast<char*>(out.data) + at * out_bytes;
    f(functor, count, in, stores ? buffers[max_sources] : to);
    if (stores) store(buffers[max_sources], count, to);
  }
}

// Arguments that broadcast: every row of the innermost dimension lies densely or repeats one
// element.
constexpr index_t least_row = 16, repeated = 256;

bool have_rows(Span<const Source> sources, index_t count, index_t& row) {
  row = count;
  if (count == 0) return false;
  for (const Source& source : sources) {
    const Walk& walk = *source.walk;
    if (source.converts) return false;
    if (walk.is_constant()) continue;
    const int inner = walk.rank - 1;
    if (walk.strides[inner] > 1) return false;
    if (inner > 0 && walk.sizes[inner] < row) row = walk.sizes[inner];
  }
  // the rows of an argument with fewer dimensions are longer
  for (const Source& source : sources)
    if (source.walk->sizes[source.walk->rank - 1] % row != 0 && !source.walk->is_constant())
      return false;
  return row >= least_row && row < count;
}

template <class T>
void repeat(const void* from, index_t n, void* to) {
  const T value = *static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (index_t i = 0; i < n; ++i) y[i] = value;
}
void repeat(const void* from, int bytes, index_t n, void* to) {
  switch (bytes) {
    case 1:
      return repeat<uint8_t>(from, n, to);
    case 2:
      return repeat<uint16_t>(from, n, to);
    case 4:
      return repeat<uint32_t>(from, n, to);
    default:
      return repeat<uint64_t>(from, n, to);
  }
}

void run_rows(Span<const Source> sources, const TensorRef& out, BlockFunction f,
              const void* functor, index_t row, index_t first, index_t n) {
  constexpr int max_sources = 3;
  alignas(64) char buffers[max_sources][repeated * 8];
  const void* held[max_sources] = {};  // the element that a buffer repeats
  index_t filled[max_sources] = {};
  const int out_bytes = size_bytes(out.dtype);
  Cursor cursors[max_sources];
  for (index_t k = 0; k < sources.size(); ++k) cursors[k] = Cursor(*sources[k].walk, first);
  for (index_t at = first, end = first + n; at < end;) {
    const index_t rest = row - at % row, length = end - at < rest ? end - at : rest;
    const void* in[max_sources];
    bool repeats = false;
    for (index_t k = 0; k < sources.size(); ++k) {
      const Source& source = sources[k];
      const int inner = source.walk->rank - 1;
      in[k] = source.at(cursors[k].offset());
      cursors[k].advance(inner, length);
      if (source.walk->strides[inner] == 1) continue;
      repeats = true;
      const index_t asked = length < repeated ? length : repeated;
      if (held[k] != in[k] || filled[k] < asked)
        repeat(in[k], source.element_bytes, asked, buffers[k]), held[k] = in[k], filled[k] = asked;
    }
    const index_t step = repeats ? repeated : length;
    for (index_t done = 0; done < length; done += step) {
      const void* here[max_sources];
      for (index_t k = 0; k < sources.size(); ++k)
        here[k] = sources[k].walk->strides[sources[k].walk->rank - 1] == 1
                      ? static_cast<const char*>(in[k]) + done * sources[k].element_bytes
                      : buffers[k];
      f(functor, length - done < step ? length - done : step, here,
        static_cast<char*>(out.data) + (at + done) * out_bytes);
    }
    at += length;
  }
}

}  // namespace

void run_pointwise(const Context& context, index_t count, Span<const Source> sources,
                   const TensorRef& out, DType computes, BlockFunction f, const void* functor) {
  bool direct = computes == out.dtype;
  for (const Source& source : sources) direct = direct && source.is_direct();
  index_t row = 0;
  const bool rows = !direct && computes == out.dtype && have_rows(sources, count, row);
  const index_t tasks = (count + pointwise_grain - 1) / pointwise_grain;
  parallel_for(context.threads, tasks, [&](index_t task) {
    const index_t first = task * pointwise_grain;
    const index_t n = count - first < pointwise_grain ? count - first : pointwise_grain;
    if (rows) return run_rows(sources, out, f, functor, row, first, n);
    if (!direct) return run_blocks(sources, out, computes, f, functor, first, n);
    const void* in[3] = {};
    for (index_t k = 0; k < sources.size(); ++k) in[k] = sources[k].at(first);
    f(functor, n, in, static_cast<char*>(out.data) + first * size_bytes(out.dtype));
  });
}

}  // namespace taper::portable
