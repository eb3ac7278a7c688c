// Texts that programs with XNNPACK write.
#include <gmock/gmock.h>

#include "delegated.h"
#include "taper/runtime/extension/llm/adapter_file.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;

constexpr int success = 0;

TEST(taper_generate, finds_the_slots_of_a_program_with_xnnpack) {
  delegates::xnnpack::delegate();
  const std::string model = tests::test_data("../../examples/stories/stories260K.gguf").string(),
                    program = tests::scratch_file("slots.taper").string(),
                    adapter = tests::scratch_file("adapter.gguf").string();
  std::vector<float> numbers;
  for (int i = 0; i < 128; ++i) numbers.push_back(static_cast<float>(i * 7919 % 101) / 50 - 1);
  ASSERT_EQ(llm::write_adapter(
                adapter, {4, "llama", {{"blk.0.attn_q", 1, 64, 64, &numbers[0], &numbers[64]}}}),
            "");
  const Outcome exported = taper_command("export", model, "-o", program, "--lora-slots", "2",
                                         "--backend", "xnnpack", "--context", "128");
  ASSERT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out + exported.err, HasSubstr("delegate"));
  const auto text = [](const std::string& from, const std::string& option) {
    const Outcome o = taper_command("generate", from, "--prompt", "Lily and her dog", "--greedy",
                                    "--max-tokens", "20", option);
    EXPECT_EQ(o.code, success) << o.err;
    return o.out;
  };
  const std::string plain = text(model, "--exact"), changed = text(program, "--lora=" + adapter);
  EXPECT_EQ(text(program, "--seed=1"), plain);
  EXPECT_NE(changed, plain);
  EXPECT_EQ(changed, text(model, "--lora=" + adapter));
}

TEST(taper_generate, writes_with_a_program_whose_parts_a_backend_runs) {
  delegates::xnnpack::delegate();
  const std::string model = tests::test_data("../../examples/stories/stories260K.gguf").string(),
                    program = tests::scratch_file("stories.taper").string();
  const auto text_of = [](const std::string& with, auto... options) {
    const Outcome o = taper_command("generate", with, "--prompt", "Once upon a time", "--greedy",
                                    "--max-tokens", "80", options...);
    EXPECT_EQ(o.code, success) << o.err;
    return o.out;
  };
  const Outcome made = taper_command("export", model, "-o", program, "--backend", "xnnpack",
                                     "--context", "128", "--parallel", "2");
  ASSERT_EQ(made.code, success) << made.err;
  ASSERT_THAT(made.out, HasSubstr("delegate"));
  EXPECT_EQ(text_of(program), text_of(model, "--exact"));
}

}  // namespace
}  // namespace taper::cli
