// Visits the elements of strided tensors in row-major order, block by block. Pointwise kernels,
// reductions and copies share this.
#pragma once
#include <cstdint>

#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

/// The elements of one tensor in the row-major order of an index space, with as few dimensions as
/// the strides allow.
struct Walk {
  int32_t rank = 1;  ///< at least 1
  index_t sizes[max_rank];
  index_t strides[max_rank];  ///< in elements; 0 repeats

  /// One element. Leaves dimensions from `rank` on uninitialised, because every `prepare` makes a
  /// Walk.
  Walk() { sizes[0] = strides[0] = 1; }
  /// Whether element number i of the space lies at offset i.
  bool is_linear() const { return rank == 1 && (strides[0] == 1 || sizes[0] == 1); }
  /// Whether all elements of the space are the same one.
  bool is_constant() const { return rank == 1 && strides[0] == 0; }
  /// Adds an inner dimension. Drops extents of 1 and joins dimensions that lie one behind the
  /// other.
  void add(index_t size, index_t stride);
  index_t offset_of(index_t element) const;

  static Walk of(const Shape& shape);
  /// `operand` repeated over `space`. Each dimension of `operand` matches a trailing one of
  /// `space`, or has extent 1.
  static Walk broadcast(const Shape& operand, const Shape& space);
  /// Makes this walk `broadcast(operand, space)`.
  void repeat(const Shape& operand, const Shape& space);
};

/// A place in a walk, which moves forward.
class Cursor {
 public:
  Cursor() = default;
  Cursor(const Walk& walk, index_t element);
  index_t offset() const { return offset_; }
  /// How many places of dimension d are left.
  index_t left(int d) const { return walk_->sizes[d] - position_[d]; }
  index_t position(int d) const { return position_[d]; }
  /// Moves by n <= left(d) places of dimension d.
  void advance(int d, index_t n) {
    position_[d] += n, offset_ += n * walk_->strides[d];
    for (; d > 0 && position_[d] == walk_->sizes[d]; --d) {
      offset_ += walk_->strides[d - 1] - position_[d] * walk_->strides[d];
      position_[d] = 0, ++position_[d - 1];
    }
  }

 private:
  const Walk* walk_;
  index_t offset_, position_[max_rank];
};

/// The size of a block buffer: 1 KiB, so that a few buffers stay in the first-level cache.
inline constexpr index_t block_bytes = 1024;
template <class T>
inline constexpr index_t block_size = block_bytes / static_cast<index_t>(sizeof(T));

/// Copies n elements that lie `stride` apart to a dense buffer, and converts them.
using Load = void (*)(const void* from, index_t stride, index_t n, void* to);
/// Copies n dense elements to a dense tensor, and converts them.
using Store = void (*)(const void* from, index_t n, void* to);

/// Converts from any dtype to the compute type `to`: f32, f64 or i64. If `from` equals `to`,
/// copies.
Load loader(DType from, DType to);
/// Converts from a compute type (f32, f64, i64) to any dtype. If both are equal, copies. A real
/// number becomes an integer by rounding towards zero; NaN and numbers outside i64 become the
/// smallest i64. An i64 wraps to the width of a smaller integer. u64 takes real numbers up to 2^64.
Store storer(DType from, DType to);

/// A tensor to read through a walk.
struct Source {
  const void* data;
  const Walk* walk;
  Load load;  ///< nullptr: elements can be read where they lie
  int16_t element_bytes;
  int16_t buffer_bytes;  ///< bytes of an element in the kernel's compute type
  bool converts;         ///< whether the two dtypes differ

  Source(const TensorRef& ref, const Walk& walk, DType compute)
      : data(ref.data),
        walk(&walk),
        load(walk.is_linear() && ref.dtype == compute ? nullptr : loader(ref.dtype, compute)),
        element_bytes(static_cast<int16_t>(size_bytes(ref.dtype))),
        buffer_bytes(static_cast<int16_t>(size_bytes(compute))),
        converts(ref.dtype != compute) {}
  const void* at(index_t offset) const {
    return static_cast<const char*>(data) + offset * element_bytes;
  }
  bool is_direct() const { return walk->is_linear() && !converts; }
};

/// Elements [first, first + n) of the space. Returns where they lie, if they are dense and need no
/// conversion. Otherwise copies them to `buffer`, which has room for n elements of the compute
/// type.
const void* read_block(const Source& source, index_t first, index_t n, void* buffer);

}  // namespace taper::portable
