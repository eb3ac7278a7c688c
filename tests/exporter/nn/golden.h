// Golden cases of modules, losses and optimizers: a safetensors file whose metadata lists the
// cases.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "taper/exporter/eager/files.h"
#include "taper/tests/support/data.h"

namespace taper::tests {

using eager::Tensor;
using Json = nlohmann::json;

struct GoldenFile {
  Json cases;
  io::SafeTensors content;

  explicit GoldenFile(const std::filesystem::path& path) : content(io::read_safetensors(path)) {
    cases = Json::parse(content.metadata.at("cases"));
  }
  bool has(const std::string& name) const { return content.tensors.count(name) != 0; }
  /// A copy that may be written.
  Tensor tensor(const std::string& name) const {
    return eager::tensor_of(content.at(name).clone());
  }
  /// All tensors whose names begin with `prefix`, without it.
  eager::NamedTensors all(const std::string& prefix) const {
    eager::NamedTensors found;
    for (auto i = content.tensors.lower_bound(prefix);
         i != content.tensors.end() && i->first.compare(0, prefix.size(), prefix) == 0; ++i)
      found[i->first.substr(prefix.size())] = tensor(i->first);
    return found;
  }
};

inline std::vector<double> values_of(const Tensor& tensor) {
  const std::vector<float> f = tensor.detach().to(DType::f32).to_vector<float>();
  return {f.begin(), f.end()};
}

/// Compares shapes, and values within |a - b| <= atol + rtol |b|; NaN equals NaN.
inline void expect_close(const Tensor& actual, const Tensor& expected, double rtol, double atol,
                         const std::string& what) {
  if (!actual.defined()) {
    ADD_FAILURE() << what << ": there is none";
    return;
  }
  if (eager::to_string(actual.sizes()) != eager::to_string(expected.sizes())) {
    ADD_FAILURE() << what << ": " << eager::to_string(actual.sizes()) << " instead of "
                  << eager::to_string(expected.sizes());
    return;
  }
  const std::vector<double> a = values_of(actual), b = values_of(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    const bool close = (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
                       std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]);
    if (!close) {
      ADD_FAILURE() << what << ": element " << i << " is " << a[i] << ", PyTorch's is " << b[i];
      return;
    }
  }
}

/// Counts what was compared. A class without a comparison is a failure that names it.
class Coverage {
 public:
  explicit Coverage(std::string what) : what_(std::move(what)) {}
  void ran() { ++ran_; }
  void left_out(const std::string& name) { ++left_out_[name]; }
  void expect_complete() const {
    std::cout << what_ << ": " << ran_ << " cases compared\n";
    EXPECT_GT(ran_, 0) << what_;
    for (const auto& [name, count] : left_out_)
      ADD_FAILURE() << what_ << ": nothing for the " << count << " cases of " << name;
  }

 private:
  std::string what_;
  int ran_ = 0;
  std::map<std::string, int> left_out_;
};

}  // namespace taper::tests
