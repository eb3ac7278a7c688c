#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/exporter/base/location.h"
#include "taper/exporter/dim/dim.h"
#include "taper/exporter/eager/storage.h"
#include "taper/kernels/rule.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::eager {

class Tensor;
struct TensorImpl;
class Node;
struct Autograd;

using Dims = std::vector<Dim>;
using Ints = std::vector<int64_t>;

class Tensor;

/// An operand of an overloaded operator, with the line of the call. An overloaded operator cannot
/// have a default argument; this conversion can.
struct Operand {
  const Tensor& tensor;
  Location here;
  Operand(const Tensor& tensor, Location here = Location::current()) : tensor(tensor), here(here) {}
};
/// The index in `x[index]`, with the line of the call.
struct Row {
  int64_t index;
  Location here;
  Row(int64_t index, Location here = Location::current()) : index(index), here(here) {}
};

/// A handle on a tensor. A copy of the handle shares the data, as in PyTorch. Storage, shape and
/// dtype never change. Functions that end in `_` write the elements in place; views of the same
/// storage see the new elements.
///
/// Operators are free functions (exporter/eager/ops/): `relu(x)`, `matmul(a, b)`, `a + b`. While a
/// function is traced, tensors have symbolic sizes and no elements. Reading an element is then an
/// error.
class Tensor {
 public:
  /// Undefined: no tensor. Stands for an absent optional argument and an absent gradient.
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor& operator=(Tensor&&) = default;
  /// Not inline: a call has many temporaries, and inline destructors were a third of its code.
  ~Tensor();

  /// Elements in row-major order, copied. `sizes` must multiply to `values.size()`.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Ints& sizes,
                     Location here = Location::current()) {
    if constexpr (std::is_same_v<T, bool>) {  // a std::vector<bool> holds bits
      const std::vector<uint8_t> bytes(values.begin(), values.end());
      return from_bytes(bytes.data(), bytes.size(), DType::boolean, sizes, here);
    } else {
      return from_bytes(values.data(), values.size() * sizeof(T), dtypes_of<T>::dtype, sizes, here);
    }
  }
  /// `bytes` row-major bytes at `data`, copied.
  static Tensor from_bytes(const void* data, size_t bytes, DType dtype, const Ints& sizes,
                           Location here = Location::current());
  /// A tensor in the caller's memory, row-major, not copied. `owner` keeps the memory alive. The 64
  /// bytes behind the last element must be readable.
  static Tensor borrow(void* data, DType dtype, const Ints& sizes,
                       std::shared_ptr<const void> owner = nullptr,
                       Location here = Location::current());
  /// f32 whose elements lie in halves or in blocks (Layout), not copied. `bytes` has those of
  /// `sizes`, and 64 more that are readable. An operator that does not read the layout gets a dense
  /// copy in each call, so this is for weights. The elements cannot be written.
  static Tensor stored(const std::byte* bytes, Layout layout, const Ints& sizes,
                       std::shared_ptr<const void> owner, Location here = Location::current());
  /// Dense, if the elements lie in halves or in blocks; otherwise itself.
  Tensor unpacked(Location here = Location::current()) const;
  /// Uninitialised, row-major.
  static Tensor empty(const Ints& sizes, DType dtype = DType::f32,
                      Location here = Location::current());

  bool defined() const { return impl_ != nullptr; }
  TensorImpl* impl() const { return impl_.get(); }
  const std::shared_ptr<TensorImpl>& shared() const { return impl_; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // ---- what it is ----
  DType dtype() const;
  int rank() const;
  /// The extent of a dimension. A negative `dim` counts from the end. Symbolic while tracing.
  Dim size(int64_t dim, Location here = Location::current()) const;
  Dims sizes() const;
  Dim numel() const;
  /// In elements. Symbolic while tracing.
  Dims strides() const;
  Dim storage_offset() const;
  bool is_dense() const;
  /// Not dense: see `stored`.
  Layout layout() const;
  /// Dtype, sizes, strides and offset as shape rules take them.
  TensorType<Dim> type() const;
  bool is_traced() const;

  // ---- elements ----
  /// The address of the first element. `T` must be the C++ type of the dtype. Elements lie at the
  /// tensor's strides.
  template <class T>
  T* data(Location here = Location::current()) const {
    return static_cast<T*>(raw_data(dtypes_of<T>::dtype, here));
  }
  /// The elements in row-major order.
  template <class T>
  std::vector<T> to_vector(Location here = Location::current()) const;
  /// The only element of a one-element tensor, converted.
  template <class T = double>
  T item(Location here = Location::current()) const {
    const Scalar s = scalar(here);
    return s.to<T>();
  }
  Scalar scalar(Location here = Location::current()) const;
  const TensorRef& ref(Location here = Location::current()) const;

  // ---- autograd ----
  bool requires_grad() const;
  /// Makes a leaf want a gradient. Returns itself, for chaining.
  const Tensor& set_requires_grad(bool on = true, Location here = Location::current()) const;
  bool is_leaf() const;
  /// The accumulated gradient; undefined if there is none.
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;
  /// Accumulates d(this)/d(leaf) into the `grad()` of every leaf that wants one. Without `gradient`
  /// this must have one element.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false,
                Location here = Location::current()) const;
  /// Keeps the gradient of a tensor that is not a leaf.
  void retain_grad() const;
  /// Calls `hook` with each gradient of this tensor. If the hook returns a defined tensor, that
  /// tensor replaces the gradient.
  void register_hook(std::function<Tensor(const Tensor&)> hook,
                     Location here = Location::current()) const;
  /// The same data, cut off from the tape.
  Tensor detach() const;
  const std::shared_ptr<Node>& grad_fn() const;

  // ---- names ----
  /// The name in reports and states ("conv1.weight"). Modules and optimizers set it.
  const std::string& name() const;
  void set_name(std::string name) const;

  // ---- in place ----
  // Each runs the operator of its name and writes the result into this tensor. A write that would
  // corrupt a gradient is an error at backward().
  Tensor& copy_(const Tensor& source, Location here = Location::current());
  Tensor& fill_(Scalar value, Location here = Location::current());
  Tensor& zero_(Location here = Location::current());
  Tensor& add_(const Tensor& other, Scalar alpha = 1, Location here = Location::current());
  Tensor& add_(Scalar other, Location here = Location::current());
  Tensor& sub_(const Tensor& other, Scalar alpha = 1, Location here = Location::current());
  Tensor& sub_(Scalar other, Location here = Location::current());
  Tensor& mul_(const Tensor& other, Location here = Location::current());
  Tensor& mul_(Scalar other, Location here = Location::current());
  Tensor& div_(const Tensor& other, Location here = Location::current());
  Tensor& div_(Scalar other, Location here = Location::current());
  Tensor& operator+=(Operand other);
  Tensor& operator-=(Operand other);
  Tensor& operator*=(Operand other);
  Tensor& operator/=(Operand other);

  // ---- shape and type, for chaining ----
  Tensor to(DType dtype, Location here = Location::current()) const;
  Tensor contiguous(Location here = Location::current()) const;
  Tensor clone(Location here = Location::current()) const;
  Tensor reshape(const Dims& sizes, Location here = Location::current()) const;
  Tensor view(const Dims& sizes, Location here = Location::current()) const;
  Tensor permute(const Ints& dims, Location here = Location::current()) const;
  Tensor transpose(int64_t dim0, int64_t dim1, Location here = Location::current()) const;
  Tensor t(Location here = Location::current()) const;
  Tensor unsqueeze(int64_t dim, Location here = Location::current()) const;
  Tensor squeeze(int64_t dim, Location here = Location::current()) const;
  Tensor expand(const Dims& sizes, Location here = Location::current()) const;
  /// Row `index` of the first dimension, as a view.
  Tensor operator[](Row row) const;
  Tensor select(int64_t dim, Dim index, Location here = Location::current()) const;
  /// The elements [start, end) along `dim` in steps of `step`, as a view. Negative bounds count
  /// from the end, as in Python.
  Tensor slice(int64_t dim, Dim start, Dim end = Dim(INT64_MAX), Dim step = Dim(1),
               Location here = Location::current()) const;

  /// As PyTorch prints it; long tensors are summarised.
  std::string to_string() const;

 private:
  const TensorImpl& checked(Location here = {}) const;  ///< what is there; throws if undefined
  [[noreturn]] static void refuse_undefined(Location here);
  [[noreturn]] void refuse_elements(Location here) const;
  bool has_history() const;  ///< `requires_grad` of a view, or of a tensor with an `Autograd`
  void* raw_data(DType expected, Location here) const;
  std::shared_ptr<TensorImpl> impl_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
/// "(2, 3)"
std::string to_string(const Dims& sizes);
/// Whether the sizes are the same. Symbols are compared as expressions. Never throws, unlike `==`.
bool same_sizes(const Dims& a, const Dims& b);

/// How a view was made: `op` with these arguments, applied to its source. It is one step of the
/// chain from the base.
struct ViewStep;

/// The object behind a handle.
struct TensorImpl {
  std::shared_ptr<Storage> storage;
  Shape shape;                                ///< without meaning while `symbolic`
  index_t offset = 0;                         ///< of the first element in the storage, in elements
  TensorRef ref;                              ///< what kernels get
  std::unique_ptr<TensorType<Dim>> symbolic;  ///< only of traced tensors
  std::unique_ptr<Autograd> autograd;         ///< nullptr: no gradient is or was wanted
  Tensor base;                                ///< of a view: the tensor that owns the storage
  std::shared_ptr<const ViewStep> view;       ///< of a view: how it follows from the base
  uint64_t base_generation = 0;  ///< of a view: `Autograd::generation` of the base it was taken at
  std::shared_ptr<void> trace_value;  ///< the recorder's own
  std::string name;

  TensorImpl();
  /// With new memory of its own.
  explicit TensorImpl(size_t bytes);
  ~TensorImpl();
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;
  void bind() { ref = {storage->data() + offset * size_bytes(ref.dtype), &shape, ref.dtype}; }
};

// The checks that dispatch makes for every argument of every call.
inline const TensorImpl& Tensor::checked(Location here) const {
  if (!impl_) refuse_undefined(here);
  return *impl_;
}
inline DType Tensor::dtype() const { return checked().ref.dtype; }
inline int Tensor::rank() const {
  const TensorImpl& i = checked();
  return i.symbolic ? i.symbolic->rank : i.shape.rank;
}
inline bool Tensor::is_traced() const { return impl_ && impl_->symbolic; }
inline const TensorRef& Tensor::ref(Location here) const {
  const TensorImpl& i = checked(here);
  if (i.symbolic) refuse_elements(here);
  return i.ref;
}
inline bool Tensor::is_leaf() const { return !checked().autograd || !grad_fn(); }
inline bool Tensor::requires_grad() const {
  const TensorImpl& i = checked();
  return (i.base.defined() || i.autograd) && has_history();
}

}  // namespace taper::eager
