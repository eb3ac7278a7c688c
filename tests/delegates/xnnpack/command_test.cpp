// The command with XNNPACK: which of the kernels and the backend is faster.
#include <gmock/gmock.h>

#include "delegated.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::ContainsRegex, testing::HasSubstr, testing::Not;

constexpr int success = 0, failure = 1, usage = 2;

TEST(taper_profile, measures_the_kernels_and_each_backend) {
  delegates::xnnpack::delegate();
  delegates::xnnpack::f16_delegate();
  const std::string model = tests::test_data("pt2/torchao_int8_dynamic.pt2").string();
  const Outcome o = taper_command("profile", model, "--backends", "--repeat", "5");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("torchao_int8_dynamic.pt2: 1 thread, medians of 5 runs"));
  EXPECT_THAT(o.out, HasSubstr("\n  kernels  "));
  EXPECT_THAT(o.out,
              HasSubstr("ms  3 nodes in 1 delegate, 0 left; 100.0 % of the multiplications"));
  EXPECT_THAT(o.out, HasSubstr("\n  xnnpack-f16  "));
  EXPECT_THAT(o.out, HasSubstr("\nchoose "));
  EXPECT_THAT(o.out, Not(HasSubstr("choose --backend xnnpack-f16"))) << "it rounds";
}

TEST(taper_export, refuses_what_xnnpack_cannot_run_if_it_must_run_all) {
  delegates::xnnpack::delegate();
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/stories260k.pt2");
  const Outcome o =
      taper_command("export", model.string(), "-o", tests::scratch_file("model.taper").string(),
                    "--require", "xnnpack");
  EXPECT_EQ(o.code, failure);
  // operators with counts, reasons and lines, and their modules
  EXPECT_THAT(o.err, ContainsRegex("\n    11 _fused_rms_norm: the backend has no such operator "
                                   "\\(_fused_rms_norm at modeling_llama.py:[0-9]+ "
                                   "\\(model.layers.0.input_layernorm\\)\\)\n"));
  EXPECT_THAT(o.err,
              HasSubstr("\n      model.layers.*.input_layernorm (5 modules): 5 _fused_rms_norm\n"));
  EXPECT_THAT(o.err, HasSubstr("remedy: export without --require"));
}

TEST(taper_check, finds_the_results_of_pytorch_with_xnnpack) {
  delegates::xnnpack::delegate();
  for (const std::string name :
       {"feat_activations", "feat_conv_family", "feat_interpolate", "feat_mha", "feat_norms",
        "feat_pools", "feat_transformer_encoder_layer", "lenet", "resnet20", "silero_vad_16k",
        "squeezenet1_1", "stories260k", "superres", "ultraface_rfb320", "yunet_n"}) {
    SCOPED_TRACE(name);
    TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/" + name + ".pt2");
    TAPER_GOLDEN_DATA_OR_SKIP(calls, "pt2/" + name + ".io.safetensors");
    const std::string program = tests::scratch_file(name + ".taper").string();
    const Outcome exported =
        taper_command("export", model.string(), "-o", program, "--backend", "xnnpack");
    ASSERT_EQ(exported.code, success) << exported.err;
    const Outcome o = taper_command("check", program, calls.string());
    EXPECT_EQ(o.code, success) << o.out << o.err;
  }
}

TEST(taper_compare, finds_the_first_node_that_differs_in_a_delegate) {
  delegates::xnnpack::delegate();
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  const std::string program = tests::scratch_file("nodes.taper").string();
  const Outcome exported =
      taper_command("export", model.string(), "-o", program, "--backend", "xnnpack", "--each-node");
  ASSERT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("xnnpack runs 12 nodes in 12 delegates, 0 left"));
  EXPECT_EQ(taper_command("compare", model.string(), program).code, success);
  const Outcome o = taper_command("compare", model.string(), program, "--tolerance", "1e-12");
  EXPECT_THAT(o.out,
              ContainsRegex("first node beyond 1e-12\n.* conv2d  conv2d as xnnpack .*conv1"));
  EXPECT_THAT(o.out, HasSubstr("12 nodes compared"));
}

TEST(taper_check, allows_f16_what_it_allows_networks_of_f16) {
  delegates::xnnpack::f16_delegate();
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(calls, "pt2/lenet.io.safetensors");
  const std::string program = tests::scratch_file("lenet_f16.taper").string();
  const Outcome exported =
      taper_command("export", model.string(), "-o", program, "--backend", "xnnpack-f16");
  ASSERT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("xnnpack-f16 runs 12 nodes in 1 delegate, 0 left"));
  const Outcome o = taper_command("check", program, calls.string());
  EXPECT_EQ(o.code, success) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("within 0.02"));
  EXPECT_EQ(taper_command("check", program).code, success);
  EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("xnnpack-f16"));
}

TEST(taper_export, leaves_integers_as_they_are_with_f16) {
  delegates::xnnpack::f16_delegate();
  const std::string model = tests::test_data("pt2/torchao_int8_dynamic.pt2").string(),
                    program = tests::scratch_file("int8_f16.taper").string();
  const Outcome o = taper_command("export", model, "-o", program, "--backend", "xnnpack-f16");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("xnnpack-f16 runs 3 nodes in 1 delegate, 0 left"));
}

TEST(taper_inspect, gives_back_what_a_backend_loaded) {
  delegates::xnnpack::delegate();
  const std::string model = tests::test_data("pt2/torchao_int8_dynamic.pt2").string(),
                    program = tests::scratch_file("inspected.taper").string();
  ASSERT_EQ(taper_command("export", model, "-o", program, "--backend", "xnnpack").code, success);
  const size_t before = delegates::xnnpack::memory_use().bytes;
  EXPECT_EQ(taper_command("inspect", program).code, success);
  EXPECT_EQ(taper_command("check", program).code, success);
  EXPECT_EQ(delegates::xnnpack::memory_use().bytes, before);
}

TEST(taper_profile, shows_the_nodes_of_a_part_with_their_lines) {
  delegates::xnnpack::delegate();
  const std::string model = tests::test_data("pt2/v2_9_linear.pt2").string(),
                    program = tests::scratch_file("linear.taper").string();
  ASSERT_EQ(
      taper_command("export", model, "-o", program, "--dim", "x.0=2..8", "--backend", "xnnpack")
          .code,
      success);
  const Outcome o = taper_command("profile", program, "--repeat", "3", "--no-roof");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, ContainsRegex("\n +[0-9.]+ +[0-9.]+ % .* xnnpack "));
  EXPECT_THAT(o.out, ContainsRegex("  Fully Connected \\(NC, F32\\)[A-Z ]* +linear at "));
  EXPECT_THAT(o.out, ContainsRegex("  Binary Elementwise \\(ND\\) +div"));
  EXPECT_THAT(o.out, Not(HasSubstr("relu at"))) << "it is a part of the product";
  const Outcome json = taper_command("profile", program, "--repeat", "3", "--no-roof", "--json");
  EXPECT_THAT(json.out, HasSubstr("\"nodes\""));
}

TEST(taper_profile, needs_a_model_to_compare_backends) {
  delegates::xnnpack::delegate();
  const Outcome o = taper_command("profile", "lenet.taper", "--backends");
  EXPECT_EQ(o.code, usage);
  EXPECT_THAT(o.err, HasSubstr("lenet.taper is not a .pt2 file"));
  const std::string model = tests::test_data("pt2/torchao_int8_dynamic.pt2").string();
  EXPECT_EQ(taper_command("profile", model, "--backends", "--json").code, usage);
  EXPECT_EQ(taper_command("profile", "no_such.pt2", "--backends").code, failure);
}

}  // namespace
}  // namespace taper::cli
