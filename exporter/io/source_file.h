// A mapped file that a model was read from.
#pragma once
#include <memory>
#include <string>

namespace taper {
class MappedFile;
}

namespace taper::io {

struct SourceFile {
  std::string name;  ///< without its folder
  std::shared_ptr<const MappedFile> mapping;
};

}  // namespace taper::io
