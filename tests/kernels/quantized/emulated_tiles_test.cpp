// The kernels for AMX run here with an emulation of its instructions. The other sources of this
// program compare their integers with definitions.
#include <gtest/gtest.h>

#include "taper/kernels/quantized/quantized.h"
#include "taper/kernels/quantized/tile_registers.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/quantized/bytes.h"

namespace taper::quantized {
namespace {

using tests::slot;

TEST(emulated_tiles, multiply_for_the_first_record_of_each_product) {
  if (!tests::features_to_run().has({CpuFeature::amx_int8, CpuFeature::avx512_vnni}))
    GTEST_SKIP() << "these kernels need AVX-512 VNNI beside the tiles";
  for (const Operator* op : {&ops::taper_conv2d_q8, &ops::taper_linear_q8, &ops::taper_bmm_q8})
    EXPECT_TRUE(tests::kernels_of(all, *op).front()->needs.has(CpuFeature::amx_int8))
        << tests::kernels_of(all, *op).front()->name;

  Bytes x({3, 5}, 1), weight({1, 2, 16, 4}, 2), y({3, 16}, 99);
  Tensor<float> scales({16}, 1);
  Tensor<int32_t> offsets({2, 16}, 0);
  const std::vector<int64_t> range{-128, 127};
  const int64_t before = tiles::registers.products;
  tests::call(
      *tests::kernels_of(all, ops::taper_linear_q8).front(),
      {slot(x.ref()), slot(weight.ref()), slot(scales.ref()), slot(offsets.ref()), slot(1.0),
       slot(int64_t{0}), slot(1.0), slot(int64_t{0}), slot(range), slot(y.ref())});
  EXPECT_EQ(tiles::registers.products, before + 1);
  EXPECT_FALSE(tiles::registers.is_configured) << "the registers were not given back";
}

}  // namespace
}  // namespace taper::quantized
