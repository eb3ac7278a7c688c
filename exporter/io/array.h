// Arrays read from files: the plainest owning form of a tensor, below eager and independent of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/runtime/core/dtype.h"

namespace taper::io {

/// A file is damaged, of another kind, or holds something Taper has no place for. The message names
/// the file, what is wrong with it and, where there is one, the remedy.
class FileError : public ExportError {
 public:
  using ExportError::ExportError;
};

/// A row-major array without gaps. Copies share the bytes; `clone` does not. The bytes are aligned
/// to 64 and followed by 64 readable zero bytes, which is what kernels ask of every buffer, so that
/// a tensor can adopt them as they are.
struct Array {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes;
  std::shared_ptr<std::byte[]> bytes;

  /// Zeros of this type and shape. Throws FileError if an extent is negative or the size overflows.
  static Array zeros(DType dtype, std::vector<int64_t> sizes);
  /// A copy of `values`, whose count must be the product of `sizes`.
  template <class T>
  static Array of(std::vector<int64_t> sizes, std::span<const T> values) {
    Array a = zeros(dtypes_of<T>::dtype, std::move(sizes));
    a.assign(std::as_bytes(values));
    return a;
  }

  Array clone() const;
  int64_t numel() const;
  size_t size_bytes() const {
    return static_cast<size_t>(numel()) * static_cast<size_t>(taper::size_bytes(dtype));
  }
  /// "f32 (2, 3)", for messages.
  std::string describe() const;

  /// The elements. Throws std::logic_error if `T` is not the dtype's C++ type.
  template <class T>
  std::span<T> values() const {
    require_dtype(dtypes_of<T>::dtype);
    return {reinterpret_cast<T*>(bytes.get()), static_cast<size_t>(numel())};
  }
  std::span<std::byte> raw() const { return {bytes.get(), size_bytes()}; }
  /// Overwrites the elements with `source`, which has exactly size_bytes() bytes.
  void assign(std::span<const std::byte> source);
  /// Makes every byte of a bool array 0 or 1, the only values that C++ knows; files may hold
  /// others. Leaves other dtypes alone.
  void settle_bools() const;

 private:
  void require_dtype(DType asked) const;
};

/// Named arrays, as checkpoints hold them.
using ArrayMap = std::map<std::string, Array>;

/// The product of `sizes`, or -1 if one is negative or the product times `item_bytes` does not fit
/// into 63 bits.
int64_t checked_numel(std::span<const int64_t> sizes, int64_t item_bytes);

}  // namespace taper::io
