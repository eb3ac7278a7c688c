#include "taper/exporter/emit/extras.h"

#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::emit {

std::vector<const io::Array*> tensors_of(const std::vector<io::BundledTest>& tests) {
  std::vector<const io::Array*> tensors;
  for (const io::BundledTest& test : tests) {
    for (const io::Array& a : test.inputs) tensors.push_back(&a);
    for (const io::Array& a : test.outputs) tensors.push_back(&a);
  }
  return tensors;
}

std::vector<std::byte> extras_table(const std::vector<io::BundledTest>& tests, uint32_t assets,
                                    const std::vector<uint64_t>& offsets) {
  flatbuffers::FlatBufferBuilder b;
  auto offset = offsets.begin();
  const auto tensors = [&](const std::vector<io::Array>& arrays) {
    std::vector<flatbuffers::Offset<format::TensorData>> list;
    for (const io::Array& a : arrays) {
      const format::Piece piece(assets, segment_alignment, *offset++, a.size_bytes());
      list.push_back(
          format::CreateTensorDataDirect(b, static_cast<format::DType>(a.dtype), &a.sizes, &piece));
    }
    return list;
  };
  std::vector<flatbuffers::Offset<format::BundledTest>> list;
  for (const io::BundledTest& test : tests) {
    const auto inputs = tensors(test.inputs), outputs = tensors(test.outputs);
    list.push_back(format::CreateBundledTestDirect(b, test.method.c_str(), test.name.c_str(),
                                                   &inputs, &outputs, test.absolute_tolerance,
                                                   test.relative_tolerance));
  }
  b.Finish(format::CreateExtrasDirect(b, nullptr, &list));
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {begin, begin + b.GetSize()};
}

}  // namespace taper::emit
