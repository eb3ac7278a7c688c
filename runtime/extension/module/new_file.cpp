#include "taper/runtime/extension/module/new_file.h"

#include <filesystem>
#include <random>
#include <system_error>

namespace taper {

NewFile::NewFile(const std::string& path) : path_(path) {
  remove_leftovers(path);
  constexpr int tries = 3;
  for (int i = 0; i < tries; ++i) {
    partial_ = path + "." + std::to_string(std::random_device()()) + ".partial";
    out_.open(partial_, std::ios::binary);
    if (!out_ || lock_.take(partial_)) return;
    out_.close();
  }
}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove(partial_, ignored);
}

bool NewFile::write(size_t place, const void* bytes, size_t size) {
  const std::lock_guard lock(mutex_);
  out_.seekp(static_cast<std::streamoff>(place));
  out_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  return out_.good();
}

bool NewFile::finish() {
  out_.close();
  std::error_code error;
  if (out_) std::filesystem::rename(partial_, path_, error);
  return finished_ = out_ && !error;
}

}  // namespace taper
