// Elements picked and written by tensors of indices; sorting. An index outside its dimension is an
// error of the call.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Rows of weight (words, features): indices (…) -> (…, features). `padding_idx`: this row gets no
/// gradient.
inline Tensor embedding(const Tensor& weight, const Tensor& indices, Dim padding_idx = -1,
                        bool scale_grad_by_freq = false, Location here = Location::current()) {
  return call<ops::embedding>(here, weight, indices, padding_idx, scale_grad_by_freq, false);
}
/// out[i][j]… = self[index[i][j]…][j]… for dim 0, and so for other dims.
inline Tensor gather(const Tensor& self, int64_t dim, const Tensor& index,
                     Location here = Location::current()) {
  return call<ops::gather>(here, self, dim, index, false);
}
/// self with self[index[i][j]…][j]… = src[i][j]…; the last of several writes to one place wins.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      Location here = Location::current()) {
  return call<ops::scatter_src>(here, self, dim, index, src);
}
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                      Location here = Location::current()) {
  return call<ops::scatter_value>(here, self, dim, index, value);
}
/// self with self[index[i][j]…][j]… += src[i][j]…
inline Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                          Location here = Location::current()) {
  return call<ops::scatter_add>(here, self, dim, index, src);
}
/// Slices of self along dim, in the order of the vector `index`.
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index,
                           Location here = Location::current()) {
  return call<ops::index_select>(here, self, dim, index);
}
/// self with slice index[i] += alpha source's slice i, along dim.
inline Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                        Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::index_add>(here, self, dim, index, source, alpha);
}
/// self[indices], as NumPy's: index tensors broadcast together, an undefined one stands for `:`.
/// Negative ones count from the end.
inline Tensor index(const Tensor& self, const std::vector<Tensor>& indices,
                    Location here = Location::current()) {
  return call<ops::index_Tensor>(here, self, indices);
}
/// self with self[indices] = values, or += values with `accumulate`.
inline Tensor index_put(const Tensor& self, const std::vector<Tensor>& indices,
                        const Tensor& values, bool accumulate = false,
                        Location here = Location::current()) {
  return call<ops::index_put>(here, self, indices, values, accumulate);
}
inline Tensor& index_put_(Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                          bool accumulate = false, Location here = Location::current()) {
  return call_in_place<ops::index_put>(here, self, indices, values, accumulate);
}
/// The elements that `indices`, such as argsort gives, name along `dim`; both are expanded to each
/// other's other sizes. Without `dim`: of all elements as one line.
inline Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                             std::optional<int64_t> dim = {}, Location here = Location::current()) {
  return call<ops::take_along_dim>(here, self, indices, dim);
}
/// The elements along dim in ascending order (or descending), and where they were. Equal ones keep
/// their order; NaN is the largest.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1,
                                       bool descending = false,
                                       Location here = Location::current()) {
  return call<ops::sort>(here, self, dim, descending);
}
inline Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false,
                      Location here = Location::current()) {
  return call<ops::argsort>(here, self, dim, descending);
}
/// The k largest (or smallest) elements along dim, in order, and where they were.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, Dim k, int64_t dim = -1,
                                       bool largest = true, Location here = Location::current()) {
  return call<ops::topk>(here, self, k, dim, largest, true);
}

}  // namespace taper::eager
