// Operators that give a number, or check an assumption: in eager, and what a trace makes of them.
#include "taper/exporter/eager/numbers.h"

#include <gmock/gmock.h>

#include "taper/exporter/exporter.h"
#include "taper/tests/support/throw_message.h"

namespace taper {
namespace {

using eager::Boxed;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Tensors = std::vector<Tensor>;

template <const Operator& op, class... A>
Boxed number(const A&... arguments) {
  const Boxed boxed[] = {Boxed::of(arguments)...};
  return eager::dispatch_number(eager::info_of(op), boxed, Location::current());
}
Boxed constrain(Dim size, int64_t min, int64_t max) {
  return number<ops::sym_constrain_range>(size, Dim(min), Dim(max));
}
std::unique_ptr<ir::Graph> traced(Dim batch, const std::function<void(const Tensor&)>& function) {
  return trace("f", [&](const Tensors& in) { return function(in[0]), Tensors{relu(in[0])}; },
               {input("x", {batch, 3})});
}

TEST(numbers, tell_what_a_tensor_is) {
  const Tensor x = eager::transpose(eager::ones({2, 3, 5}), 0, 2);
  EXPECT_EQ(number<ops::sym_size_int>(x, Dim(-1)).integer(), 2);
  EXPECT_EQ(number<ops::sym_stride_int>(x, Dim(0)).integer(), 1);
  EXPECT_EQ(number<ops::sym_numel>(x).integer(), 30);
  EXPECT_EQ(number<ops::sym_is_contiguous>(x).integer(), 0);
  EXPECT_THROW_MESSAGE(number<ops::sym_stride_int>(x, Dim(3)),
                       "dim 3 is outside [-3, 3) for (5, 3, 2)");
}
TEST(numbers, refuse_what_does_not_hold) {
  constrain(5, 2, 9);
  EXPECT_THROW_MESSAGE(constrain(10, 2, 9), "10 must lie in [2, 9]");
  EXPECT_THROW_MESSAGE(constrain(5, 9, 2), "max 2 is less than min 9");
  EXPECT_THROW_MESSAGE(number<ops::_assert_scalar>(false, std::string_view("one head a key")),
                       "one head a key");
  EXPECT_THROW_MESSAGE(
      number<ops::_assert_async_msg>(eager::zeros({1}), std::string_view("never 0")), "never 0");
  number<ops::_assert_async>(eager::ones({1}));
  EXPECT_THROW_MESSAGE(number<ops::_assert_async>(eager::zeros({1})),
                       "an assertion of the model does not hold");
  const auto check_info = [](const Tensor& info) {
    number<ops::_linalg_check_errors>(info, std::string_view("linalg.inv"), false);
  };
  check_info(eager::zeros({2}, DType::i32));
  EXPECT_THROW_MESSAGE(check_info(eager::ones({2}, DType::i32)),
                       "linalg.inv: a matrix of the input is singular");
  EXPECT_THROW_MESSAGE(eager::dispatch_number(eager::info_of(ops::relu), nullptr, {}),
                       "relu: this operator gives tensors");
}
TEST(numbers, stay_symbols_in_a_trace) {
  Dim elements;
  traced(Dim::symbol("batch", 1, 8),
         [&](const Tensor& x) { elements = number<ops::sym_numel>(x).dim; });
  EXPECT_EQ(elements.to_string(), "batch*3");
}
TEST(numbers, leave_a_check_where_the_range_of_a_symbol_leaves_it_open) {
  const Dim batch = Dim::symbol("batch", 1, 8);
  EXPECT_TRUE(traced(batch, [&](const Tensor&) { constrain(batch, 1, 8); })->checks().empty());
  const auto graph = traced(batch, [&](const Tensor&) { constrain(batch, 2, 8); });
  ASSERT_EQ(graph->checks().size(), 1u);
  EXPECT_EQ(graph->checks()[0].message, "batch must lie in [2, 8]");
  EXPECT_THAT([&] { traced(batch, [&](const Tensor&) { constrain(batch, 9, 12); }); },
              ThrowsMessage<EagerError>(HasSubstr("batch must lie in [9, 12]")));
}
TEST(numbers, are_not_read_from_traced_elements) {
  EXPECT_THROW(traced(2, [](const Tensor& x) { number<ops::item>(x); }), DataDependentError);
}

}  // namespace
}  // namespace taper
