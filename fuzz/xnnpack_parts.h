// Parts for XNNPACK, made of bytes: nearly all choices are right ones, so that most parts run.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/delegates/xnnpack/runtime/blob_generated.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::fuzzing {

/// Bytes as a source of choices. Behind their end all choices are the first ones.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  uint32_t below(uint32_t n) { return n == 0 ? 0 : byte() % n; }
  /// A number of these.
  int64_t between(int64_t least, int64_t most) {
    return least + below(static_cast<uint32_t>(most - least + 1));
  }
  template <class T, size_t n>
  T one_of(const T (&list)[n]) {
    return list[below(n)];
  }
  /// Seldom: once in 256 times.
  bool slips() { return byte() == 255; }
  bool is_at_end() const { return at_ >= size_; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

/// A blob, and the sizes of its operands and constants.
struct Sample {
  std::vector<uint64_t> blob;  ///< in words, so that it is aligned
  size_t bytes = 0;
  std::vector<Shape> inputs;
  std::vector<int64_t> ends;  ///< what the second operand of a grouped product holds
};

Sample make_sample(Choices& choices);

}  // namespace taper::fuzzing
