#include <gmock/gmock.h>

#include "programs.h"

namespace taper::test::ops {
// self, and if `both` also -self
inline constexpr Operator split{"split", Category::kernel,
                                "test::split(Tensor self, bool both) -> (Tensor, Tensor)"};
}  // namespace taper::test::ops

namespace taper {
template <>
struct Rule<test::ops::split> {
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>& self, bool both, TensorType<D>& first,
                    TensorType<D>& second) {
    first.like(self), second.like(self);
    second.present = both;
    return true;
  }
};
}  // namespace taper

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::StrEq;

Error run_split(Context&, View<const float> self, bool both, View<float> first,
                Maybe<View<float>> second) {
  for (index_t i = 0; i < self.numel(); ++i) {
    first.data()[i] = self.data()[i];
    if (both) second->data()[i] = -self.data()[i];
  }
  return Error::ok;
}
constexpr Kernel split_f32 = make_kernel<ops::split, run_split>("split_f32");
const Kernel* const with_split[] = {&split_f32};

// forward(x: f32[2]) -> split(x, both); the file may say otherwise whether there is a second result
ProgramFile split_program(bool both, bool has_second) {
  ProgramFile p;
  const uint32_t split = p.kernel(ops::split, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t two = m.literal(2);
  const uint32_t x = io_tensor(m, {two}), first = io_tensor(m, {two}), second = io_tensor(m, {two});
  const format::Argument flag(both, 0, format::ArgumentKind::boolean,
                              format::ArgumentForm::literal);
  m.run(split, {m.tensor(x), flag, m.tensor(first), has_second ? m.tensor(second) : m.absent()});
  m.input("x", x);
  m.output("first", first), m.output("second", second);
  return p;
}

TEST(method, leaves_out_a_result_that_the_operator_does_not_give) {
  for (const bool both : {false, true}) {
    ASSERT_LOADS(method, loaded, split_program(both, both), {}, with_split);
    Dense<float> x({2}, {1, 2});
    ASSERT_EQ(method.set_input(0, x), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_THAT(elements(method.output(0)), ElementsAre(1, 2));
    if (both) {
      EXPECT_THAT(elements(method.output(1)), ElementsAre(-1, -2));
    }
  }
}

// Otherwise a kernel would write to memory that is not there.
TEST(method, refuses_a_result_too_few_or_too_many) {
  for (const bool both : {false, true}) {
    Loaded loaded(split_program(both, !both), {}, with_split);
    EXPECT_EQ(loaded.method().error(), Error::invalid_program) << both;
    EXPECT_THAT(loaded.info.message, StrEq("result {} has another type than the operator gives"));
    EXPECT_EQ(loaded.info.values[0], 1);
  }
}

}  // namespace
}  // namespace taper::test
