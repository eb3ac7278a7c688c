// Triangular systems: T X = B, or X T = B. The second is T^T X^T = B^T.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/matrices.h"
#include "taper/kernels/shapes/linalg.h"

namespace taper::portable {
namespace {

struct Batches {
  Walk self, b;
};

template <class T>
Error prepare(Context&, Batches& plan, AnyView<const T> self, AnyView<const T> b, bool, bool, bool,
              View<T> out) {
  plan = {walk_of_matrices(self.shape(), out.shape()), walk_of_matrices(b.shape(), out.shape())};
  return Error::ok;
}

template <class T>
Error run(Context& context, const Batches& plan, AnyView<const T> self, AnyView<const T> b,
          bool upper, bool left, bool unitriangular, View<T> out) {
  for_each_right_side<T>(context, b, plan.b, left, out,
                         [&](index_t matrix, const Matrix<T>& x, index_t width) {
                           const Triangle<T> t{matrix_at(self, plan.self.offset_of(matrix)),
                                               self.size(-1), upper, unitriangular};
                           substitute(left ? t : transposed(t), x, width);
                         });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(linalg_solve_triangular, f32, prepare<float>, run<float>)
TAPER_KERNEL(linalg_solve_triangular, f64, prepare<double>, run<double>)

}  // namespace taper::portable
