// What PyTorch gives for some cases in half precision when it computes in f64 (in_double.py), from
// the same arguments. It rounds after each operator where Taper rounds once: a result may be
// either.
#pragma once
#include "cases.h"

namespace taper::golden {

class InDouble {
 public:
  InDouble() = default;
  /// Reads a file that in_double.py wrote.
  explicit InDouble(const std::filesystem::path& path);

  bool has(const Json& golden) const;
  /// The case with the exact results and gradients in place of its own.
  std::pair<CaseFile, Json> exact(const CaseFile& file, const Json& golden) const;

 private:
  io::SafeTensors content_;
  Json cases_ = Json::object();
};

}  // namespace taper::golden
