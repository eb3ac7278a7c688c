// Weights that the application gives at load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "taper/exporter/cli/taper.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using eager::linear, eager::mm, eager::mul, eager::add;

using testing::ElementsAre;
using testing::HasSubstr;
using tests::linear_model;
using tests::scratch_file;

/// y = (x w + b) / 2; w and b are 2 x 2 ones and zeros.
std::string write_model(const ExportOptions& options, const std::string& written = "") {
  Tensor w = ones({2, 2}), b = zeros({2});
  w.set_name("adapter.weight"), b.set_name("adapter.bias");
  w.set_requires_grad(true);  // as a module's parameter
  Exporter exporter;
  exporter.method("forward",
                  [&](const Tensor& x) {
                    if (!written.empty()) (written == "adapter.weight" ? w : b).add_(1.0);
                    return mul(add(mm(x, w), b), 0.5);
                  },
                  {{"x", {1, 2}}});
  const std::string path = scratch_file("slots.taper").string();
  exporter.write(path, options);
  return path;
}

OwnedTensor tensor(const std::vector<index_t>& sizes, const std::vector<float>& elements) {
  OwnedTensor t{DType::f32, sizes, std::vector<std::byte>(elements.size() * sizeof(float))};
  std::memcpy(t.bytes.data(), elements.data(), t.bytes.size());
  return t;
}

TEST(slots, take_their_elements_from_the_application) {
  ExportOptions options;
  options.quiet = true, options.slots = {"adapter.weight"};
  const std::string program = write_model(options);
  for (const float factor : {1.0f, 3.0f}) {
    std::string why;
    ModuleOptions given;
    given.message = &why;
    given.slots["adapter.weight"] = tensor({2, 2}, {factor, 0, 0, 2 * factor});
    Result<Module> module = Module::load(program, given);
    ASSERT_TRUE(module.ok()) << why;
    const std::vector<float> x{10, 100};
    std::vector<float> y(2);
    ASSERT_EQ(module->forward({{x.data(), {1, 2}}}, {y}), Error::ok) << module->message();
    EXPECT_THAT(y, ElementsAre(5 * factor, 100 * factor));
  }
  std::string why;
  ModuleOptions none;
  none.message = &why;
  EXPECT_FALSE(Module::load(program, none).ok());
  EXPECT_THAT(why, HasSubstr("adapter.weight, of type f32[2, 2]: give it"));
  EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("slot adapter.weight"));
}

TEST(slots, are_filled_from_a_file_by_run_check_and_profile) {
  ExportOptions options;
  options.quiet = true, options.slots = {"adapter.weight"};
  const std::string program = write_model(options), y = scratch_file("y.npy").string(),
                    x = "x=" + npy("x.npy", {1, 2}, {10, 100}),
                    file = scratch_file("slots.safetensors").string(),
                    recorded = scratch_file("recorded.safetensors").string();
  const auto array = [](std::vector<int64_t> sizes, const std::vector<float>& values) {
    return io::Array::of<float>(std::move(sizes), std::span<const float>(values));
  };
  const auto write = [&](const io::ArrayMap& tensors) {
    io::write_safetensors(file, {tensors, {}});
  };
  write({{"adapter.weight", array({2, 2}, {1, 0, 0, 2})}});
  const Outcome run = taper_command("run", program, "--slots", file, "--input", x, "--output", y);
  EXPECT_EQ(run.code, success) << run.err;
  EXPECT_THAT(io::read_npy(y).values<float>(), ElementsAre(5, 100));
  io::write_safetensors(recorded, {{{"set0.input.0", array({1, 2}, {10, 100})},
                                    {"set0.output.0", array({1, 2}, {5, 100})}},
                                   {}});
  const Outcome check = taper_command("check", program, recorded, "--slots", file);
  EXPECT_EQ(check.code, success) << check.err;
  EXPECT_EQ(taper_command("profile", program, "--slots", file, "--repeat", "1").code, success);

  const Outcome none = taper_command("run", program, "--input", x);
  EXPECT_EQ(none.code, failure);
  EXPECT_THAT(none.err, HasSubstr("is the slot adapter.weight, of type f32[2, 2]: give it "
                                  "(--slots FILE.safetensors)"));
  const auto refused = [&](const io::ArrayMap& tensors) {
    write(tensors);
    return taper_command("run", program, "--slots", file, "--input", x).err;
  };
  EXPECT_THAT(refused({{"adapter.weight", array({4}, {1, 0, 0, 2})}}),
              HasSubstr("slot adapter.weight takes f32[2, 2], not f32[4]"));
  EXPECT_THAT(refused({{"adapter.weight", io::Array::zeros(DType::f16, {2, 2})}}),
              HasSubstr("slot adapter.weight takes f32[2, 2], not f16[2, 2]"));
  EXPECT_THAT(refused({{"adapter.weight", array({2, 2}, {1, 0, 0, 2})}, {"b", array({1}, {1})}}),
              HasSubstr("the program has no slot b"));
  EXPECT_THAT(taper_command("run", linear_model(), "--slots", file).err,
              HasSubstr("is a PyTorch model, which has no slots"));
}

TEST(slots, are_weights_that_the_model_reads_and_does_not_write) {
  const auto message_of = [](const char* slot, const std::string& written = "") {
    ExportOptions options;
    options.quiet = true, options.slots = {slot};
    try {
      write_model(options, written);
    } catch (const ExportError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message_of("adapter.w"), HasSubstr("it reads adapter.weight, adapter.bias"));
  EXPECT_THAT(message_of("adapter.bias", "adapter.bias"), HasSubstr("the model writes it"));
}

TEST(slots, are_named_on_the_command_line) {
  const std::string program = scratch_file("linear_slot.taper").string();
  const Outcome wrong =
      taper_command("export", linear_model(), "-o", program, "--slot", "no.weight");
  EXPECT_EQ(wrong.code, failure);
  EXPECT_THAT(wrong.err, HasSubstr("slot no.weight: the model reads no weight of this name"));
  const std::string known = wrong.err.substr(wrong.err.find("it reads ") + 9);
  const std::string name = known.substr(0, known.find_first_of(",\n"));
  const Outcome o = taper_command("export", linear_model(), "-o", program, "--slot", name);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("no test of "));
  EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("slot " + name));
  EXPECT_EQ(taper_command("export", program, "--slot", name, "--kernels", "k.cpp").code, usage);
}

TEST(packed_weights, lie_in_the_program_unless_it_is_to_be_dense) {
  const std::string packed = scratch_file("packed.taper").string(),
                    plain = scratch_file("dense.taper").string();
  for (const auto& [path, dense] : {std::pair{packed, false}, {plain, true}}) {
    Exporter exporter;
    Tensor w = randn({40, 24});
    w.set_name("fc.weight");
    exporter.method("forward", [&](const Tensor& x) { return linear(x, w); }, {{"x", {1, 24}}});
    ExportOptions options;
    options.quiet = true, options.dense = dense;
    exporter.write(path, options);
  }
  const std::string first = taper_command("inspect", packed).out,
                    second = taper_command("inspect", plain).out;
  EXPECT_THAT(first, Not(HasSubstr("packed weights   ")));
  EXPECT_THAT(first, HasSubstr("panels_of_first"));
  EXPECT_THAT(second, HasSubstr("packed weights   "));
  EXPECT_THAT(taper_command("inspect", packed, "--json").out,
              HasSubstr("\"layout\": \"panels_of_first\""));
}

}  // namespace
}  // namespace taper::cli
