// Which weights a program holds packed, and that packing changes neither results nor checksums.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/blocks.h"
#include "taper/tests/support/data.h"

namespace taper {
namespace {

using eager::Tensor;
using Report = emit::Report;

struct Model {
  std::function<Tensor(const Tensor&)> function;
  InputSpec input;

  std::vector<std::byte> write(ExportOptions options, Report& report) const {
    Exporter exporter;
    exporter.method("forward", function, {input});
    options.quiet = true;
    return exporter.write(options, &report);
  }
};

/// A target for which the first kernels ask for layouts.
Target named_target() {
#if defined(__x86_64__)
  return Target("x86-64");
#else
  return Target("host");
#endif
}
constexpr bool kernels_ask =
#if defined(__x86_64__)
    true;
#else
    false;
#endif

std::vector<float> run(const std::vector<std::byte>& program, const Tensor& x, size_t count,
                       PackWeights packs) {
  ModuleOptions options;
  std::string why;
  options.message = &why, options.pack_weights = packs;
  const Span<const std::byte> bytes(program.data(), static_cast<index_t>(program.size()));
  Result<Module> module = Module::load(bytes, options);
  EXPECT_TRUE(module.ok()) << why;
  if (!module.ok()) return {};
  std::vector<float> y(count);
  const std::vector<float> elements = x.to_vector<float>();
  const Error error = module->forward({Input(elements.data(), {1, 32, 14, 14})}, {y});
  EXPECT_EQ(error, Error::ok) << module->message();
  return y;
}

TEST(packed_weights, of_winograd_are_left_to_a_load_by_default) {
  constexpr int64_t layers = 4, channels = 32;
  std::vector<Tensor> filters;
  for (int64_t i = 0; i < layers; ++i) filters.push_back(eager::randn({channels, channels, 3, 3}));
  const Tensor last = eager::randn({48, channels, 1, 1});
  const Model model{[&](Tensor x) {
                      for (const Tensor& f : filters)
                        x = eager::relu(eager::conv2d(x, f, {}, 1, 1));
                      return eager::conv2d(x, last);
                    },
                    input("x", {1, channels, 14, 14})};
  Report any, named, dense;
  const auto by_default = model.write({.exact = false}, any),
             for_x86 = model.write({.exact = false, .target = named_target()}, named),
             plain = model.write({.exact = false, .dense = true}, dense);
  EXPECT_EQ(dense.packed_constants, 0);
  if (kernels_ask) {
    EXPECT_EQ(any.packed_constants, 1);
    EXPECT_EQ(any.packed_at_load, layers);
    EXPECT_EQ(named.packed_constants, layers + 1);
    EXPECT_EQ(dense.packed_at_load, layers + 1);
    // 16 transformed numbers for the 9 of a filter
    EXPECT_EQ(named.constant_bytes - any.constant_bytes,
              layers * channels * channels * (16 - 9) * 4);
    EXPECT_EQ(any.constant_bytes, dense.constant_bytes);
  }

  const Tensor x = eager::randn({1, channels, 14, 14});
  constexpr size_t count = 48 * 14 * 14;
  const std::vector<float> want = run(plain, x, count, PackWeights::never);
  for (const auto& program : {by_default, for_x86, plain})
    for (const PackWeights packs : {PackWeights::never, PackWeights::always})
      EXPECT_EQ(run(program, x, count, packs), want);
}

TEST(packed_weights, in_blocks_are_left_to_a_load_by_default) {
  const Tensor weight = ir::tensor_of(tests::random_blocks(Layout::q8_0, {48, 256}));
  const Model product{[&](const Tensor& x) { return eager::linear(x, weight); },
                      input("x", {1, 256})};
  // a table of words that is also the last product
  const Model tied{[&](const Tensor& i) {
                     return eager::linear(eager::relu(eager::embedding(weight, i)), weight);
                   },
                   input("i", {1}, DType::i64)};
  for (const Model& model : {product, tied}) {
    Report any, named;
    (void)model.write({.exact = false}, any);
    (void)model.write({.exact = false, .target = named_target()}, named);
    EXPECT_EQ(any.packed_constants, 0);
    if (!kernels_ask) continue;
    EXPECT_EQ(any.packed_at_load, 1);
    EXPECT_EQ(named.packed_constants, 1);
  }
}

TEST(packed_weights, of_many_bytes_have_their_checksum_and_lie_in_files_as_in_memory) {
  // weights of more and of less than 64 KiB, whose last panels are not full
  const Tensor first = eager::randn({301, 130}), second = eager::randn({7, 301}),
               third = eager::randn({250, 301});
  const Model model{[&](const Tensor& x) {
                      const Tensor y = eager::linear(x, first);
                      return eager::cat({eager::linear(y, second), eager::linear(y, third)}, 1);
                    },
                    input("x", {1, 130})};
  Report report;
  const auto bytes = model.write({.name = "m"}, report);
  EXPECT_GE(report.packed_constants, kernels_ask ? 2 : 0);
  const std::string path = tests::scratch_file("m.taper").string();
  Exporter exporter;
  exporter.method("forward", model.function, {model.input});
  exporter.write(path, {.quiet = true, .name = "m"});
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(text.size(), bytes.size());
  EXPECT_EQ(std::memcmp(text.data(), bytes.data(), bytes.size()), 0);
  ModuleOptions options;
  std::string why;
  options.verify = true, options.message = &why;
  EXPECT_TRUE(Module::load(path, options).ok()) << why;
  EXPECT_EQ(std::filesystem::file_size(path), static_cast<uintmax_t>(report.file_bytes));
}

}  // namespace
}  // namespace taper
