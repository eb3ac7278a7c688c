#include <type_traits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/byte_loops-inl.h"

void softmax_by_table(const ByteLine& line, const Rounding& rounding, int8_t* y) {
  const bool looks_up = line.step == 1 && line.count >= softmax_is_looked_up_from;
  looks_up ? softmax_avx512(line, rounding, y) : softmax(line, rounding, y);
}
constexpr ByteLoops with_table() {
  ByteLoops faster = loops;
  faster.softmax = softmax_by_table;
  return faster;
}

}  // namespace

constexpr ByteLoops byte_loops_avx512 = with_table();

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
