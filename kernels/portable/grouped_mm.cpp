// Grouped matrix products, as in a mixture of experts: each expert multiplies the rows that chose
// it.
#include "taper/kernels/portable/grouped_mm.h"

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/product.h"
#include "taper/kernels/shapes/matmul.h"

namespace taper::portable {
namespace {

template <class E>
Error grouped_mm(Context& context, AnyView<const E> self, AnyView<const E> mat2, GroupEnds offs,
                 Maybe<AnyView<const E>>, Maybe<DType>, View<E> out) {
  return for_each_group(context, self, mat2, offs, out, [&](const GroupProduct& p) {
    multiply(context, Product<E>{p.m,
                                 p.n,
                                 p.k,
                                 {self.data() + p.self, self.stride(-2), self.stride(-1)},
                                 {mat2.data() + p.mat2, mat2.stride(-2), mat2.stride(-1)},
                                 {},
                                 {out.data() + p.out, out.size(-1), 1}});
  });
}

}  // namespace

TAPER_KERNEL(_grouped_mm, f32, grouped_mm<float>)
TAPER_KERNEL(_grouped_mm, f64, grouped_mm<double>)

}  // namespace taper::portable
