#include "taper/runtime/extension/module/asset.h"

#include "taper/runtime/program/format.h"
#include "taper/runtime/program/tables.h"

namespace taper {
namespace {

using Segments = Span<const format::Segment>;

// `load` has verified that segments lie in the file.
Span<const std::byte> bytes_of(const Program& program, const format::Segment& segment) {
  return program.file().part(static_cast<index_t>(segment.offset()),
                             static_cast<index_t>(segment.size_bytes()));
}

// nullptr: the table is damaged.
const format::Extras* verified(Span<const std::byte> table) {
  const auto* begin = reinterpret_cast<const uint8_t*>(table.data());
  flatbuffers::Verifier verifier(begin, static_cast<size_t>(table.size()));
  if (table.size() < 16 || !verifier.VerifyBuffer<format::Extras>(nullptr)) return nullptr;
  return flatbuffers::GetRoot<format::Extras>(begin);
}

bool read(const Program& program, Segments segments, const format::Asset& from, Asset& asset) {
  const format::Piece* piece = from.data();
  if (piece == nullptr || piece->segment() >= static_cast<uint64_t>(segments.size())) return false;
  const Span<const std::byte> segment =
      bytes_of(program, segments[static_cast<index_t>(piece->segment())]);
  const auto size = static_cast<uint64_t>(segment.size());
  if (piece->offset() % segment_alignment != 0 || piece->offset() > size ||
      piece->size_bytes() > size - piece->offset())
    return false;
  asset.name = from.name()->string_view();
  if (from.media_type() != nullptr) asset.media_type = from.media_type()->string_view();
  asset.bytes = segment.part(static_cast<index_t>(piece->offset()),
                             static_cast<index_t>(piece->size_bytes()));
  return true;
}

}  // namespace

Result<std::vector<Asset>> assets_of(const Program& program) {
  std::vector<Asset> assets;
  const Segments segments = internal::span_of(program.table().segments());
  for (const format::Segment& s : segments) {
    if (s.kind() != format::SegmentKind::extras || s.size_bytes() == 0) continue;
    const format::Extras* extras = verified(bytes_of(program, s));
    if (extras == nullptr) return Error::invalid_program;
    const auto* list = extras->assets();
    for (uint32_t i = 0; list != nullptr && i < list->size(); ++i)
      if (!read(program, segments, *list->Get(i), assets.emplace_back()))
        return Error::invalid_program;
  }
  return assets;
}

Result<Asset> find_asset(const Program& program, std::string_view name) {
  TAPER_LET(assets, assets_of(program));
  for (const Asset& asset : assets)
    if (asset.name == name) return asset;
  return Error::invalid_argument;
}

}  // namespace taper
