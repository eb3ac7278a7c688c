#include "taper/exporter/inspect/extras.h"

#include <algorithm>
#include <cstring>

#include "taper/runtime/program/format.h"
#include "taper/runtime/program/tables.h"

namespace taper::inspect {
namespace {

using format::SegmentKind;
using internal::span_of;

bool is_extra(const format::Segment& s) {
  return s.kind() == SegmentKind::extras || s.kind() == SegmentKind::assets;
}

/// Reads the tests of a file. The loader has verified everything else in it.
class Reader {
 public:
  explicit Reader(const ProgramFile& file)
      : file_(file),
        segments_(span_of(file.program().table().segments())),
        unread_(file.bytes().size()) {}

  std::vector<io::BundledTest> tests() {
    std::vector<io::BundledTest> tests;
    for (const format::Segment& s : segments_) {
      if (s.kind() != SegmentKind::extras || s.size_bytes() == 0) continue;
      const std::span<const std::byte> bytes = bytes_of(s);
      const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
      flatbuffers::Verifier verifier(begin, bytes.size());
      if (bytes.size() < 16 || !verifier.VerifyBuffer<format::Extras>(nullptr)) refuse();
      const auto* list = flatbuffers::GetRoot<format::Extras>(begin)->tests();
      for (uint32_t i = 0; list != nullptr && i < list->size(); ++i)
        tests.push_back(read(*list->Get(i)));
    }
    return tests;
  }

 private:
  [[noreturn]] void refuse() const {
    throw ExportError(file_.path().string() + ": its tests are damaged; export it again");
  }
  std::span<const std::byte> bytes_of(const format::Segment& s) const {
    return std::span(file_.bytes()).subspan(s.offset(), s.size_bytes());
  }

  io::BundledTest read(const format::BundledTest& test) {
    return {test.method()->str(),      test.name() == nullptr ? "" : test.name()->str(),
            read(test.inputs()),       read(test.outputs()),
            test.absolute_tolerance(), test.relative_tolerance()};
  }
  std::vector<io::Array> read(
      const flatbuffers::Vector<flatbuffers::Offset<format::TensorData>>* list) {
    std::vector<io::Array> arrays;
    for (uint32_t i = 0; list != nullptr && i < list->size(); ++i)
      arrays.push_back(read(*list->Get(i)));
    return arrays;
  }
  io::Array read(const format::TensorData& tensor) {
    const auto dtype = static_cast<DType>(tensor.dtype());
    const format::Piece* piece = tensor.data();
    const Span<const int64_t> sizes = span_of(tensor.sizes());
    size_t bytes = 0;
    if (!is_valid(dtype) || !internal::dense_bytes(sizes, dtype, bytes) || piece == nullptr ||
        piece->segment() >= static_cast<uint64_t>(segments_.size()))
      refuse();
    const std::span<const std::byte> segment =
        bytes_of(segments_[static_cast<index_t>(piece->segment())]);
    if (piece->offset() > segment.size() || bytes > segment.size() - piece->offset() ||
        bytes != piece->size_bytes() || bytes > unread_)
      refuse();
    unread_ -= bytes;
    io::Array array = io::Array::zeros(dtype, {sizes.begin(), sizes.end()});
    array.assign(segment.subspan(piece->offset(), bytes));
    array.settle_bools();
    return array;
  }

  const ProgramFile& file_;
  const Span<const format::Segment> segments_;
  // in bytes: if tensors shared bytes, they would take more memory than the file has
  size_t unread_;
};

}  // namespace

std::vector<io::BundledTest> bundled_tests(const ProgramFile& file) { return Reader(file).tests(); }

std::vector<std::byte> without_extras(const ProgramFile& file) {
  std::vector<std::byte> bytes = file.bytes();
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Span<const format::Segment> segments = span_of(file.program().table().segments());
  uint64_t end = header.metadata_offset + header.metadata_bytes;
  for (const format::Segment& s : segments)
    if (!is_extra(s)) end = std::max(end, s.offset() + s.size_bytes());
  if (std::ranges::none_of(segments, is_extra)) return bytes;

  for (const format::Segment& s : segments) {
    if (!is_extra(s)) continue;
    const format::Segment empty(0, 0, 0, s.kind());
    const auto at = reinterpret_cast<const std::byte*>(&s) - file.bytes().data();
    std::memcpy(bytes.data() + at, &empty, sizeof empty);
  }
  bytes.resize(end);
  header.file_bytes = end;
  header.metadata_checksum = checksum(
      {bytes.data() + header.metadata_offset, static_cast<index_t>(header.metadata_bytes)});
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace taper::inspect
