#include "taper/exporter/io/array.h"

#include <cstring>
#include <new>

namespace taper::io {
namespace {

constexpr std::align_val_t alignment{64};
constexpr size_t readable_behind = 64;

}  // namespace

int64_t checked_numel(std::span<const int64_t> sizes, int64_t item_bytes) {
  // Extents may stand in any order, so a zero makes the product zero however large the others are;
  // torch agrees.
  int64_t n = 1, bytes = 0;
  bool overflow = false;
  for (const int64_t size : sizes) {
    if (size < 0) return -1;
    if (size == 0) n = 0;
  }
  if (n == 0) return 0;
  for (const int64_t size : sizes) overflow |= __builtin_mul_overflow(n, size, &n);
  return overflow || __builtin_mul_overflow(n, item_bytes, &bytes) ? -1 : n;
}

Array Array::zeros(DType dtype, std::vector<int64_t> sizes) {
  Array a;
  a.dtype = dtype;
  a.sizes = std::move(sizes);
  if (checked_numel(a.sizes, taper::size_bytes(dtype)) < 0)
    throw FileError("no array can have the shape " + a.describe());
  const size_t count = a.size_bytes() + readable_behind;
  auto* memory = static_cast<std::byte*>(::operator new[](count, alignment));
  a.bytes =
      std::shared_ptr<std::byte[]>(memory, [](std::byte* p) { ::operator delete[](p, alignment); });
  std::memset(memory, 0, count);
  return a;
}

Array Array::clone() const {
  Array copy = zeros(dtype, sizes);
  copy.assign(raw());
  return copy;
}

int64_t Array::numel() const { return checked_numel(sizes, 1); }

std::string Array::describe() const {
  std::string text = name_of(dtype);
  text += " (";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

void Array::assign(std::span<const std::byte> source) {
  if (source.size() != size_bytes())
    throw std::logic_error("Array::assign: " + std::to_string(source.size()) +
                           " bytes do not fill " + describe());
  if (!source.empty()) std::memcpy(bytes.get(), source.data(), source.size());
}

void Array::settle_bools() const {
  if (dtype != DType::boolean) return;
  for (std::byte& b : raw()) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
}

void Array::require_dtype(DType asked) const {
  if (asked != dtype)
    throw std::logic_error(std::string("Array::values: asked for ") + name_of(asked) +
                           ", the array is " + describe());
}

}  // namespace taper::io
