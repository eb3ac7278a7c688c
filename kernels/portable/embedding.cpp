// Rows of a table by their numbers, and the gradient of the table.
#include <algorithm>
#include <cstring>

#include "taper/kernels/portable/index_walk.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

template <class E, class I>
Error forward(Context& context, View<const E> weight, View<const I> indices, int64_t, bool, bool,
              View<E> out) {
  const index_t width = weight.size(1);
  TAPER_TRY(check_indices(context, indices, weight.size(0)));
  if (width == 0) return Error::ok;
  parallel_lines(context.threads, indices.numel(), width, [&](index_t i) {
    std::memcpy(out.data() + i * width, weight.data() + indices.data()[i] * width,
                static_cast<size_t>(width) * sizeof(E));
  });
  return Error::ok;
}

/// The scratch holds how often each word occurs, for `scale_grad_by_freq`.
template <class T, class I>
Error prepare_backward(Context& context, int32_t&, View<const T>, View<const I>,
                       int64_t num_weights, int64_t, bool scale_grad_by_freq, View<T> out) {
  if (out.numel() == 0) return Error::ok;  // then num_weights is not bounded by the file
  if (scale_grad_by_freq) context.need_scratch(static_cast<size_t>(num_weights) * sizeof(index_t));
  return Error::ok;
}

/// Row w of the gradient is the sum of grad_output's rows where the index is w, in their order. Row
/// `padding_idx` gets nothing.
template <class T, class I>
Error backward(Context& context, const int32_t&, View<const T> grad_output, View<const I> indices,
               int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq, View<T> out) {
  const index_t width = out.size(1), count = indices.numel(),
                rows = static_cast<index_t>(num_weights);
  TAPER_TRY(check_indices(context, indices, rows));
  if (out.numel() == 0) return Error::ok;
  index_t* occurrences = nullptr;
  if (scale_grad_by_freq) {
    occurrences = static_cast<index_t*>(context.scratch);
    for (index_t i = 0; i < rows; ++i) occurrences[i] = 0;
    for (index_t i = 0; i < count; ++i) ++occurrences[indices.data()[i]];
  }
  const auto sum = [&](index_t, index_t first, index_t end) {
    const index_t n = end - first;
    for (index_t row = 0; row < rows; ++row) std::fill_n(out.data() + row * width + first, n, T(0));
    for (index_t i = 0; i < count; ++i) {
      const I word = indices.data()[i];
      if (word == padding_idx) continue;
      T* to = out.data() + word * width + first;
      const T* from = grad_output.data() + i * width + first;
      if (occurrences == nullptr) {
        for_each_element(n, [=](index_t c) { to[c] += from[c]; });
      } else {
        const T scale = 1 / static_cast<T>(occurrences[word]);
        for_each_element(n, [=](index_t c) { to[c] += from[c] * scale; });
      }
    }
  };
  parallel_columns(context.threads, 1, count + rows, width, sum);
  return Error::ok;
}

}  // namespace

#define TAPER_EMBEDDING(variant, T, index, I) \
  TAPER_KERNEL(embedding, variant##_##index, forward<T, I>)
TAPER_SIZES(TAPER_EMBEDDING, i64, int64_t)
TAPER_SIZES(TAPER_EMBEDDING, i32, int32_t)
TAPER_KERNEL(embedding_dense_backward, f32_i64, prepare_backward<float, int64_t>,
             backward<float, int64_t>)
TAPER_KERNEL(embedding_dense_backward, f64_i64, prepare_backward<double, int64_t>,
             backward<double, int64_t>)
TAPER_KERNEL(embedding_dense_backward, f32_i32, prepare_backward<float, int32_t>,
             backward<float, int32_t>)
TAPER_KERNEL(embedding_dense_backward, f64_i32, prepare_backward<double, int32_t>,
             backward<double, int32_t>)

}  // namespace taper::portable
