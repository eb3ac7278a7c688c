// Programs as files, in a folder of the test.
#pragma once
#include <fstream>
#include <string>

#include "../support/data.h"
#include "programs.h"

namespace taper::test {

inline std::string written(const AlignedBytes& file, const char* name = "program.taper") {
  const std::string path = tests::scratch_file(name).string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  return path;
}

}  // namespace taper::test
