// An operator that a user declares outside Taper: in eager, in a trace, in a file, on the runtime.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/throw_message.h"

namespace mylib {

using namespace taper;

inline constexpr Operator scale{"scale", Category::kernel,
                                "mylib::scale(Tensor self, float factor) -> Tensor"};

/// The next larger number of the dtype.
inline constexpr Operator next{"next", Category::kernel, "mylib::next(Tensor self) -> Tensor"};

Error run_next(Context&, View<const float> self, View<float> out) {
  for (index_t i = 0; i < self.numel(); ++i)
    out.data()[i] = std::nextafter(self.data()[i], std::numeric_limits<float>::infinity());
  return Error::ok;
}

Error run_scale(Context&, View<const float> self, double factor, View<float> out) {
  for (index_t i = 0; i < self.numel(); ++i)
    out.data()[i] = self.data()[i] * static_cast<float>(factor);
  return Error::ok;
}

}  // namespace mylib

namespace taper {

template <>
struct Rule<mylib::scale> {
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>& self, double, TensorType<D>& out) {
    out.like(self);
    return true;
  }
};
template <>
struct Rule<mylib::next> {
  static constexpr HalfPrecision halves = HalfPrecision::refuse;
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>& self, TensorType<D>& out) {
    out.like(self);
    return true;
  }
};

}  // namespace taper

namespace mylib {

inline constexpr Kernel scale_f32 = make_kernel<scale, run_scale>("scale_f32");

inline constexpr Kernel next_f32 = make_kernel<next, run_next>("next_f32");

eager::OperatorInfo scale_info() {
  eager::OperatorInfo info = eager::describe<scale>();
  info.kernels = {&scale_f32};
  return info;
}
eager::OperatorInfo next_info() {
  eager::OperatorInfo info = eager::describe<next>();
  info.kernels = {&next_f32};
  return info;
}

}  // namespace mylib

namespace taper {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(user_operator, runs_in_eager_in_a_program_and_on_the_runtime) {
  EXPECT_EXPORT_ERROR(eager::call<mylib::scale>(Location{}, ones({2}), 3.0),
                      "mylib::scale: this operator is not known");
  eager::add_operator(mylib::scale_info());
  EXPECT_EXPORT_ERROR(eager::add_operator(mylib::scale_info()),
                      "there is an operator of this name already");

  const auto function = [](Tensor x) { return eager::call<mylib::scale>(Location{}, x, 3.0) + 1; };
  EXPECT_THAT(function(ones({2})).to_vector<float>(), ElementsAre(4, 4));

  Exporter exporter;
  exporter.method("forward", function, {input("x", {2})});
  const std::vector<std::byte> program = exporter.write(ExportOptions{});

  const Span<const std::byte> bytes(program.data(), static_cast<index_t>(program.size()));
  std::string message;
  ModuleOptions options;
  options.message = &message;
  EXPECT_EQ(Module::load(bytes, options).error(), Error::missing_kernel);
  EXPECT_THAT(message, HasSubstr("mylib::scale"));

  const KernelSet linked = default_kernels();
  std::vector<const Kernel*> kernels(linked.begin(), linked.end());
  kernels.push_back(&mylib::scale_f32);
  Result<Module> loaded = Module::load(bytes, kernels, options);
  ASSERT_TRUE(loaded.ok()) << message;
  Module module = std::move(loaded).value();
  const std::array<float, 2> x{1, 10};
  std::array<float, 2> y{};
  ASSERT_EQ(module.forward({{x.data(), {2}}}, {y}), Error::ok) << module.message();
  EXPECT_THAT(y, ElementsAre(4, 31));

  // its rule does not say what becomes of halves: they are computed in f32
  const Tensor half = eager::call<mylib::scale>(Location{}, ones({1}).to(DType::f16), 1.1);
  EXPECT_EQ(half.dtype(), DType::f16);
  EXPECT_EQ(half.to(DType::f32).to_vector<float>().at(0), float(Half(1.1f)));
}

TEST(user_operator, may_refuse_half_precision) {
  eager::add_operator(mylib::next_info());
  const auto next = [](const Tensor& x) { return eager::call<mylib::next>(Location{}, x); };
  EXPECT_GT(next(ones({1})).to_vector<float>().at(0), 1);
  for (const DType dtype : {DType::f16, DType::bf16})
    EXPECT_EXPORT_ERROR(next(ones({1}).to(dtype)),
                        "mylib::next: no kernel for f16 and bf16, and f32 would give");
}

}  // namespace
}  // namespace taper
