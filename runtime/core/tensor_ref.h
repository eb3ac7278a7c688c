#pragma once
#include <cstdint>
#include <type_traits>

#include "taper/runtime/core/dtype.h"
#include "taper/runtime/core/layout.h"
#include "taper/runtime/core/span.h"

namespace taper {

inline constexpr int max_rank = 8;

/// Extents and strides, both in elements. Several values may share one.
struct Shape {
  int32_t rank = 0;
  index_t sizes[max_rank] = {};
  index_t strides[max_rank] = {};

  index_t numel() const {
    index_t n = 1;
    for (int i = 0; i < rank; ++i) n *= sizes[i];
    return n;
  }
  /// Whether elements lie in row-major order without gaps. Strides of extents 0 and 1 do not
  /// matter.
  bool is_dense() const {
    index_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] == 0) return true;
      if (sizes[i] != 1 && strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }
  bool same_sizes(const Shape& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (sizes[i] != other.sizes[i]) return false;
    return true;
  }
  /// Sizes beyond all memory give strides without meaning. The function that takes the shape
  /// refuses it.
  void make_dense() {
    size_t stride = 1;  // unsigned: may wrap
    for (int i = rank - 1; i >= 0; --i) {
      strides[i] = static_cast<index_t>(stride);
      stride *= sizes[i] > 0 ? static_cast<size_t>(sizes[i]) : 1;
    }
  }
  static Shape dense(Span<const index_t> sizes) {
    Shape s;
    s.rank = static_cast<int32_t>(sizes.size());
    for (int i = 0; i < s.rank; ++i) s.sizes[i] = sizes[i];
    s.make_dense();
    return s;
  }
};

/// A tensor as kernels see it: the address of its first element, its shape and its dtype. It
/// borrows the memory.
struct TensorRef {
  void* data = nullptr;
  const Shape* shape = nullptr;
  DType dtype = DType::f32;
  Layout layout = Layout::dense;  ///< other than dense only where the kernel's `Packing` allows it

  index_t size_bytes() const { return shape->numel() * ::taper::size_bytes(dtype); }
};

/// The strides that a kernel accepts for an argument. If an argument has others, the exporter and
/// eager insert a visible `clone`.
enum class Strides : uint8_t {
  dense,  ///< row-major without gaps
  rows,   ///< the last dimension is dense, the others are free
  any,    ///< free
};

/// A `TensorRef` that was checked: its dtype at load, its strides at export and again in `prepare`.
template <class T, Strides strides = Strides::dense>
struct View {
  using element = T;
  const TensorRef* ref = nullptr;

  T* data() const { return static_cast<T*>(ref->data); }
  const Shape& shape() const { return *ref->shape; }
  int rank() const { return ref->shape->rank; }
  index_t size(int i) const { return ref->shape->sizes[i < 0 ? i + ref->shape->rank : i]; }
  index_t stride(int i) const { return ref->shape->strides[i < 0 ? i + ref->shape->rank : i]; }
  index_t numel() const { return ref->shape->numel(); }
  DType dtype() const { return ref->dtype; }
  Layout layout() const { return ref->layout; }
};
template <class T>
using AnyView = View<T, Strides::any>;
template <class T>
using RowsView = View<T, Strides::rows>;

/// An argument that may be absent (`Tensor?`, `int?`, …).
template <class T>
struct Maybe {
  T value{};
  bool present = false;
  explicit operator bool() const { return present; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

/// A list of tensors, `Tensor[]`.
template <class T, Strides strides = Strides::dense>
struct ViewList {
  const TensorRef* const* refs = nullptr;
  index_t count = 0;
  View<T, strides> operator[](index_t i) const { return {refs[i]}; }
};

/// A list of tensors that may be absent, `Tensor?[]`: then the element has `ref == nullptr`.
template <class T, Strides strides = Strides::dense>
struct MaybeViewList {
  const TensorRef* const* refs = nullptr;
  index_t count = 0;
  View<T, strides> operator[](index_t i) const { return {refs[i]}; }
};

/// A number whose type the operator does not fix (`Scalar`). A bool counts as an integer with
/// `is_bool`.
struct Scalar {
  bool is_real = false, is_bool = false;
  union {
    int64_t integer;
    double real;
  };
  constexpr Scalar() : integer(0) {}
  constexpr Scalar(bool v) : is_bool(true), integer(v) {}
  constexpr Scalar(int v) : integer(v) {}
  constexpr Scalar(long v) : integer(v) {}
  constexpr Scalar(long long v) : integer(v) {}
  constexpr Scalar(float v) : is_real(true), real(v) {}
  constexpr Scalar(double v) : is_real(true), real(v) {}
  template <class T>
  Scalar(T*) = delete;  ///< nor text: a pointer would become a bool
  /// The value as the C++ type `T`. A real becomes an integer towards zero; NaN and a real that no
  /// int64_t holds become the smallest int64_t, which wraps to the width of a smaller integer.
  template <class T>
  constexpr T to() const {
    constexpr double limit = 9223372036854775808.0;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      if (is_real)
        return static_cast<T>(real >= -limit && real < limit ? static_cast<int64_t>(real)
                                                             : INT64_MIN);
    return is_real ? static_cast<T>(real) : static_cast<T>(integer);
  }
};

}  // namespace taper
