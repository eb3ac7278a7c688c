// The command in a test: arguments in, exit code and text out.
#pragma once
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "taper/exporter/cli/taper.h"
#include "taper/exporter/io/npy.h"
#include "taper/tests/support/data.h"

namespace taper::cli {

struct Outcome {
  int code;
  std::string out, err;
};

template <class... T>
Outcome taper_command(const T&... arguments) {
  std::ostringstream out, err;
  const int code = run({std::string(arguments)...}, out, err);
  return {code, out.str(), err.str()};
}

inline std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file for `--input`.
inline std::string npy(const std::string& name, std::vector<int64_t> sizes,
                       const std::vector<float>& values) {
  const auto path = tests::scratch_file(name);
  io::write_npy(path, io::Array::of<float>(std::move(sizes), std::span<const float>(values)));
  return path.string();
}

}  // namespace taper::cli
