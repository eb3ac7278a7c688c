// The table of operators: what each category promises is there.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {
namespace {

using testing::IsEmpty;

/// The rows of a category for which `promise` does not hold.
template <class Promise>
std::vector<std::string> breaking(Category category, const Promise& promise) {
  std::vector<std::string> names;
  for (const OperatorInfo* info : all_operators())
    if (info->op->category == category && !promise(*info)) names.emplace_back(info->name);
  return names;
}
bool has_kernel(const OperatorInfo& info) { return !info.kernels.empty(); }

TEST(operator_table, has_a_kernel_and_a_rule_for_each_row_of_the_category_kernel) {
  EXPECT_THAT(breaking(Category::kernel, has_kernel), IsEmpty());
  EXPECT_THAT(breaking(Category::kernel,
                       [](const OperatorInfo& info) { return info.symbolic_rule != nullptr; }),
              IsEmpty());
}
TEST(operator_table, has_a_decomposition_for_each_composite_and_kernels_where_they_pay) {
  EXPECT_THAT(breaking(Category::composite,
                       [](const OperatorInfo& info) {
                         const bool pays =
                             info.name == "max_pool2d" ||
                             info.name.starts_with("quantized_decomposed::quantize_per_") ||
                             info.name.starts_with("quantized_decomposed::dequantize_per_");
                         return info.decomposition != nullptr &&
                                (!has_kernel(info) || (pays && info.symbolic_rule != nullptr));
                       }),
              IsEmpty());
}
TEST(operator_table, has_a_layout_rule_alone_for_each_view) {
  EXPECT_THAT(breaking(Category::view,
                       [](const OperatorInfo& info) {
                         return info.symbolic_rule != nullptr && !has_kernel(info) &&
                                info.decomposition == nullptr;
                       }),
              IsEmpty());
}
TEST(operator_table, has_a_meaning_for_each_number_and_check) {
  const auto is_number = [](const OperatorInfo& info) { return info.number != nullptr; };
  EXPECT_THAT(breaking(Category::symbolic, is_number), IsEmpty());
  EXPECT_THAT(breaking(Category::check, is_number), IsEmpty());
}

}  // namespace
}  // namespace taper::eager
