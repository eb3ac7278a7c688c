// Tensors for tests of static 8-bit kernels.
#pragma once
#include <random>
#include <vector>

#include "taper/runtime/core/tensor_ref.h"

namespace taper::quantized {

/// A dense tensor with the 64 bytes behind it that kernels may read, but not write.
template <class T>
class Tensor {
 public:
  explicit Tensor(std::vector<index_t> sizes, T fill = 0) : shape_(Shape::dense(sizes)) {
    values_.assign(static_cast<size_t>(shape_.numel()) + slack, fill);
    for (size_t i = values_.size() - slack; i < values_.size(); ++i) values_[i] = guard;
    ref_ = {values_.data(), &shape_, dtypes_of<T>::dtype, Layout::dense};
  }
  Tensor(const Tensor&) = delete;
  static constexpr size_t slack = 64;
  static constexpr T guard = 77;

  index_t numel() const { return shape_.numel(); }
  T& operator[](index_t i) { return values_[static_cast<size_t>(i)]; }
  T operator[](index_t i) const { return values_[static_cast<size_t>(i)]; }
  const TensorRef* ref() const { return &ref_; }
  std::vector<T> values() const {
    return {values_.begin(), values_.end() - static_cast<ptrdiff_t>(slack)};
  }
  bool is_guarded() const {
    for (size_t i = values_.size() - slack; i < values_.size(); ++i)
      if (values_[i] != guard) return false;
    return true;
  }

 private:
  Shape shape_;
  std::vector<T> values_;
  TensorRef ref_;
};
using Bytes = Tensor<int8_t>;

inline void fill(Bytes& t, std::mt19937& engine) {
  for (index_t i = 0; i < t.numel(); ++i) t[i] = static_cast<int8_t>(engine());
}

}  // namespace taper::quantized
