// The matrix product of 8-bit integers, summed in 32 bits. Sums wrap around, as in PyTorch.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/product.h"
#include "taper/kernels/shapes/matmul.h"

namespace taper::portable {
namespace {

template <class A>
Error int_mm(Context& context, AnyView<const A> self, AnyView<const int8_t> mat2,
             View<int32_t> out) {
  // unsigned, so that overflow is defined: modulo 2^32
  uint32_t* const sums = reinterpret_cast<uint32_t*>(out.data());
  multiply(context, Product<uint32_t, A, int8_t>{out.size(0),
                                                 out.size(1),
                                                 self.size(1),
                                                 {self.data(), self.stride(0), self.stride(1)},
                                                 {mat2.data(), mat2.stride(0), mat2.stride(1)},
                                                 {},
                                                 {sums, out.size(1), 1}});
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_int_mm, i8, int_mm<int8_t>)
TAPER_KERNEL(_int_mm, u8, int_mm<uint8_t>)

}  // namespace taper::portable
