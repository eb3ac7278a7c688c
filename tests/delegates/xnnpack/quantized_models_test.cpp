// Models whose products round their input while the program runs: of PyTorch, and by our recipe.
#include <filesystem>

#include "delegated.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/tests/support/data.h"

namespace taper::delegates::xnnpack {
namespace {

/// Exports a network by the recipe to XNNPACK, and compares it with eager in f32.
void expect_recipe(const char* recipe, float tolerance) {
  const Tensor a = random_tensor({64, 96}, 60), b = random_tensor({10, 64}, 61),
               c = random_tensor({10}, 63);
  const auto network = [&](const Tensor& t) { return linear(gelu(linear(t, a)), b, c); };
  ExportOptions options;
  options.exact = false, options.backend = delegate().name(), options.require_backend = true;
  options.before_passes = [&](const std::vector<ir::Graph*>& graphs) {
    quantize::quantize(graphs, quantize::find_recipe(recipe));
  };
  Exporter exporter;
  exporter.method("forward", network, {input("x", {5, 96})});
  const std::vector<std::byte> file = exporter.write(options);
  EXPECT_LT(file.size(), (64 * 96 + 10 * 64) * 4u / 2) << "weights have 8 bits";
  ModuleOptions load;
  load.backends = {&backend()};
  Result<Module> module = Module::load(file, load);
  ASSERT_TRUE(module.ok());
  const Tensor x = random_tensor({5, 96}, 62);
  expect_close(call(module.value(), x), network(x).to_vector<float>(), tolerance);
}

TEST(xnnpack_quantized_models, runs_the_recipe_int8_dynamic) {
  expect_recipe("int8-dynamic", 1e-2f);
}
TEST(xnnpack_quantized_models, runs_the_recipe_int8_weights) {
  expect_recipe("int8-weights", 1e-2f);
}

TEST(xnnpack_quantized_models, refuses_a_bias_that_overflows_beside_its_scales) {
  // the library gets bias / scale, and 1e35 / 8e-6 is no f32
  const Tensor weight = random_tensor({64, 96}, 60, -1e-3f, 1e-3f);
  const auto write = [&](float element) {
    const Tensor bias = Tensor::from<float>(std::vector<float>(64, element), {64});
    const auto network = [&](const Tensor& t) { return linear(t, weight, bias); };
    ExportOptions options;
    options.exact = false, options.backend = delegate().name();
    options.before_passes = [&](const std::vector<ir::Graph*>& graphs) {
      quantize::quantize(graphs, quantize::find_recipe("int8-weights"));
    };
    Exporter exporter;
    exporter.method("forward", network, {input("x", {5, 96})});
    return exporter.write(options);
  };
  EXPECT_NO_THROW(write(1e30f));
  try {
    write(1e35f);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ExportError& error) {
    EXPECT_NE(std::string(error.what()).find("of its bias is too large"), std::string::npos)
        << error.what();
  }
}

// ---- models that PyTorch quantized ----

/// Exports a model to XNNPACK and compares with PyTorch's results: one step of 8 bits apart at
/// most.
void expect_golden(const std::filesystem::path& file, int products) {
  pt2::Model model = pt2::Model::load(file);
  ExportOptions options;
  options.exact = false, options.backend = delegate().name();
  Exporter exporter;
  exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  int groups = 0;
  options.after_pass = [&](const passes::PassResult& pass, const ir::Graph&) {
    if (pass.name == "group_for_backend") groups += pass.changes;
  };
  emit::Report report;
  const std::vector<std::byte> program = exporter.write(options, &report);
  EXPECT_EQ(groups, products);
  for (const char* product : {"linear", "mm", "_int_mm"})
    EXPECT_FALSE(report.methods[0].operators.contains(product)) << "all products are delegated";
  ModuleOptions load;
  load.backends = {&backend()};
  Result<Module> module = Module::load(program, load);
  ASSERT_TRUE(module.ok());
  std::filesystem::path recorded = file;
  recorded.replace_extension(".io.safetensors");
  for (const io::RecordedCall& recorded_call : io::read_recorded_calls(recorded)) {
    const Tensor x = eager::tensor_of(recorded_call.inputs.at(0));
    expect_close(call(module.value(), x),
                 eager::tensor_of(recorded_call.outputs.at(0)).to_vector<float>(), 0.02f);
  }
}

TEST(xnnpack_quantized_models, gives_what_torchao_gives_with_4_bit_weights) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/q_ao_8da4w.pt2");
  expect_golden(file, 2);
}

TEST(xnnpack_quantized_models, gives_what_torchao_gives_with_8_bit_weights) {
  expect_golden(tests::test_data("pt2/torchao_int8_dynamic.pt2"), 2);
}

TEST(xnnpack_quantized_models, gives_what_pytorch_gives_with_dynamic_quantization) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/q_transformer_pt2e_dynamic.pt2");
  expect_golden(file, 4);
}

}  // namespace
}  // namespace taper::delegates::xnnpack
