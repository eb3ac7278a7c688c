#include <cstring>

#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/quantized/block_linear.h"
#include "taper/kernels/quantized/packings.h"
#include "taper/kernels/shapes/blocks.h"

namespace taper::quantized {
namespace {

template <class I>
Error run(Context& context, View<const float> weight, View<const I> indices, View<float> out) {
  const index_t width = weight.size(1);
  TAPER_TRY(portable::check_indices(context, indices, weight.size(0)));
  if (width == 0) return Error::ok;
  portable::parallel_lines(context.threads, indices.numel(), width, [&](index_t i) {
    const auto row = static_cast<index_t>(indices.data()[i]);
    float* to = out.data() + i * width;
    if (weight.layout() == Layout::dense)
      std::memcpy(to, weight.data() + row * width, static_cast<size_t>(width) * sizeof(float));
    else
      blocks_of(weight).row(row, to);
  });
  return Error::ok;
}

}  // namespace

TAPER_RECORD(taper_block_embedding, taper_block_embedding_f32_i64, {}, (block_packings<0, false>),
             run<int64_t>)
TAPER_RECORD(taper_block_embedding, taper_block_embedding_f32_i32, {}, (block_packings<0, false>),
             run<int32_t>)

}  // namespace taper::quantized
