#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {
namespace {

// Elements [first, first + n), block by block through buffers.
void run_blocks(Span<const Source> sources, const TensorRef& out, DType computes, BlockFunction f,
                const void* functor, index_t first, index_t n) {
  constexpr int max_sources = 3;
  alignas(16) char buffers[max_sources + 1][block_bytes];
  Rows in[max_sources] = {};
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
      in[k].data = read_block(sources[k], at, count, buffers[k]);
      filled[k] = sources[k].walk->is_constant();
    }
    void* to = static_cast<char*>(out.data) + at * out_bytes;
    f(functor, 1, count, in, stores ? buffers[max_sources] : to);
    if (stores) store(buffers[max_sources], count, to);
  }
}

// Arguments that broadcast: every row of the innermost dimension lies densely or repeats one
// element.
constexpr index_t least_row = 16;

bool have_rows(Span<const Source> sources, index_t count, index_t& row) {
  row = count;
  for (const Source& source : sources) {
    const Walk& walk = *source.walk;
    const int inner = walk.rank - 1;
    if (source.converts || walk.strides[inner] < 0 || walk.strides[inner] > 1) return false;
    if (walk.strides[inner] == 0 && sources.size() == 1) return false;
    if (walk.sizes[inner] < row && inner > 0) row = walk.sizes[inner];
  }
  if (row < least_row) return false;
  // the rows of an argument with fewer dimensions are longer
  for (const Source& source : sources)
    if (source.walk->sizes[source.walk->rank - 1] % row != 0) return false;
  return true;
}

void run_rows(Span<const Source> sources, const TensorRef& out, BlockFunction f,
              const void* functor, index_t row, index_t first, index_t n) {
  constexpr int max_sources = 3;
  const int out_bytes = size_bytes(out.dtype);
  Cursor cursors[max_sources];
  for (index_t k = 0; k < sources.size(); ++k) cursors[k] = Cursor(*sources[k].walk, first);
  for (index_t at = first, end = first + n; at < end;) {
    const index_t rest = row - at % row, length = end - at < rest ? end - at : rest;
    // as many whole rows as follow one another at one stride in every argument
    index_t rows = length == row ? (end - at) / row : 1;
    Rows in[max_sources];
    for (index_t k = 0; k < sources.size(); ++k) {
      const Walk& walk = *sources[k].walk;
      const int inner = walk.rank - 1;
      const bool longer = inner == 0 || walk.sizes[inner] > row;
      in[k] = {sources[k].at(cursors[k].offset()), walk.strides[inner] == 0,
               longer ? row * walk.strides[inner] : walk.strides[inner - 1]};
      const index_t left = longer ? cursors[k].left(inner) / row : cursors[k].left(inner - 1);
      if (left < rows && length == row) rows = left;
    }
    f(functor, rows, length, in, static_cast<char*>(out.data) + at * out_bytes);
    at += rows * length;
    for (index_t k = 0; k < sources.size(); ++k) {
      const Walk& walk = *sources[k].walk;
      const int inner = walk.rank - 1;
      if (inner == 0 || walk.sizes[inner] > row || length < row)
        cursors[k].advance(inner, rows * length);
      else
        cursors[k].advance(inner - 1, rows);
    }
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
    Rows in[3] = {};
    for (index_t k = 0; k < sources.size(); ++k) in[k].data = sources[k].at(first);
    f(functor, 1, n, in, static_cast<char*>(out.data) + first * size_bytes(out.dtype));
  });
}

}  // namespace taper::portable
