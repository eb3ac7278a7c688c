// Constants that stay in the files that a model was read from. Internal to the writer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/io/source_file.h"
#include "taper/exporter/ir/graph.h"
#include "taper/runtime/extension/module/place_in_file.h"

namespace taper::emit {

class Sources {
 public:
  explicit Sources(const std::vector<io::SourceFile>& files);

  struct Place {
    std::string file;
    PlaceInFile::Key key;
  };
  /// nullopt: the constant lies in none of the files.
  std::optional<Place> find(const ir::Payload& constant) const;

 private:
  const std::vector<io::SourceFile>& files_;
  std::vector<uint64_t> fingerprints_;
};

}  // namespace taper::emit
