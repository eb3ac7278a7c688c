#include "taper/exporter/emit/sources.h"

namespace taper::emit {

Sources::Sources(const std::vector<io::SourceFile>& files) : files_(files) {
  for (const io::SourceFile& file : files) fingerprints_.push_back(fingerprint(*file.mapping));
}

std::optional<Sources::Place> Sources::find(const ir::Payload& constant) const {
  if (!has_exact_size(constant.layout)) return std::nullopt;
  const Span<const std::byte> bytes(constant.bytes.get(),
                                    static_cast<index_t>(constant.size_bytes));
  for (size_t i = 0; i < files_.size(); ++i) {
    const MappedFile& file = *files_[i].mapping;
    if (!file.holds(bytes)) continue;
    const PlaceInFile place{fingerprints_[i],
                            static_cast<uint64_t>(bytes.data() - file.bytes().data()),
                            constant.layout};
    return Place{files_[i].name, place.key()};
  }
  return std::nullopt;
}

}  // namespace taper::emit
