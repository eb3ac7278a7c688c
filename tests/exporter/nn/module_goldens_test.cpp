// Every module of PyTorch's golden files, call by call: outputs, gradients of inputs and
// parameters, buffers afterwards.
#include "taper/exporter/eager/eager.h"
#include "taper/tests/exporter/nn/factories.h"

namespace taper::tests {

const std::map<std::string, Factory>& factories() {
  static const std::map<std::string, Factory> all = [] {
    std::map<std::string, Factory> joined = layer_factories();
    joined.merge(sequence_factories());
    joined.merge(more_factories());
    return joined;
  }();
  return all;
}

namespace {

Call read_call(const GoldenFile& file, const Json& c) {
  Call call;
  for (const Json& name : c["inputs"]) {
    call.inputs.push_back(file.tensor(name));
    if (file.has(name.get<std::string>() + ".grad")) call.inputs.back().set_requires_grad();
  }
  for (const auto& [name, value] : c["kwargs"].items()) {
    if (value.is_string() && file.has(value))
      call.tensors[name] = file.tensor(value);
    else
      call.options[name] = value;
  }
  return call;
}

void compare_call(const GoldenFile& file, const Callable& callable, const Json& c,
                  const std::string& name, double rtol, double atol) {
  const Call call = read_call(file, c);
  nn::Module& module = *callable.module;
  module.zero_grad();
  const std::vector<Tensor> outputs = callable.run(call);
  ASSERT_EQ(outputs.size(), c["outputs"].get<size_t>()) << name;
  Tensor total;  // whose gradient is that of all outputs with the gradients fed to them
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string output = name + ".out" + std::to_string(i);
    expect_close(outputs[i], file.tensor(output), rtol, atol, output);
    if (!file.has(output + ".grad")) continue;
    const Tensor share = eager::sum(outputs[i] * file.tensor(output + ".grad"));
    total = total.defined() ? total + share : share;
  }
  if (total.defined()) total.backward();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string gradient = c["inputs"][i].get<std::string>() + ".grad";
    if (file.has(gradient))
      expect_close(call.inputs[i].grad(), file.tensor(gradient), rtol, atol, gradient);
  }
  std::map<std::string, Tensor> parameters;
  for (const auto& [path, parameter] : module.named_parameters()) parameters[path] = parameter;
  for (const auto& [path, gradient] : file.all(name + ".grad."))
    expect_close(parameters[path].grad(), gradient, rtol, atol, name + " gradient of " + path);
  const eager::NamedTensors state = module.state_dict();
  for (const auto& [path, value] : file.all(name + ".after."))
    expect_close(state.at(path), value, rtol, atol, name + " afterwards " + path);
}

void compare_file(const std::string& name) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/" + name + ".safetensors");
  const GoldenFile file(path);
  Coverage coverage(name);
  for (const Json& c : file.cases) {
    const std::string id = c["id"];
    const auto factory = factories().find(c["class"]);
    if (factory == factories().end()) {
      coverage.left_out(c["class"]);
      continue;
    }
    SCOPED_TRACE(id + " " + c["args"].dump());
    coverage.ran();
    try {
      const Callable callable = factory->second(c["args"]);
      callable.module->load_state_dict(file.all(id + ".state."));
      callable.module->train(c["train"].get<bool>());
      for (size_t k = 0; k < c["calls"].size(); ++k)
        compare_call(file, callable, c["calls"][k], id + "." + std::to_string(k), c["rtol"],
                     c["atol"]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  coverage.expect_complete();
}

TEST(modules, agree_with_pytorch_on_small_ones) { compare_file("modules_small"); }
TEST(modules, agree_with_pytorch_on_convolutions) { compare_file("modules_conv"); }
TEST(modules, agree_with_pytorch_on_norms) { compare_file("modules_norm"); }
TEST(modules, agree_with_pytorch_on_recurrent_layers) { compare_file("modules_recurrent"); }
TEST(modules, agree_with_pytorch_on_attention) { compare_file("modules_attention"); }
TEST(modules, agree_with_pytorch_on_rare_ones) { compare_file("modules_more"); }

}  // namespace
}  // namespace taper::tests
