#include "taper/runtime/extension/module/whole_file.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>

namespace taper {

bool write_whole_file(const std::string& path, std::initializer_list<Span<const std::byte>> parts) {
  const std::string partial = path + "." + std::to_string(std::random_device()()) + ".partial";
  std::ofstream out(partial, std::ios::binary);
  for (const Span<const std::byte> part : parts)
    out.write(reinterpret_cast<const char*>(part.data()), part.size());
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(partial, path, failed);
  if (out && !failed) return true;
  std::filesystem::remove(partial, failed);
  return false;
}

}  // namespace taper
