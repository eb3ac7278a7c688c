// Functions that XNNPACK computes, beside eager.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "taper/delegates/xnnpack/app/backend.h"
#include "taper/delegates/xnnpack/compile/delegate.h"
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::delegates::xnnpack {

using eager::Tensor;

inline const XnnpackDelegate& delegate() {
  static const XnnpackDelegate delegate(&backend());
  partition::hand_in(delegate);
  return delegate;
}

inline const XnnpackDelegate& f16_delegate() {
  static const XnnpackDelegate delegate(&f16_backend(), Precision::f16);
  partition::hand_in(delegate);
  return delegate;
}

inline Tensor random_tensor(const std::vector<int64_t>& sizes, unsigned seed, float low = -1,
                            float high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(low, high);
  std::vector<float> elements(1);
  for (const int64_t n : sizes) elements.resize(elements.size() * static_cast<size_t>(n));
  for (float& e : elements) e = numbers(random);
  return Tensor::from<float>(elements, {sizes.begin(), sizes.end()});
}

/// The program of a function of one input, and its report.
struct Delegated {
  template <class F>
  Delegated(F&& function, const eager::Dims& sizes, bool require = true) {
    ExportOptions options;
    options.exact = false;
    options.backend = delegate().name(), options.require_backend = require;
    Exporter exporter;
    exporter.method("forward", function, {input("x", sizes)});
    file = exporter.write(options, &report);
  }
  Result<Module> load(const Threads* threads = nullptr) {
    ModuleOptions options;
    options.backends = {&backend()}, options.message = &why, options.threads = threads;
    return Module::load(file, options);
  }
  int delegates() { return report.methods[0].operators["taper::delegate"]; }

  std::vector<std::byte> file;
  emit::Report report;
  std::string why;
};

inline std::vector<index_t> sizes_of(const Tensor& x) {
  std::vector<index_t> sizes;
  for (int i = 0; i < x.rank(); ++i) sizes.push_back(static_cast<index_t>(x.size(i).value()));
  return sizes;
}

inline std::vector<float> call(Module& module, const Tensor& x) {
  const std::vector<float> elements = x.to_vector<float>();
  const auto results = module.execute("forward", {{elements.data(), sizes_of(x)}});
  if (!results.ok()) return ADD_FAILURE() << module.message(), std::vector<float>();
  const OwnedTensor& y = results.value()[0];
  return {y.data<float>(), y.data<float>() + y.numel()};
}

inline void expect_close(const std::vector<float>& have, const std::vector<float>& want,
                         float tolerance = 1e-4f) {
  ASSERT_EQ(have.size(), want.size());
  float largest = 1e-6f, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    worst = std::max(worst, std::isnan(have[i]) ? INFINITY : std::abs(have[i] - want[i]));
  }
  EXPECT_LE(worst, tolerance * largest);
}

/// Exports the function, all of which XNNPACK must take, and compares a call with eager.
template <class F>
void expect_as_eager(F&& function, const Tensor& x, float tolerance = 1e-4f) {
  const std::vector<index_t> sizes = sizes_of(x);
  eager::Dims dims(sizes.begin(), sizes.end());
  Delegated program(function, dims);
  EXPECT_EQ(program.delegates(), 1);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  expect_close(call(module.value(), x), function(x).template to_vector<float>(), tolerance);
}

}  // namespace taper::delegates::xnnpack
