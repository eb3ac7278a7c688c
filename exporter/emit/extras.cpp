#include "taper/exporter/emit/extras.h"

#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::emit {
namespace {

using flatbuffers::Offset;

/// Writes the tables in the order of `bytes_of`.
class Writer {
 public:
  Writer(uint32_t segment, const std::vector<uint64_t>& offsets)
      : segment_(segment), offset_(offsets.begin()) {}

  std::vector<std::byte> table(const Extras& extras) {
    std::vector<Offset<format::BundledTest>> tests;
    for (const io::BundledTest& test : extras.tests) tests.push_back(write(test));
    std::vector<Offset<format::Asset>> assets;
    for (const io::Asset& asset : extras.assets) {
      const format::Piece piece = next(asset.bytes.size());
      assets.push_back(
          format::CreateAssetDirect(b_, asset.name.c_str(), asset.media_type.c_str(), &piece));
    }
    b_.Finish(format::CreateExtrasDirect(b_, &assets, &tests));
    const auto* begin = reinterpret_cast<const std::byte*>(b_.GetBufferPointer());
    return {begin, begin + b_.GetSize()};
  }

 private:
  format::Piece next(size_t size_bytes) {
    return {segment_, segment_alignment, *offset_++, size_bytes};
  }
  std::vector<Offset<format::TensorData>> write(const std::vector<io::Array>& arrays) {
    std::vector<Offset<format::TensorData>> list;
    for (const io::Array& a : arrays) {
      const format::Piece piece = next(a.size_bytes());
      list.push_back(format::CreateTensorDataDirect(b_, static_cast<format::DType>(a.dtype),
                                                    &a.sizes, &piece));
    }
    return list;
  }
  Offset<format::BundledTest> write(const io::BundledTest& test) {
    const auto inputs = write(test.inputs), outputs = write(test.outputs);
    return format::CreateBundledTestDirect(b_, test.method.c_str(), test.name.c_str(), &inputs,
                                           &outputs, test.absolute_tolerance,
                                           test.relative_tolerance);
  }

  flatbuffers::FlatBufferBuilder b_;
  const uint32_t segment_;
  std::vector<uint64_t>::const_iterator offset_;
};

}  // namespace

std::vector<std::span<const std::byte>> bytes_of(const Extras& extras) {
  std::vector<std::span<const std::byte>> bytes;
  for (const io::BundledTest& test : extras.tests) {
    for (const io::Array& a : test.inputs) bytes.push_back(a.raw());
    for (const io::Array& a : test.outputs) bytes.push_back(a.raw());
  }
  for (const io::Asset& asset : extras.assets) bytes.emplace_back(asset.bytes);
  return bytes;
}

std::vector<std::byte> extras_table(const Extras& extras, uint32_t segment,
                                    const std::vector<uint64_t>& offsets) {
  return Writer(segment, offsets).table(extras);
}

}  // namespace taper::emit
