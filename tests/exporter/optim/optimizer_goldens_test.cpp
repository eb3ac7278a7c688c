// Optimizers and gradient clipping against PyTorch, step by step: w2 tanh(w1 x + b1) + b2 with
// cross entropy.
#include <functional>

#include "taper/exporter/eager/ops/loss.h"
#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/optim/optim.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::tests {
namespace {

struct Network {
  Tensor w1, b1, w2, b2;
  explicit Network(const GoldenFile& file)
      : w1(file.tensor("init.w1")),
        b1(file.tensor("init.b1")),
        w2(file.tensor("init.w2")),
        b2(file.tensor("init.b2")) {
    for (const Tensor& parameter : parameters()) parameter.set_requires_grad();
  }
  std::vector<Tensor> parameters() const { return {w1, b1, w2, b2}; }
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return eager::cross_entropy(eager::linear(eager::tanh(eager::linear(x, w1, b1)), w2, b2), y);
  }
};

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<float> all;
  for (const Tensor& t : tensors)
    for (const float v : t.detach().to_vector<float>()) all.push_back(v);
  return Tensor::from(all, {static_cast<int64_t>(all.size())});
}

template <class Options>
Options adam_options(const Json& args) {
  Options o;
  o.lr = args.value("lr", o.lr);
  if (args.contains("betas"))
    o.betas = {args["betas"][0].get<double>(), args["betas"][1].get<double>()};
  o.eps = args.value("eps", o.eps);
  o.weight_decay = args.value("weight_decay", o.weight_decay);
  o.amsgrad = args.value("amsgrad", false);
  o.maximize = args.value("maximize", false);
  return o;
}

using OptimizerPtr = std::unique_ptr<optim::Optimizer>;
const std::map<std::string, std::function<OptimizerPtr(const Json&, const Network&)>> factories = {
    {"SGD",
     [](const Json& a, const Network& net) -> OptimizerPtr {
       return std::make_unique<optim::SGD>(
           net.parameters(), optim::SGDOptions{.lr = a.value("lr", 1e-3),
                                               .momentum = a.value("momentum", 0.0),
                                               .dampening = a.value("dampening", 0.0),
                                               .weight_decay = a.value("weight_decay", 0.0),
                                               .nesterov = a.value("nesterov", false),
                                               .maximize = a.value("maximize", false)});
     }},
    {"Adam",
     [](const Json& a, const Network& net) -> OptimizerPtr {
       return std::make_unique<optim::Adam>(net.parameters(), adam_options<optim::AdamOptions>(a));
     }},
    {"AdamW",
     [](const Json& a, const Network& net) -> OptimizerPtr {
       return std::make_unique<optim::AdamW>(net.parameters(),
                                             adam_options<optim::AdamWOptions>(a));
     }},
    {"AdamW, two groups (matrices wd .1 lr a; biases wd 0 lr 2a)",
     [](const Json& a, const Network& net) -> OptimizerPtr {
       const double lr = a["lr"];
       return std::make_unique<optim::AdamW>(
           std::vector<optim::ParameterGroup<optim::AdamWOptions>>{
               {{net.w1, net.w2}, {.lr = lr, .weight_decay = 0.1}},
               {{net.b1, net.b2}, {.lr = 2 * lr, .weight_decay = 0}}});
     }},
};

TEST(optimizers, agree_with_pytorch_after_every_step) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/optimizers.safetensors");
  const GoldenFile file(path);
  const Tensor x = file.tensor("x"), y = file.tensor("y");
  Coverage coverage("optimizers");
  for (const Json& c : file.cases) {
    if (!c.contains("optimizer") || !c["optimizer"].is_string()) continue;
    const std::string id = c["id"];
    const auto factory = factories.find(c["optimizer"]);
    if (factory == factories.end()) {
      coverage.left_out(c["optimizer"]);
      continue;
    }
    SCOPED_TRACE(id + " " + c["args"].dump());
    coverage.ran();
    const Network net(file);
    const OptimizerPtr optimizer = factory->second(c["args"], net);
    const double rtol = c["rtol"], atol = c["atol"];
    for (size_t step = 1; step <= c["loss_before_step"].size(); ++step) {
      const Tensor loss = net.loss(x, y);
      const double expected = c["loss_before_step"][step - 1];
      EXPECT_NEAR(loss.item(), expected, atol + rtol * std::abs(expected))
          << "before step " << step;
      optimizer->zero_grad();
      loss.backward();
      optimizer->step();
      const std::string name = id + ".step" + (step < 10 ? "0" : "") + std::to_string(step);
      expect_close(flat(net.parameters()), file.tensor(name), rtol, atol, name);
      if (testing::Test::HasFailure()) break;
    }
  }
  coverage.print();
}

/// Leaves with the concatenated gradients of a clipping case: w1, b1, w2, b2.
std::vector<Tensor> leaves_with_gradients(const GoldenFile& file, const std::string& name) {
  const std::vector<float> all = file.tensor(name).to_vector<float>();
  std::vector<Tensor> leaves = Network(file).parameters();
  auto at = all.begin();
  for (const Tensor& leaf : leaves) {
    const int64_t n = leaf.numel().value();
    leaf.set_grad(Tensor::from(std::vector<float>(at, at + n), {n}).view(leaf.sizes()));
    at += n;
  }
  return leaves;
}
Tensor flat_gradients(const std::vector<Tensor>& leaves) {
  std::vector<Tensor> gradients;
  for (const Tensor& leaf : leaves) gradients.push_back(leaf.grad());
  return flat(gradients);
}

TEST(clipping, agrees_with_pytorch) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/optimizers.safetensors");
  const GoldenFile file(path);
  int ran = 0;
  for (const Json& c : file.cases) {
    const std::string op = c.value("op", ""), id = c["id"];
    if (op != "clip_grad_norm" && op != "clip_grad_value") continue;
    SCOPED_TRACE(c.dump());
    ++ran;
    const std::vector<Tensor> leaves = leaves_with_gradients(file, id + ".grads");
    if (op == "clip_grad_norm") {
      const double norm_type = c["norm_type"].is_string() ? INFINITY : c["norm_type"].get<double>();
      expect_close(optim::clip_grad_norm_(leaves, c["max_norm"], norm_type).view({1}),
                   file.tensor(id + ".norm"), c["rtol"], c["atol"], "norm");
    } else {
      optim::clip_grad_value_(leaves, c["clip_value"]);
    }
    expect_close(flat_gradients(leaves), file.tensor(id + ".clipped"), c["rtol"], c["atol"],
                 "clipped");
  }
  EXPECT_EQ(ran, 5);
}

}  // namespace
}  // namespace taper::tests
