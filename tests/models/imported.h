// Models that PyTorch exported, as programs in memory: imported, exported, run by the runtime.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"

namespace taper::tests {

class Imported {
 public:
  /// With all passes, as `taper export` does, or only with exact ones. Throws ExportError.
  Imported(const std::filesystem::path& file, bool exact) {
    pt2::Model model = pt2::Model::load(file);
    const eager::NoGrad guard;
    Exporter exporter;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
    program_ = exporter.write(ExportOptions{.exact = exact});
    restart();
  }

  /// States are at their initial values again.
  void restart() {
    std::string why;
    ModuleOptions options;
    options.message = &why;
    Result<Module> loaded = Module::load(
        Span<const std::byte>(program_.data(), static_cast<index_t>(program_.size())), options);
    if (!loaded.ok()) throw std::runtime_error("load: " + why);
    module_.emplace(std::move(loaded.value()));
  }

  std::vector<OwnedTensor> run(const std::vector<Input>& inputs) {
    Result<std::vector<OwnedTensor>> outputs = module_->execute("forward", inputs);
    if (!outputs.ok()) throw std::runtime_error("execute: " + module_->message());
    return std::move(outputs.value());
  }

 private:
  std::vector<std::byte> program_;
  std::optional<Module> module_;
};

/// Tests of programs with all passes, and with only the exact ones.
class Published : public testing::TestWithParam<bool> {
 protected:
  bool exact() const { return GetParam(); }
};
#define TAPER_PUBLISHED(suite)                             \
  using suite = tests::Published;                          \
  INSTANTIATE_TEST_SUITE_P(passes, suite, testing::Bool(), \
                           [](const auto& chosen) { return chosen.param ? "exact" : "all"; })

inline io::Array array_of(const OwnedTensor& t) {
  io::Array a = io::Array::zeros(t.dtype, {t.sizes.begin(), t.sizes.end()});
  a.assign(t.bytes);
  return a;
}

/// Every element is within `tolerance` times the largest magnitude of what was recorded.
inline void expect_near(const OwnedTensor& got, const io::Array& want, double tolerance,
                        const std::string& what) {
  const io::Difference d = io::difference(array_of(got), want);
  EXPECT_EQ(d.other, "") << what;
  EXPECT_LE(d.relative, tolerance)
      << what << ": element " << d.element << " is " << d.got << ", not " << d.want;
}

inline int64_t index_of_largest(const float* values, int64_t count) {
  return std::max_element(values, values + count) - values;
}

}  // namespace taper::tests
