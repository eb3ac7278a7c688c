// Runs of models of PyTorch and of programs made of them.
#include <gmock/gmock.h>

#include <random>

#include "taper/exporter/compare/compare.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"

namespace taper::compare {
namespace {

using testing::HasSubstr;

io::Array random_array(std::vector<int64_t> sizes) {
  io::Array array = io::Array::zeros(DType::f32, std::move(sizes));
  std::mt19937 random(0);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& x : array.values<float>()) x = uniform(random);
  return array;
}

/// A program in memory, ready to run.
class Loaded {
 public:
  explicit Loaded(std::vector<std::byte> bytes, const std::string& name = "forward")
      : bytes_(std::move(bytes)),
        module_(Module::load({bytes_.data(), static_cast<index_t>(bytes_.size())}).value()),
        method(module_.method(name).value()) {}

  compare::Run run(const std::vector<io::Array>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape shape =
          Shape::dense(std::vector<index_t>(inputs[i].sizes.begin(), inputs[i].sizes.end()));
      EXPECT_EQ(method.set_input(static_cast<index_t>(i),
                                 TensorRef{inputs[i].bytes.get(), &shape, inputs[i].dtype}),
                Error::ok);
    }
    return run_program(module_.program(), method);
  }

 private:
  std::vector<std::byte> bytes_;
  Module module_;

 public:
  Method method;
};

std::vector<std::byte> exported(const pt2::Model& model, const ExportOptions& options) {
  const eager::NoGrad guard;
  pt2::Model traced = model;
  Exporter exporter;
  exporter.method("forward", traced.function(), traced.input_specs(), traced.output_names());
  return exporter.write(options);
}

pt2::Model linear() { return pt2::Model::load(tests::test_data("pt2/v2_9_linear.pt2")); }

std::vector<io::Array> recorded_inputs(const std::filesystem::path& file) {
  std::vector<io::Array> inputs;
  for (const auto& [i, array] : read_recording(file).inputs) inputs.push_back(array);
  return inputs;
}

TEST(run_of_a_model, has_every_node_with_its_place) {
  pt2::Model model = linear();
  const compare::Run run =
      run_model(model, recorded_inputs(tests::test_data("pt2/v2_9_linear.io.safetensors")));
  ASSERT_FALSE(run.nodes.empty());
  EXPECT_THAT(run.nodes.back().source, HasSubstr(".py:"));
  ASSERT_EQ(run.outputs.size(), 1u);
  EXPECT_EQ(run.outputs[0].slot, "output 0");
  EXPECT_FALSE(measure(run.nodes.back().value, run.outputs[0].value).exceeds(0));
}

TEST(run_of_a_model, leaves_its_inputs_alone) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/feat_input_mutation.pt2");
  pt2::Model model = pt2::Model::load(file);
  const auto inputs = recorded_inputs(file.parent_path() / "feat_input_mutation.io.safetensors");
  const io::Array before = inputs.at(0).clone();
  const compare::Run run = run_model(model, inputs);
  EXPECT_EQ(measure(inputs[0], before).difference.absolute, 0);
  EXPECT_EQ(run.outputs.back().name, "x_mutated");
  EXPECT_EQ(run.outputs.back().slot, "input 0 afterwards");
  EXPECT_TRUE(measure(run.outputs.back().value, before).exceeds(0));
}

// An exact program is eager's bits, so whatever differs would be paired wrongly, or was copied too
// early or too late.
TEST(run_of_a_program, has_the_bits_that_eager_has_in_every_node) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "pt2");
  for (const char* name :
       {"resnet20", "lenet", "lenet_core", "yunet_n", "silero_vad_16k", "stories260k",
        "stories260k_static_cache", "feat_while_loop", "feat_gru", "feat_conv_family"}) {
    SCOPED_TRACE(name);
    pt2::Model model = pt2::Model::load(folder / (std::string(name) + ".pt2"));
    std::vector<io::Array> inputs =
        recorded_inputs(folder / (std::string(name).substr(0, std::string(name).find("_core")) +
                                  ".io.safetensors"));
    Loaded program(exported(model, {.exact = true}));
    const compare::Run want = run_model(model, inputs), got = program.run(inputs);
    const Comparison c = compare(want, got, 0);
    EXPECT_TRUE(c.fits());
    EXPECT_GE(c.nodes.size(), 2u);
    if (const Pair* p = c.first_beyond())
      ADD_FAILURE() << p->name << " differs by " << p->measure.difference.absolute;
    // what has none is counted, not forgotten
    EXPECT_EQ(c.nodes.size() + static_cast<size_t>(c.only_in_got), got.nodes.size());
  }
}

TEST(run_of_a_program, finds_a_counterpart_for_every_instruction_after_folding_and_fusing) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/resnet20.pt2");
  pt2::Model model = pt2::Model::load(file);
  const std::vector<io::Array> inputs{random_array({2, 3, 32, 32})};
  Loaded fast(exported(model, {.exact = false})), exact(exported(model, {.exact = true}));
  const compare::Run of_model = run_model(model, inputs), of_exact = exact.run(inputs),
                     of_fast = fast.run(inputs);
  for (const compare::Run* want : {&of_model, &of_exact}) {
    const Comparison c = compare(*want, of_fast, 1e-4);
    // a copy into the order of channels last, one out of it, and two paddings of slices
    EXPECT_EQ(c.only_in_got, 4);
    EXPECT_EQ(c.nodes.size(), 21u);
    EXPECT_EQ(c.first_beyond(), nullptr);
    EXPECT_TRUE(c.worst(1).at(0)->measure.exceeds(0));  // folding rounds
  }
}

TEST(comparison, names_the_layer_whose_weights_are_others) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/resnet20.pt2");
  pt2::Model model = pt2::Model::load(file), other = pt2::Model::load(file);
  nn::Tensor weight = other.state_dict().at("layer2.1.conv1.weight");
  {
    const eager::NoGrad guard;
    weight[3].mul_(1.5);
  }
  const std::vector<io::Array> inputs{random_array({1, 3, 32, 32})};
  for (const bool exact : {true, false}) {
    Loaded program(exported(other, {.exact = exact}));
    const compare::Run want = run_model(model, inputs), got = program.run(inputs);
    const Comparison c = compare(want, got, 1e-4);
    ASSERT_NE(c.first_beyond(), nullptr);
    EXPECT_EQ(c.first_beyond()->want->module, exact ? "layer2.1.conv1" : "layer2.1");
    EXPECT_FALSE(c.fits());
  }
}

TEST(run_of_a_program, starts_from_the_states_and_changes_them) {
  Exporter exporter;
  Tensor total = zeros({2});
  total.set_name("total");
  exporter.method("count",
                  [&](Tensor x) {
                    total.add_(x);
                    return total * 2;
                  },
                  {input("x", {2})}, {"y"});
  Loaded program(exporter.write(ExportOptions{}), "count");
  const float ones[] = {1, 1};
  const io::Array x = io::Array::of<float>({2}, std::span(ones));
  const compare::Run first = program.run({x}), second = program.run({x});
  EXPECT_EQ(first.outputs.at(0).value.values<float>()[0], 2);
  EXPECT_EQ(second.outputs.at(0).value.values<float>()[0], 4);
}

TEST(run_of_a_program, has_only_outputs_in_common_without_a_debug_table) {
  pt2::Model model = linear();
  const auto inputs = recorded_inputs(tests::test_data("pt2/v2_9_linear.io.safetensors"));
  Loaded program(exported(model, {.exact = true, .debug = false}));
  const Comparison c = compare(run_model(model, inputs), program.run(inputs));
  EXPECT_TRUE(c.nodes.empty());
  EXPECT_TRUE(c.fits());
}

TEST(run_of_a_program, fails_as_the_method_does_and_takes_its_profiler_away) {
  Exporter exporter;
  exporter.method("forward", [](Tensor x, Tensor i) { return index_select(x, 0, i); },
                  {input("x", {3}), input("i", {1}, DType::i64)}, {"y"});
  Loaded program(exporter.write(ExportOptions{}));
  const int64_t wrong = 5, right = 1;
  const io::Array x = io::Array::zeros(DType::f32, {3});
  try {
    program.run({x, io::Array::of<int64_t>({1}, std::span(&wrong, 1))});
    FAIL() << "an index out of range was accepted";
  } catch (const ExportError& e) {
    EXPECT_THAT(e.what(), HasSubstr("5"));
  }
  EXPECT_EQ(program.method.set_input(1, &right), Error::ok);
  EXPECT_EQ(program.method.execute(), Error::ok);
}

// ---- recordings

TEST(recording, is_the_first_call_of_a_file_of_calls) {
  const auto file = tests::test_data("pt2/v2_9_linear.io.safetensors");
  const Recording r = read_recording(file);
  pt2::Model model = linear();
  const Comparison c = compare(r.run, run_model(model, {r.inputs.at(0)}), 1e-5);
  EXPECT_TRUE(c.fits());
  EXPECT_EQ(c.outputs.size(), 1u);
}

TEST(recording, belongs_to_outputs_and_nodes_by_name) {
  pt2::Model model = linear();
  const auto inputs = recorded_inputs(tests::test_data("pt2/v2_9_linear.io.safetensors"));
  const compare::Run run = run_model(model, inputs);
  io::SafeTensors content;
  for (const Result& r : run.nodes) content.tensors[r.name] = r.value;
  for (const Output& o : run.outputs) content.tensors[o.name] = o.value;
  const auto file = tests::scratch_file("nodes.safetensors");
  io::write_safetensors(file, content);
  const Recording recording = read_recording(file);
  const Comparison c = compare(recording.run, run, 0);
  EXPECT_TRUE(recording.inputs.empty());
  EXPECT_EQ(c.nodes.size(), run.nodes.size());
  EXPECT_EQ(c.first_beyond(), nullptr);
  EXPECT_TRUE(c.fits());
}

TEST(recording, is_refused_if_it_is_none) {
  EXPECT_THROW(read_recording("/nowhere/x.safetensors"), io::FileError);
  EXPECT_THROW(read_recording("/nowhere/x.npy"), io::FileError);
}

}  // namespace
}  // namespace taper::compare
