#include "taper/exporter/eager/tensor.h"

#include <cstring>

#include "taper/exporter/dim/type.h"
#include "taper/exporter/eager/alias.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/complex_number.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/kernels/float8.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::eager {
namespace {

std::shared_ptr<TensorImpl> dense_impl(std::shared_ptr<Storage> storage, DType dtype,
                                       const Ints& sizes) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::move(storage);
  impl->shape.rank = static_cast<int32_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) impl->shape.sizes[i] = sizes[i];
  impl->shape.make_dense();
  impl->ref.dtype = dtype;
  impl->bind();
  return impl;
}

size_t checked_bytes(const Ints& sizes, DType dtype, Location here) {
  if (sizes.size() > static_cast<size_t>(max_rank))
    throw EagerError(here, "a tensor of " + std::to_string(sizes.size()) + " dimensions: at most " +
                               std::to_string(max_rank) + " are supported");
  Extent bytes = size_bytes(dtype);
  for (const int64_t s : sizes) {
    if (s < 0) throw EagerError(here, "a tensor's size cannot be negative: " + std::to_string(s));
    bytes = bytes * Extent(s);
  }
  if (bytes.invalid())
    throw EagerError(here, "a tensor of size " + to_string(Dims(sizes.begin(), sizes.end())) +
                               " has more than 2^63 bytes");
  return static_cast<size_t>(bytes.value);
}

}  // namespace

Tensor::~Tensor() = default;

TensorImpl::TensorImpl() = default;
TensorImpl::TensorImpl(size_t bytes) : storage(Storage::allocate(bytes)) {}
TensorImpl::~TensorImpl() = default;

// ---- making ----

Tensor Tensor::from_bytes(const void* data, size_t bytes, DType dtype, const Ints& sizes,
                          Location here) {
  const size_t needed = checked_bytes(sizes, dtype, here);
  if (needed != bytes)
    throw EagerError(here, "size " + eager::to_string(Dims(sizes.begin(), sizes.end())) + " of " +
                               taper::name_of(dtype) + " takes " + std::to_string(needed) +
                               " bytes, but " + std::to_string(bytes) + " were given");
  if (data == nullptr && bytes > 0)
    throw EagerError(here, "from_bytes: there is no memory at a null pointer");
  auto storage = Storage::allocate(bytes);
  if (bytes) std::memcpy(storage->data(), data, bytes);
  return Tensor(dense_impl(std::move(storage), dtype, sizes));
}
Tensor Tensor::borrow(void* data, DType dtype, const Ints& sizes, std::shared_ptr<const void> owner,
                      Location here) {
  const size_t bytes = checked_bytes(sizes, dtype, here);
  if (data == nullptr && bytes > 0)
    throw EagerError(here, "borrow: there is no memory at a null pointer");
  return Tensor(dense_impl(std::make_shared<Storage>(data, bytes, std::move(owner)), dtype, sizes));
}
Tensor Tensor::stored(const std::byte* bytes, Layout layout, const Ints& sizes,
                      std::shared_ptr<const void> owner, Location here) {
  const size_t f32_bytes = checked_bytes(sizes, DType::f32, here);
  const BlockSize block = block_of(layout);
  if (layout == Layout::dense)
    throw EagerError(here, "stored: for dense elements use borrow or from");
  if (!has_exact_size(layout))
    throw EagerError(here, "stored: elements in panels cannot be a tensor");
  if (is_in_blocks(layout) && sizes.empty())
    throw EagerError(here,
                     "stored: blocks lie along the last dimension, and a 0-dim tensor has none");
  if (!sizes.empty() && sizes.back() % block.elements != 0)
    throw EagerError(here, "stored: the last dimension of " +
                               eager::to_string(Dims(sizes.begin(), sizes.end())) +
                               " is not a multiple of the " + std::to_string(block.elements) +
                               " elements of a block");
  auto storage = std::make_shared<Storage>(const_cast<std::byte*>(bytes),
                                           stored_bytes(f32_bytes, layout), std::move(owner));
  auto impl = dense_impl(std::move(storage), DType::f32, sizes);
  impl->ref.layout = layout;
  return Tensor(std::move(impl));
}
Tensor Tensor::unpacked(Location here) const {
  const Layout from = layout();
  if (from == Layout::dense) return *this;
  const Ints sizes(impl_->shape.sizes, impl_->shape.sizes + impl_->shape.rank);
  if (is_in_halves(from)) {
    const DType half = is_in_f16(from) ? DType::f16 : DType::bf16;
    return borrow(impl_->ref.data, half, sizes, impl_->storage, here).to(DType::f32, here);
  }
  Tensor dense = empty(sizes, DType::f32, here);
  quantized::dequantize(from, static_cast<const std::byte*>(impl_->ref.data), impl_->shape.numel(),
                        dense.data<float>());
  return dense;
}
Tensor Tensor::empty(const Ints& sizes, DType dtype, Location here) {
  return Tensor(dense_impl(Storage::allocate(checked_bytes(sizes, dtype, here)), dtype, sizes));
}

// ---- what it is ----

void Tensor::refuse_undefined(Location here) {
  throw EagerError(here, "an undefined tensor was used; give it a value first");
}
Dim Tensor::size(int64_t dim, Location here) const {
  const int64_t n = rank();
  if (dim < -n || dim >= n)
    throw EagerError(here, "size: dim " + std::to_string(dim) + " is outside [" +
                               std::to_string(-n) + ", " + std::to_string(n) + ") for " +
                               eager::to_string(sizes()));
  const int i = static_cast<int>(dim < 0 ? dim + n : dim);
  return impl_->symbolic ? impl_->symbolic->sizes[i] : Dim(impl_->shape.sizes[i]);
}
Dims Tensor::sizes() const {
  const TensorImpl& i = checked();
  if (i.symbolic) return {i.symbolic->sizes, i.symbolic->sizes + i.symbolic->rank};
  return {i.shape.sizes, i.shape.sizes + i.shape.rank};
}
Dims Tensor::strides() const {
  const TensorImpl& i = checked();
  if (i.symbolic) return {i.symbolic->strides, i.symbolic->strides + i.symbolic->rank};
  return {i.shape.strides, i.shape.strides + i.shape.rank};
}
Dim Tensor::storage_offset() const {
  const TensorImpl& i = checked();
  return i.symbolic ? i.symbolic->offset : Dim(i.offset);
}
Dim Tensor::numel() const {
  Dim n = 1;
  for (const Dim& d : sizes()) n = n * d;
  return n;
}
Layout Tensor::layout() const { return checked().ref.layout; }
bool Tensor::is_dense() const {
  const TensorImpl& i = checked();
  return i.symbolic ? ir::is_dense(*i.symbolic) : i.shape.is_dense();
}
TensorType<Dim> Tensor::type() const {
  const TensorImpl& i = checked();
  if (i.symbolic) return *i.symbolic;
  TensorType<Dim> t;
  t.dtype = i.ref.dtype, t.rank = i.shape.rank, t.offset = i.offset;
  for (int k = 0; k < t.rank; ++k) t.sizes[k] = i.shape.sizes[k], t.strides[k] = i.shape.strides[k];
  return t;
}

// ---- elements ----

void Tensor::refuse_elements(Location here) const {
  if (Recorder* r = recorder()) r->refuse_value(*this, here);
  throw EagerError(here, "a traced tensor has no elements; it was used after its trace had ended");
}
void* Tensor::raw_data(DType expected, Location here) const {
  const TensorRef& r = ref(here);
  if (r.layout != Layout::dense)
    throw EagerError(here, "data: the elements lie in halves or in blocks; call unpacked() first");
  if (r.dtype != expected)
    throw EagerError(here, std::string("data: the tensor holds ") + taper::name_of(r.dtype) +
                               ", not " + taper::name_of(expected) +
                               "; convert it with to() first");
  return r.data;
}
Scalar Tensor::scalar(Location here) const {
  const TensorImpl& i = checked(here);
  if (Recorder* r = recorder()) r->refuse_value(*this, here);
  if (i.shape.numel() != 1)
    throw EagerError(here,
                     "item: a tensor of size " + eager::to_string(sizes()) + " is not one number");
  if (layout() != Layout::dense) return unpacked(here).scalar(here);
  const void* p = ref(here).data;
  switch (i.ref.dtype) {
    case DType::boolean:
      return Scalar(*static_cast<const bool*>(p));
    case DType::u8:
      return Scalar(static_cast<int64_t>(*static_cast<const uint8_t*>(p)));
    case DType::i8:
      return Scalar(static_cast<int64_t>(*static_cast<const int8_t*>(p)));
    case DType::i16:
      return Scalar(static_cast<int64_t>(*static_cast<const int16_t*>(p)));
    case DType::i32:
      return Scalar(static_cast<int64_t>(*static_cast<const int32_t*>(p)));
    case DType::i64:
      return Scalar(*static_cast<const int64_t*>(p));
    case DType::f16:
      return Scalar(static_cast<double>(static_cast<float>(*static_cast<const Half*>(p))));
    case DType::bf16:
      return Scalar(static_cast<double>(static_cast<float>(*static_cast<const BFloat16*>(p))));
    case DType::f32:
      return Scalar(static_cast<double>(*static_cast<const float*>(p)));
    case DType::f64:
      return Scalar(*static_cast<const double*>(p));
    case DType::c64:
      throw EagerError(here,
                       "item: a complex number is not one real number; take real() or imag() "
                       "of the tensor first");
    case DType::f8_e4m3fn:
      return Scalar(static_cast<double>(static_cast<float>(*static_cast<const Float8E4M3*>(p))));
    case DType::f8_e5m2:
      return Scalar(static_cast<double>(static_cast<float>(*static_cast<const Float8E5M2*>(p))));
    case DType::u16:
      return Scalar(static_cast<int64_t>(*static_cast<const uint16_t*>(p)));
    case DType::u32:
      return Scalar(static_cast<int64_t>(*static_cast<const uint32_t*>(p)));
    case DType::u64: {
      const uint64_t value = *static_cast<const uint64_t*>(p);
      if (value > static_cast<uint64_t>(INT64_MAX))
        throw EagerError(here, "item: " + std::to_string(value) +
                                   " is larger than an i64; take to_vector<uint64_t>()");
      return Scalar(static_cast<int64_t>(value));
    }
    default:
      throw EagerError(here, std::string("item: an element of dtype ") +
                                 taper::name_of(i.ref.dtype) + " is not one number");
  }
}

template <class T>
std::vector<T> Tensor::to_vector(Location here) const {
  if (layout() != Layout::dense) return unpacked(here).to_vector<T>(here);
  const T* first = data<T>(here);
  const size_t n = static_cast<size_t>(impl_->shape.numel());
  std::vector<T> values(n);
  if (n == 0) return values;
  if (is_dense()) {
    std::copy_n(first, n, values.begin());
    return values;
  }
  Tensor dense = Tensor::empty(Ints(impl_->shape.sizes, impl_->shape.sizes + impl_->shape.rank),
                               dtype(), here);
  copy_elements(dense, *this);
  std::copy_n(dense.data<T>(here), n, values.begin());
  return values;
}
#define TAPER_TO_VECTOR(T) template std::vector<T> Tensor::to_vector<T>(Location) const;
TAPER_TO_VECTOR(bool)
TAPER_TO_VECTOR(uint8_t)
TAPER_TO_VECTOR(int8_t)
TAPER_TO_VECTOR(int16_t)
TAPER_TO_VECTOR(int32_t)
TAPER_TO_VECTOR(int64_t)
TAPER_TO_VECTOR(Half)
TAPER_TO_VECTOR(BFloat16)
TAPER_TO_VECTOR(float)
TAPER_TO_VECTOR(double)
TAPER_TO_VECTOR(Complex64)
TAPER_TO_VECTOR(std::complex<float>)
TAPER_TO_VECTOR(uint16_t)
TAPER_TO_VECTOR(uint32_t)
TAPER_TO_VECTOR(uint64_t)
#undef TAPER_TO_VECTOR

// ---- autograd ----

bool Tensor::has_history() const {
  const TensorImpl& i = *impl_;
  if (i.base.defined())
    if (const Autograd* base = i.base.impl()->autograd.get();
        base && base->generation != i.base_generation)
      return gradient_edge(*this).node != nullptr;
  const Autograd* a = i.autograd.get();
  return a && (a->requires_grad || a->grad_fn);
}
const Tensor& Tensor::set_requires_grad(bool on, Location here) const {
  if (!is_leaf())
    throw EagerError(
        here, "set_requires_grad: only a leaf can be asked for a gradient; detach() it first");
  if (on && layout() != Layout::dense)
    throw EagerError(here,
                     "set_requires_grad: elements in halves or in blocks have no gradient; take "
                     "unpacked()");
  if (on && !is_inexact(dtype()))
    throw EagerError(here,
                     std::string("set_requires_grad: only floating tensors have gradients, not ") +
                         taper::name_of(dtype()));
  if (on || impl_->autograd) autograd_of(*this).requires_grad = on;
  return *this;
}
const std::shared_ptr<Node>& Tensor::grad_fn() const {
  static const std::shared_ptr<Node> none;
  const Autograd* a = checked().autograd.get();
  return a ? a->grad_fn : none;
}
Tensor Tensor::grad() const {
  const Autograd* a = checked().autograd.get();
  return a ? a->grad : Tensor();
}
void Tensor::set_grad(const Tensor& gradient) const {
  checked();
  if (Recorder* r = recorder()) r->keep_grad(*this);
  autograd_of(*this).grad = gradient;
}
void Tensor::retain_grad() const {
  if (is_leaf()) return;
  Autograd& a = autograd_of(*this);
  if (a.retains_grad) return;
  a.retains_grad = true;
  a.grad_fn->retains.push_back(impl_);
  a.grad_fn->retain_results.push_back(a.result);
}
void Tensor::register_hook(std::function<Tensor(const Tensor&)> hook, Location here) const {
  checked(here);
  if (!hook) throw EagerError(here, "register_hook: the hook is empty");
  Autograd& a = autograd_of(*this);
  if (!a.grad_fn) {
    a.hooks.push_back(std::move(hook));
    return;
  }
  a.grad_fn->hooks.push_back(std::move(hook));
  a.grad_fn->hook_results.push_back(a.result);
}
Tensor Tensor::detach() const {
  checked();
  NoGrad guard;
  return shallow(*this);
}

const std::string& Tensor::name() const { return checked().name; }
void Tensor::set_name(std::string name) const {
  checked();
  impl_->name = std::move(name);
}

// ---- in place ----

Tensor& Tensor::copy_(const Tensor& source, Location here) {
  const Dims want = sizes(), have = source.sizes();
  bool equal = want.size() == have.size();
  for (size_t i = 0; equal && i < want.size(); ++i) equal = same(want[i], have[i]);
  Tensor value = source;
  try {
    if (!equal) value = source.expand(want, here);
  } catch (EagerError& e) {
    e.in_call_of("copy_");
    throw;
  }
  write(*this, value.dtype() == dtype() ? value : value.to(dtype(), here), "copy", here);
  return *this;
}
Tensor& Tensor::fill_(Scalar value, Location here) {
  return call_in_place<ops::fill_Scalar>(here, *this, value);
}
Tensor& Tensor::zero_(Location here) { return fill_(0, here); }
Tensor& Tensor::add_(const Tensor& other, Scalar alpha, Location here) {
  return call_in_place<ops::add_Tensor>(here, *this, other, alpha);
}
Tensor& Tensor::add_(Scalar other, Location here) {
  return call_in_place<ops::add_Scalar>(here, *this, other, Scalar(1));
}
Tensor& Tensor::sub_(const Tensor& other, Scalar alpha, Location here) {
  return call_in_place<ops::sub_Tensor>(here, *this, other, alpha);
}
Tensor& Tensor::sub_(Scalar other, Location here) {
  return call_in_place<ops::sub_Scalar>(here, *this, other, Scalar(1));
}
Tensor& Tensor::mul_(const Tensor& other, Location here) {
  return call_in_place<ops::mul_Tensor>(here, *this, other);
}
Tensor& Tensor::mul_(Scalar other, Location here) {
  return call_in_place<ops::mul_Scalar>(here, *this, other);
}
Tensor& Tensor::div_(const Tensor& other, Location here) {
  return call_in_place<ops::div_Tensor>(here, *this, other);
}
Tensor& Tensor::div_(Scalar other, Location here) {
  return call_in_place<ops::div_Scalar>(here, *this, other);
}
Tensor& Tensor::operator+=(Operand other) { return add_(other.tensor, 1, other.here); }
Tensor& Tensor::operator-=(Operand other) { return sub_(other.tensor, 1, other.here); }
Tensor& Tensor::operator*=(Operand other) { return mul_(other.tensor, other.here); }
Tensor& Tensor::operator/=(Operand other) { return div_(other.tensor, other.here); }

// ---- shape and type ----

Tensor Tensor::to(DType dtype, Location here) const { return cast(*this, dtype, here); }
Tensor Tensor::clone(Location here) const { return call<ops::clone>(here, *this); }
Tensor Tensor::contiguous(Location here) const {
  if (layout() != Layout::dense && recorder() == nullptr) return unpacked(here);
  return is_dense() ? *this : clone(here);
}
Tensor Tensor::reshape(const Dims& sizes, Location here) const {
  return call<ops::reshape>(here, *this, sizes);
}
Tensor Tensor::view(const Dims& sizes, Location here) const {
  return call<ops::view>(here, *this, sizes);
}
Tensor Tensor::permute(const Ints& dims, Location here) const {
  return call<ops::permute>(here, *this, dims);
}
Tensor Tensor::transpose(int64_t dim0, int64_t dim1, Location here) const {
  return call<ops::transpose_int>(here, *this, dim0, dim1);
}
Tensor Tensor::t(Location here) const {
  if (rank() > 2)
    throw EagerError(here, "t: takes at most 2 dimensions, not " + eager::to_string(sizes()) +
                               "; use transpose()");
  return rank() < 2 ? *this : transpose(0, 1, here);
}
Tensor Tensor::unsqueeze(int64_t dim, Location here) const {
  return call<ops::unsqueeze>(here, *this, dim);
}
Tensor Tensor::squeeze(int64_t dim, Location here) const {
  return call<ops::squeeze_dim>(here, *this, dim);
}
Tensor Tensor::expand(const Dims& sizes, Location here) const {
  return call<ops::expand>(here, *this, sizes, false);
}
Tensor Tensor::operator[](Row row) const { return select(0, Dim(row.index), row.here); }
Tensor Tensor::select(int64_t dim, Dim index, Location here) const {
  return call<ops::select_int>(here, *this, dim, index);
}
Tensor Tensor::slice(int64_t dim, Dim start, Dim end, Dim step, Location here) const {
  return call<ops::slice_Tensor>(here, *this, dim, std::optional<Dim>(start),
                                 std::optional<Dim>(end), step);
}

}  // namespace taper::eager
