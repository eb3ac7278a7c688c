#include "taper/exporter/importers/pt2/guards.h"

#include <gmock/gmock.h>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/tests/support/data.h"

namespace taper::pt2 {
namespace {

using testing::HasSubstr;

const Dim s = Dim::symbol("s", 2, 64), t = Dim::symbol("t", 2, 64), n = Dim::symbol("n", 0, 9);

std::vector<std::string> parsed(const std::vector<std::string>& guards) {
  const auto [checks, unread] = parse_guards(
      guards, [](const std::string& input, std::optional<int64_t> dim) -> std::optional<Dim> {
        if (input == "n" && !dim) return n;
        if (dim != 0) return std::nullopt;
        return input == "a"     ? std::optional(s)
               : input == "b"   ? std::optional(t)
               : input == "d_a" ? std::optional(t)
               : input == "x_1" ? std::optional(s)
                                : std::nullopt;
      });
  std::vector<std::string> texts;
  for (const std::string& guard : unread) texts.push_back("unread " + guard);
  const char* signs[] = {" == ", " != ", " < ", " <= "};
  for (const Check& c : checks)
    texts.push_back(c.left.to_string() + signs[static_cast<int>(c.comparison)] +
                    c.right.to_string());
  return texts;
}

TEST(guards, are_comparisons_of_sizes_and_numbers) {
  EXPECT_THAT(parsed({"L['a'].size()[0] == ((-1) + L['b'].size()[0])",
                      "(L['a'].size()[0] % 2) == 0", "L['n'] >= 3 and L['n'] != 5"}),
              testing::ElementsAre("s == t - 1", "s%2 == 0", "3 <= n", "n != 5"));
}
TEST(guards, may_be_about_arguments_inside_of_others) {
  EXPECT_THAT(parsed({"L['d']['a'].size()[0] > L['x'][1].size()[0]"}),
              testing::ElementsAre("s < t"));
}
TEST(guards, know_the_larger_and_the_smaller_of_two) {
  EXPECT_THAT(
      parsed({"torch.sym_max(7, L['a'].size()[0]) > 2*L['b'].size()[0]", "Min(3, L['n']) == 2"}),
      testing::ElementsAre(testing::HasSubstr("max("), testing::HasSubstr("min(")));
}
TEST(guards, that_the_ranges_prove_are_left_out) {
  EXPECT_THAT(parsed({"L['n'] >= 0 and L['n'] <= 9", "L['a'].size()[0] > 1"}), testing::IsEmpty());
}
TEST(guards, of_other_forms_are_told) {
  const std::vector<std::string> guards{"L['c'].size()[0] == 3",
                                        "L['a'].size()[7] == 3",
                                        "L['a'] is None",
                                        "L['n'] == 1 or L['n'] == 2",
                                        "math.ceil(L['n']) == 3",
                                        "",
                                        "==",
                                        "a == b",
                                        "L['n'] == 99999999999999999999",
                                        std::string(5000, '('),
                                        "L['n'] == " + std::string(900, '-') + "x"};
  const std::vector<std::string> read = parsed(guards);
  ASSERT_EQ(read.size(), guards.size());
  for (size_t i = 0; i < guards.size(); ++i) EXPECT_EQ(read[i], "unread " + guards[i]);
}

// With 21 columns two convolutions of stride 2 would not fit each other.
TEST(guards, are_checked_in_a_call) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "pt2");
  Model model = Model::load(folder / "feat_dynamic_conv.pt2");
  eager::Dims sizes = model.inputs().at(0).sizes;
  sizes.at(0) = 1, sizes.at(2) = 23, sizes.at(3) = 23;
  EXPECT_NO_THROW(model.forward({eager::zeros(sizes)}));
  sizes.back() = 21;
  try {
    model.forward({eager::zeros(sizes)});
    FAIL() << "21 columns were accepted";
  } catch (const ExportError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the model was exported for (2 + 2*(((-1) + "
                                    "L['x'].size()[3]) // 4)) == (1 + (((-1) + L['x'].size()[3]) "
                                    "// 2)); in this call it is 12 and 11"));
  }
}

}  // namespace
}  // namespace taper::pt2
