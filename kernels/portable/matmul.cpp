// Matrix products: mm, bmm, addmm, baddbmm, linear.
//
// Every element is one dot product over k, in eight interleaved partial sums joined by a fixed tree
// (lanes.h). Two loops compute it, bit for bit alike: one runs along k where both operands are
// dense along it (linear), one runs along the result's columns (mm). So a row depends neither on
// the other rows nor on how the operands lie in memory. Nothing is packed and no scratch is used:
// this is the version for small machines and the reference of the optimized one.
#include "taper/kernels/shapes/matmul.h"

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/portable.h"

namespace taper::portable {
namespace {

/// A matrix in memory: strides in elements. 0 repeats.
template <class T>
struct Matrix {
  T* data;
  index_t row, column;
  T* at(index_t i, index_t j) const { return data + i * row + j * column; }
};

/// out = alpha (a b) + beta addend, each without its factor if that is 1; (m, k) (k, n) -> (m, n).
template <class T>
struct Product {
  index_t m, n, k;
  Matrix<const T> a, b, addend;  ///< addend.data may be nullptr
  Matrix<T> out;
  T alpha = 1, beta = 1;

  void store(index_t i, index_t j, T sum) const {
    if (alpha != 1) sum *= alpha;
    if (addend.data != nullptr) sum += beta == 1 ? *addend.at(i, j) : beta * *addend.at(i, j);
    *out.at(i, j) = sum;
  }
};

/// `rows` x `columns` dot products of vectors that are dense along k.
template <int rows, int columns, class T>
void dense_along_k(const Product<T>& p, index_t i, index_t j) {
  T lane[rows][columns][lane_count] = {};
  const T* a[rows];
  const T* b[columns];
  for (int r = 0; r < rows; ++r) a[r] = p.a.at(i + r, 0);
  for (int c = 0; c < columns; ++c) b[c] = p.b.at(0, j + c);
  index_t k = 0;
  for (; k + lane_count <= p.k; k += lane_count)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        for (int l = 0; l < lane_count; ++l) lane[r][c][l] += a[r][k + l] * b[c][k + l];
  for (int l = 0; k < p.k; ++k, ++l)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) lane[r][c][l] += a[r][k] * b[c][k];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) p.store(i + r, j + c, join_lanes(lane[r][c]));
}

inline constexpr int strip = 16;  // columns that are summed side by side

/// `rows` x `width` dot products, `width` at most `strip`, for operands of any strides. One partial
/// sum at a time, so that a strip of it stays in registers.
template <int rows, bool full, bool dense_columns, class T>
void along_columns(const Product<T>& p, index_t i, index_t j, int width) {
  if (full) width = strip;
  const index_t step = dense_columns ? 1 : p.b.column;
  T lane[lane_count][rows][strip];
  for (int l = 0; l < lane_count; ++l) {
    T sum[rows][strip] = {};
    for (index_t k = l; k < p.k; k += lane_count) {
      const T* b = p.b.at(k, j);
      for (int r = 0; r < rows; ++r) {
        const T a = *p.a.at(i + r, k);
        for (int c = 0; c < width; ++c) sum[r][c] += a * b[c * step];
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < strip; ++c) lane[l][r][c] = sum[r][c];
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) {
      const T column[lane_count] = {lane[0][r][c], lane[1][r][c], lane[2][r][c], lane[3][r][c],
                                    lane[4][r][c], lane[5][r][c], lane[6][r][c], lane[7][r][c]};
      p.store(i + r, j + c, join_lanes(column));
    }
}

/// Rows [i, i_end) of columns [j, j_end).
template <class T>
void block(const Product<T>& p, index_t i, index_t i_end, index_t j, index_t j_end) {
  if (p.a.column == 1 && p.b.row == 1) {
    for (; i + 2 <= i_end; i += 2) {
      index_t c = j;
      for (; c + 2 <= j_end; c += 2) dense_along_k<2, 2>(p, i, c);
      if (c < j_end) dense_along_k<2, 1>(p, i, c);
    }
    if (i < i_end) {
      index_t c = j;
      for (; c + 4 <= j_end; c += 4) dense_along_k<1, 4>(p, i, c);
      for (; c < j_end; ++c) dense_along_k<1, 1>(p, i, c);
    }
    return;
  }
  const bool dense = p.b.column == 1;
  for (index_t c = j; c < j_end; c += strip) {
    const int width = static_cast<int>(j_end - c < strip ? j_end - c : strip);
    const auto rows = [&](auto full, auto dense_columns) {
      index_t r = i;
      for (; r + 2 <= i_end; r += 2)
        along_columns<2, full.value, dense_columns.value>(p, r, c, width);
      if (r < i_end) along_columns<1, full.value, dense_columns.value>(p, r, c, width);
    };
    if (!dense)
      rows(std::false_type{}, std::false_type{});
    else if (width == strip)
      rows(std::true_type{}, std::true_type{});
    else
      rows(std::false_type{}, std::true_type{});
  }
}

/// `batch` products, `next(p, i)` moving p from the first to number i.
template <class T, class Next>
void multiply(const Context& context, index_t batch, const Product<T>& product, const Next& next) {
  constexpr index_t rows = 32, columns = 64;
  const index_t down = pieces(product.m, rows), across = pieces(product.n, columns);
  parallel_for(context.threads, batch * down * across, [&](index_t task) {
    Product<T> p = product;
    next(p, task / (down * across));
    const index_t i = task / across % down * rows, j = task % across * columns;
    block(p, i, i + rows < p.m ? i + rows : p.m, j, j + columns < p.n ? j + columns : p.n);
  });
}

/// The last two dimensions of a view.
template <class T>
Matrix<const T> matrix(AnyView<const T> v) {
  return {v.data(), v.stride(-2), v.stride(-1)};
}
/// One that is repeated over the result's last two dimensions where it has extent 1 or no such
/// dimension.
template <class T>
Matrix<const T> repeated(AnyView<const T> v) {
  const auto stride = [&](int i) { return v.rank() >= i && v.size(-i) != 1 ? v.stride(-i) : 0; };
  return {v.data(), stride(2), stride(1)};
}

template <class T>
Error mm(Context& context, AnyView<const T> self, AnyView<const T> mat2, View<T> out) {
  Product<T> p{out.size(0),
               out.size(1),
               self.size(1),
               matrix(self),
               matrix(mat2),
               {},
               {out.data(), out.size(1), 1}};
  multiply(context, 1, p, [](Product<T>&, index_t) {});
  return Error::ok;
}

template <class T>
Error addmm(Context& context, AnyView<const T> self, AnyView<const T> mat1, AnyView<const T> mat2,
            Scalar beta, Scalar alpha, View<T> out) {
  Product<T> p{out.size(0),
               out.size(1),
               mat1.size(1),
               matrix(mat1),
               matrix(mat2),
               repeated(self),
               {out.data(), out.size(1), 1}};
  p.alpha = alpha.to<T>(), p.beta = beta.to<T>();
  if (p.beta == 0) p.addend.data = nullptr;  // a NaN in self does not matter then
  multiply(context, 1, p, [](Product<T>&, index_t) {});
  return Error::ok;
}

template <class T>
Error bmm(Context& context, AnyView<const T> self, AnyView<const T> mat2, View<T> out) {
  const index_t m = out.size(1), n = out.size(2);
  Product<T> p{m, n, self.size(2), matrix(self), matrix(mat2), {}, {out.data(), n, 1}};
  multiply(context, out.size(0), p, [&](Product<T>& q, index_t i) {
    q.a.data += i * self.stride(0), q.b.data += i * mat2.stride(0), q.out.data += i * m * n;
  });
  return Error::ok;
}

template <class T>
Error baddbmm(Context& context, AnyView<const T> self, AnyView<const T> batch1,
              AnyView<const T> batch2, Scalar beta, Scalar alpha, View<T> out) {
  const index_t m = out.size(1), n = out.size(2);
  Product<T> p{
      m, n, batch1.size(2), matrix(batch1), matrix(batch2), repeated(self), {out.data(), n, 1}};
  p.alpha = alpha.to<T>(), p.beta = beta.to<T>();
  if (p.beta == 0) p.addend.data = nullptr;
  const index_t step = self.rank() == 3 && self.size(0) != 1 ? self.stride(0) : 0;
  multiply(context, out.size(0), p, [&](Product<T>& q, index_t i) {
    q.a.data += i * batch1.stride(0), q.b.data += i * batch2.stride(0), q.out.data += i * m * n;
    if (q.addend.data != nullptr) q.addend.data += i * step;
  });
  return Error::ok;
}

/// out (rows, out) = input (rows, in) weight (out, in)^T + bias (out); leading dimensions count as
/// rows.
template <class T>
Error linear(Context& context, View<const T> input, View<const T> weight, Maybe<View<const T>> bias,
             View<T> out) {
  const index_t in = weight.size(-1), columns = weight.rank() == 2 ? weight.size(0) : 1;
  const index_t rows = columns == 0 ? 0 : out.numel() / columns;
  Product<T> p{rows,
               columns,
               in,
               {input.data(), in, 1},
               {weight.data(), 1, in},
               {},
               {out.data(), columns, 1}};
  if (bias) p.addend = {bias->data(), 0, bias->numel() == 1 ? 0 : 1};
  multiply(context, 1, p, [](Product<T>&, index_t) {});
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(mm, f32, mm<float>)
TAPER_KERNEL(mm, f64, mm<double>)
TAPER_KERNEL(mm, i64, mm<int64_t>)
TAPER_KERNEL(bmm, f32, bmm<float>)
TAPER_KERNEL(bmm, f64, bmm<double>)
TAPER_KERNEL(bmm, i64, bmm<int64_t>)
TAPER_KERNEL(addmm, f32, addmm<float>)
TAPER_KERNEL(addmm, f64, addmm<double>)
TAPER_KERNEL(addmm, i64, addmm<int64_t>)
TAPER_KERNEL(baddbmm, f32, baddbmm<float>)
TAPER_KERNEL(baddbmm, f64, baddbmm<double>)
TAPER_KERNEL(baddbmm, i64, baddbmm<int64_t>)
TAPER_KERNEL(linear, f32, linear<float>)
TAPER_KERNEL(linear, f64, linear<double>)
TAPER_KERNEL(linear, i64, linear<int64_t>)

}  // namespace taper::portable
