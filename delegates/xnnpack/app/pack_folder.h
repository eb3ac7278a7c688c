// Packed weights in the files of a folder.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "taper/delegates/xnnpack/runtime/pack_files.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::delegates::xnnpack {

/// One file for each block of packed bytes, named by their hash and number. Bytes are compared
/// before a file is used, so a file that is damaged or of another kind is written again.
class PackFolder final : public PackFiles {
 public:
  explicit PackFolder(std::string folder) : folder_(std::move(folder)) {}

  const void* map(const void* bytes, size_t count, uint64_t hash) override;
  void unmap(const void* bytes) override;

 private:
  std::string folder_;
  std::mutex mutex_;
  std::map<const void*, MappedFile> mapped_;
};

}  // namespace taper::delegates::xnnpack
