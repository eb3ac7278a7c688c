// Matrix products: mm, bmm, addmm, baddbmm, linear, over `Loops` (elements.h). product.h has the
// arithmetic. Integers wrap around at their width. Small floats are summed as f32 and rounded once.
#pragma once
#include "taper/kernels/portable/product.h"
#include "taper/kernels/shapes/matmul.h"

namespace taper::portable {

/// The type in which integers are computed: an unsigned one, so that overflow is defined. Products
/// of narrower integers fit into int.
template <class E>
struct modular {
  using type = E;
};
template <>
struct modular<int64_t> {
  using type = uint64_t;
};
template <>
struct modular<int32_t> {
  using type = uint32_t;
};
template <class E>
using Modular = typename modular<E>::type;
template <class E>
const Modular<E>* modular_data(const E* data) {
  return reinterpret_cast<const Modular<E>*>(data);  // a signed type and its unsigned one may alias
}
template <class E>
Modular<E>* modular_data(E* data) {
  return reinterpret_cast<Modular<E>*>(data);
}

template <class E>
using SumOf = std::conditional_t<is_small_float<E>, float, Modular<E>>;
template <class E>
using ProductOf = Product<SumOf<E>, Modular<E>, Modular<E>, Modular<E>>;

/// The matrix in the last two dimensions of a view.
template <class E>
Matrix<const Modular<E>> matrix(AnyView<const E> v) {
  return {modular_data(v.data()), v.stride(-2), v.stride(-1)};
}
/// A matrix that is repeated over the result's last two dimensions, where it lacks the dimension or
/// has extent 1.
template <class E>
Matrix<const Modular<E>> repeated(AnyView<const E> v) {
  const auto stride = [&](int i) { return v.rank() >= i && v.size(-i) != 1 ? v.stride(-i) : 0; };
  return {modular_data(v.data()), stride(2), stride(1)};
}

template <class E>
SumOf<E> factor(Scalar s) {
  if constexpr (is_small_float<E>)
    return s.to<float>();
  else
    return static_cast<Modular<E>>(s.to<E>());
}

template <class E, class Loops = PlainLoops>
Error mm(Context& context, AnyView<const E> self, AnyView<const E> mat2, View<E> out) {
  ProductOf<E> p{out.size(0),
                 out.size(1),
                 self.size(1),
                 matrix(self),
                 matrix(mat2),
                 {},
                 {modular_data(out.data()), out.size(1), 1}};
  if (mat2.layout() != Layout::dense) read_panels(p);
  multiply<Loops>(context, p);
  return Error::ok;
}

template <class E, class Loops = PlainLoops>
Error addmm(Context& context, AnyView<const E> self, AnyView<const E> mat1, AnyView<const E> mat2,
            Scalar beta, Scalar alpha, View<E> out) {
  ProductOf<E> p{out.size(0),
                 out.size(1),
                 mat1.size(1),
                 matrix(mat1),
                 matrix(mat2),
                 repeated(self),
                 {modular_data(out.data()), out.size(1), 1}};
  p.alpha = factor<E>(alpha), p.beta = factor<E>(beta);
  if (p.beta == 0) p.addend.data = nullptr;  // then a NaN in self does not matter
  if (mat2.layout() != Layout::dense) read_panels(p);
  multiply<Loops>(context, p);
  return Error::ok;
}

template <class E, class Loops = PlainLoops>
Error bmm(Context& context, AnyView<const E> self, AnyView<const E> mat2, View<E> out) {
  const index_t m = out.size(1), n = out.size(2);
  ProductOf<E> p{
      m, n, self.size(2), matrix(self), matrix(mat2), {}, {modular_data(out.data()), n, 1}};
  multiply<Loops>(context, out.size(0), p, [&](ProductOf<E>& q, index_t i) {
    q.a.data += i * self.stride(0), q.b.data += i * mat2.stride(0), q.out.data += i * m * n;
  });
  return Error::ok;
}

template <class E, class Loops = PlainLoops>
Error baddbmm(Context& context, AnyView<const E> self, AnyView<const E> batch1,
              AnyView<const E> batch2, Scalar beta, Scalar alpha, View<E> out) {
  const index_t m = out.size(1), n = out.size(2);
  ProductOf<E> p{m,
                 n,
                 batch1.size(2),
                 matrix(batch1),
                 matrix(batch2),
                 repeated(self),
                 {modular_data(out.data()), n, 1}};
  p.alpha = factor<E>(alpha), p.beta = factor<E>(beta);
  if (p.beta == 0) p.addend.data = nullptr;
  const index_t step = self.rank() == 3 && self.size(0) != 1 ? self.stride(0) : 0;
  multiply<Loops>(context, out.size(0), p, [&](ProductOf<E>& q, index_t i) {
    q.a.data += i * batch1.stride(0), q.b.data += i * batch2.stride(0), q.out.data += i * m * n;
    if (q.addend.data != nullptr) q.addend.data += i * step;
  });
  return Error::ok;
}

/// out (rows, out) = input (rows, in) weight (out, in)^T + bias (out). All leading dimensions
/// together are the rows.
template <class E, class Loops = PlainLoops>
Error linear(Context& context, View<const E> input, View<const E> weight, Maybe<View<const E>> bias,
             View<E> out) {
  const index_t in = weight.size(-1), columns = weight.rank() == 2 ? weight.size(0) : 1;
  const index_t rows = columns == 0 ? 0 : out.numel() / columns;
  ProductOf<E> p{rows,
                 columns,
                 in,
                 {modular_data(input.data()), in, 1},
                 {modular_data(weight.data()), 1, in},
                 {},
                 {modular_data(out.data()), columns, 1}};
  if (bias) p.addend = {modular_data(bias->data()), 0, bias->numel() == 1 ? 0 : 1};
  if (weight.layout() != Layout::dense) read_panels(p);
  multiply<Loops>(context, p);
  return Error::ok;
}

}  // namespace taper::portable
