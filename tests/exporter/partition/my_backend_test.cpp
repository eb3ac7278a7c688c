// The backend of examples/my_backend, from the exporter to the device.
#include <gmock/gmock.h>

#include "taper/examples/my_backend/delegate.h"
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"

namespace taper {
namespace {

using testing::Contains, testing::HasSubstr;

class MyBackend : public testing::Test {
 protected:
  static void SetUpTestSuite() { partition::hand_in(delegate()); }
  static const mine::MyDelegate& delegate() {
    static const mine::MyDelegate delegate;
    return delegate;
  }
  static std::vector<std::byte> exported(const Tensor& weight, Dim n, bool require = false,
                                         emit::Report* report = nullptr) {
    Exporter exporter;
    exporter.method("forward", [&](const Tensor& x) { return relu((x * weight + x) * (x + x)); },
                    {input("x", {n, 4})});
    ExportOptions options;
    options.backend = "mine", options.require_backend = require;
    return exporter.write(options, report);
  }
  static ModuleOptions with_backend(std::string& why) {
    ModuleOptions options;
    options.backends = {delegate().backend()};
    options.message = &why;
    return options;
  }
};

TEST_F(MyBackend, computes_what_the_kernels_compute) {
  const Tensor weight = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  emit::Report report;
  const std::vector<std::byte> file = exported(weight, 2, false, &report);
  EXPECT_EQ(report.methods[0].operators["taper::delegate"], 1);
  EXPECT_FALSE(report.exact);
  EXPECT_THAT(report.notes, Contains(HasSubstr("1 relu: the backend has no such operator")));
  std::string why;
  Result<Module> module = Module::load(file, with_backend(why));
  ASSERT_TRUE(module.ok()) << why;
  const Tensor x = Tensor::from<float>({1, -2, 3, -4, 5, -6, 7, -8}, {2, 4});
  std::vector<float> y(8);
  ASSERT_EQ(module.value().forward({{x.to_vector<float>().data(), {2, 4}}}, {y}), Error::ok);
  EXPECT_EQ(y, relu((x * weight + x) * (x + x)).to_vector<float>());
}

TEST_F(MyBackend, takes_symbolic_sizes) {
  const Dim n = Dim::symbol("n", 1, 300);
  Exporter exporter;
  exporter.method("forward", [](const Tensor& x) { return (x + x) * x; }, {input("x", {n, 4})});
  ExportOptions options;
  options.backend = "mine", options.require_backend = true;
  const std::vector<std::byte> file = exporter.write(options);
  std::string why;
  Result<Module> module = Module::load(file, with_backend(why));
  ASSERT_TRUE(module.ok()) << why;
  for (const index_t rows : {1, 300, 70}) {
    std::vector<float> x(static_cast<size_t>(rows) * 4), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    ASSERT_EQ(module.value().forward({{x.data(), {rows, 4}}}, {y}), Error::ok);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] * x[i]) << i;
  }
}

TEST_F(MyBackend, is_refused_where_it_is_required_and_cannot_run_all) {
  try {
    exported(Tensor::from<float>({1, 2, 3, 4}, {1, 4}), 1, true);
    FAIL();
  } catch (const ExportError& e) {
    EXPECT_THAT(e.what(), HasSubstr("1 relu: the backend has no such operator"));
    EXPECT_THAT(e.what(), HasSubstr("remedy: export without --require"));
  }
}

TEST_F(MyBackend, must_be_given_to_the_module) {
  const std::vector<std::byte> file = exported(Tensor::from<float>({1, 2, 3, 4}, {1, 4}), 1);
  std::string why;
  ModuleOptions options;
  options.message = &why;
  EXPECT_EQ(Module::load(file, options).error(), Error::not_supported);
  EXPECT_THAT(why, HasSubstr("mine"));
}

TEST_F(MyBackend, refuses_every_damaged_blob) {
  const std::vector<uint32_t> good = {2, 2, 1, mine::add, 0, 1, mine::mul, 2, 0, 3};
  mine::MyBackend backend;
  const auto load = [&](const std::vector<uint32_t>& words, size_t bytes) {
    ErrorInfo info;
    Context context{nullptr, 0, nullptr, &info};
    void* loaded = nullptr;
    const Span<const std::byte> blob(reinterpret_cast<const std::byte*>(words.data()),
                                     static_cast<index_t>(bytes));
    return backend.load(blob, context, loaded);
  };
  const size_t bytes = good.size() * sizeof(uint32_t);
  EXPECT_EQ(load(good, bytes), Error::ok);
  for (size_t cut = 0; cut < bytes; ++cut)
    EXPECT_EQ(load(good, cut), Error::invalid_program) << cut;
  for (size_t i = 0; i < good.size(); ++i)
    for (const uint32_t value : {9u, 0x7fffffffu, 0xffffffffu}) {
      std::vector<uint32_t> words = good;
      words[i] = value;
      // more inputs only fit fewer arguments, which `create` compares
      const bool counts_inputs = i == 0 && value == 9;
      EXPECT_EQ(load(words, bytes), counts_inputs ? Error::ok : Error::invalid_program)
          << i << " " << value;
    }
}

}  // namespace
}  // namespace taper
