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

}  // namespace

void run_pointwise(const Context& context, index_t count, Span<const Source> sources,
                   const TensorRef& out, DType computes, BlockFunction f, const void* functor) {
  bool direct = computes == out.dtype;
  for (const Source& source : sources) direct = direct && source.is_direct();
  const index_t tasks = (count + pointwise_grain - 1) / pointwise_grain;
  parallel_for(context.threads, tasks, [&](index_t task) {
    const index_t first = task * pointwise_grain;
    const index_t n = count - first < pointwise_grain ? count - first : pointwise_grain;
    if (!direct) return run_blocks(sources, out, computes, f, functor, first, n);
    const void* in[3] = {};
    for (index_t k = 0; k < sources.size(); ++k) in[k] = sources[k].at(first);
    f(functor, n, in, static_cast<char*>(out.data) + first * size_bytes(out.dtype));
  });
}

}  // namespace taper::portable
