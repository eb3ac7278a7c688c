#include <type_traits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/quantized/byte_loops.h"

namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/byte_loops-inl.h"

}  // namespace

constexpr ByteLoops byte_loops_plain = loops;

}  // namespace taper::quantized
