// What the readers of quantized weights share.
#pragma once
#include <cstring>
#include <string>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/importers/huggingface/quantized.h"

namespace taper::huggingface::internal {

using Tensors = std::map<std::string, Tensor>;
using QuantizedWeights = std::map<std::string, QuantizedWeight>;

/// A weight, for messages.
struct Named {
  std::string name;

  void require(bool holds, const std::string& what) const {
    if (!holds) throw ExportError("weight " + name + ": " + what);
  }
};

/// The parts of one weight, taken out of the tensors of a folder.
class Parts : public Named {
 public:
  Parts(std::string name, Tensors& tensors) : Named{std::move(name)}, tensors_(tensors) {}

  /// The tensor `name suffix`, of this dtype and rank. It has elements, so sizes that a product of
  /// its extents gives do not overflow.
  Tensor take(const std::string& suffix, DType dtype, size_t rank);
  /// The same of any dtype and rank. Without bytes if there is none.
  Tensor take_if(const std::string& suffix);
  /// The first of these that there is, whose elements `number` reads.
  Tensor take_numbers(const std::vector<std::string>& suffixes);

 private:
  Tensors& tensors_;
};

/// The names of tensors that end so, without the end.
std::vector<std::string> names_before(const Tensors& tensors, const std::string& end);

/// Element `i` of a tensor at any address.
template <class T>
T element(const Tensor& t, int64_t i) {
  T value;
  std::memcpy(&value, t.bytes.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}
/// Of f32, f16 or bf16.
float number(const Tensor& t, int64_t i);

/// Memory of a weight; the bytes behind it are zero.
std::shared_ptr<std::byte> allocate(size_t bytes);

/// The memory of a matrix (out, in) in blocks of 32.
class Blocks {
 public:
  Blocks(Layout layout, int64_t out, int64_t in)
      : layout_(layout),
        of_row_(in / 32),
        bytes_(allocate(static_cast<size_t>(out * of_row_) * block_of(layout).bytes)) {}
  std::byte* at(int64_t row, int64_t block) const {
    return bytes_.get() + (row * of_row_ + block) * block_of(layout_).bytes;
  }
  Repacked finish() const { return {DType::f32, layout_, bytes_}; }

 private:
  Layout layout_;
  int64_t of_row_;
  std::shared_ptr<std::byte> bytes_;
};

QuantizedWeights take_mxfp4(Tensors& tensors);
/// `f8_e4m3fn` with scales of whole matrices, rows or tiles of them.
QuantizedWeights take_float8(const nlohmann::json& quantization, Tensors& tensors);
QuantizedWeights take_gptq(const nlohmann::json& quantization, Tensors& tensors);
QuantizedWeights take_awq(const nlohmann::json& quantization, Tensors& tensors);
QuantizedWeights take_bitsandbytes(Tensors& tensors);
/// `format`: mxfp8-quantized, mxfp6-pack-quantized or mxfp4-pack-quantized.
QuantizedWeights take_compressed_mx(const std::string& format, Tensors& tensors);
QuantizedWeights take_compressed(const nlohmann::json& quantization, Tensors& tensors);

}  // namespace taper::huggingface::internal
