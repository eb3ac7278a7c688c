// A program's weights: which lie where they are stored, and which are copied.
#include "taper/exporter/importers/pt2/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "taper/exporter/eager/eager.h"
#include "taper/runtime/program/format.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using io::StoredTensor;

/// A file of `size` bytes, in which byte i is i.
class File {
 public:
  explicit File(size_t size) : bytes_(std::make_shared<std::vector<std::byte>>(size)) {
    for (size_t i = 0; i < size; ++i) (*bytes_)[i] = static_cast<std::byte>(i);
  }
  StoredTensor tensor(DType dtype, size_t begin, int64_t count) const {
    const std::span<const std::byte> all(*bytes_);
    return {
        dtype,
        {count},
        {1},
        0,
        all.subspan(begin, static_cast<size_t>(count) * static_cast<size_t>(size_bytes(dtype)))};
  }
  Tensor load(const StoredTensor& stored) const {
    return make_tensors({{"w", stored}}, *bytes_, bytes_).at("w");
  }
  /// Where the tensor lies in the file; -1: elsewhere.
  int64_t place_of(const Tensor& tensor) const {
    const auto* first = static_cast<const std::byte*>(tensor.ref().data);
    const bool inside = first >= bytes_->data() && first < bytes_->data() + bytes_->size();
    return inside ? first - bytes_->data() : -1;
  }

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

TEST(pt2_weights, stay_in_the_file_if_a_kernel_may_read_on_behind_them) {
  const File file(16 + slack_bytes + 1);
  const auto expect = [&](DType dtype, size_t begin, int64_t count, int64_t place) {
    const Tensor tensor = file.load(file.tensor(dtype, begin, count));
    EXPECT_EQ(file.place_of(tensor), place) << name_of(dtype) << " at " << begin;
    EXPECT_EQ(tensor.to(DType::i64).to_vector<int64_t>()[0] & 0xff, static_cast<int64_t>(begin));
    EXPECT_EQ(tensor.name(), "w");
  };
  expect(DType::u8, 0, 17, 0);
  expect(DType::u8, 0, 18, -1);
  expect(DType::u8, 1, 16, 1);
  expect(DType::u8, 1, 17, -1);
  expect(DType::i64, 8, 1, 8);
  expect(DType::i64, 16, 1, -1);
  expect(DType::i32, 4, 2, 4);
  expect(DType::i32, 6, 2, -1);  // not aligned
}

TEST(pt2_weights, that_are_bools_are_0_or_1) {
  const File file(8 + slack_bytes);
  const Tensor strange = file.load(file.tensor(DType::boolean, 0, 4));
  EXPECT_EQ(std::memcmp(strange.ref().data, "\0\1\1\1", 4), 0);
  EXPECT_EQ(file.place_of(strange), -1);
  EXPECT_EQ(file.place_of(file.load(file.tensor(DType::boolean, 0, 2))), 0);
}

}  // namespace
}  // namespace taper::pt2
