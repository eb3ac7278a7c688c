// Whole training steps and recurrent layers as graphs.
#include <gtest/gtest.h>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/trace/trace.h"

namespace taper {
namespace {

using Tensors = std::vector<Tensor>;
using OptimizerPtr = std::unique_ptr<optim::Optimizer>;

struct Case {
  const char* name;
  std::function<OptimizerPtr(const Tensors& parameters)> make;
};
template <class O, class Options>
Case with(const char* name, Options options) {
  return {name, [options](const Tensors& parameters) -> OptimizerPtr {
            return std::make_unique<O>(parameters, options);
          }};
}

const Case cases[] = {
    with<optim::SGD>("SGD", optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.2}),
    with<optim::Adam>("Adam", optim::AdamOptions{.amsgrad = true}),
    with<optim::AdamW>("AdamW", optim::AdamWOptions{}),
    with<optim::Adagrad>("Adagrad", optim::AdagradOptions{.lr_decay = 0.1}),
    with<optim::RMSprop>("RMSprop", optim::RMSpropOptions{.momentum = 0.9, .centered = true}),
    with<optim::Adadelta>("Adadelta", optim::AdadeltaOptions{}),
    with<optim::Adamax>("Adamax", optim::AdamaxOptions{}),
    with<optim::NAdam>("NAdam", optim::NAdamOptions{.weight_decay = 0.1}),
    with<optim::RAdam>("RAdam", optim::RAdamOptions{.betas = {0.9, 0.9}}),
    with<optim::ASGD>("ASGD", optim::ASGDOptions{.t0 = 1}),
    with<optim::Rprop>("Rprop", optim::RpropOptions{}),
    with<optim::Lion>("Lion", optim::LionOptions{}),
    with<optim::Adafactor>("Adafactor", optim::AdafactorOptions{.weight_decay = 0.1}),
    with<optim::Muon>("Muon", optim::MuonOptions{}),
    with<optim::LowBitAdam>("8 bits", optim::LowBitAdamOptions{}),
    with<optim::LowBitAdam>("4 bits",
                            optim::LowBitAdamOptions{.format = optim::StateFormat::four_bit}),
    with<optim::LowBitAdam>("fp8", optim::LowBitAdamOptions{.format = optim::StateFormat::fp8}),
};

TEST(training_step, of_every_optimizer_is_a_graph_with_the_bits_of_eager) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    eager::manual_seed(1);
    Tensor w = eager::randn({64, 64}) * 0.1;
    w.set_name("w");
    w.set_requires_grad();
    const OptimizerPtr optimizer = c.make({w});
    const auto step = [&](const Tensors& in) {
      optimizer->zero_grad();
      const Tensor loss = eager::mse_loss(eager::tanh(eager::linear(in[0], w)), in[0]);
      loss.backward();
      optimizer->step();
      return Tensors{loss.detach()};
    };
    const auto graph = trace("train", step, {input("x", {5, 64})});
    ir::verify(*graph);
    std::map<std::string, Tensor> states;
    for (int i = 0; i < 3; ++i) {
      const Tensor x = eager::randn({5, 64});
      ir::Interpreter interpreter(*graph);
      for (const auto& [path, value] : states) interpreter.set_state(path, value);
      const ir::Interpretation result = interpreter.run({x});
      for (const auto& [path, value] : result.written_states) states[path] = value;
      EXPECT_EQ(result.outputs[0].item<float>(), step({x})[0].item<float>()) << "step " << i;
      EXPECT_EQ(states.at("w").to_vector<float>(), w.to_vector<float>()) << "step " << i;
    }
  }
}

TEST(training_step, of_lbfgs_says_why_it_is_no_graph) {
  Tensor w = eager::ones({2});
  w.set_requires_grad();
  w.set_name("w");
  optim::LBFGS optimizer({w});
  try {
    trace("train",
          [&](const Tensors& in) {
            optimizer.step([&] { return eager::sum(w * in[0]); });
            return Tensors{in[0]};
          },
          {input("x", {2})});
    FAIL();
  } catch (const EagerError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be traced"), std::string::npos)
        << error.what();
  }
}

struct RecurrentLayers : nn::Module {
  nn::LSTM lstm{3, 5, {.num_layers = 2, .bidirectional = true}};
  nn::LSTM projected{3, 5, {.batch_first = true, .proj_size = 2}};
  nn::GRU gru{3, 5, {.bidirectional = true}};
  nn::RNN rnn{3, 5, {.num_layers = 2, .relu = true}};
  TAPER_MODULE(lstm, projected, gru, rnn)
  Tensors forward(const Tensor& x) {
    return {std::get<0>(lstm(x)), std::get<0>(projected(x.transpose(0, 1))), std::get<0>(gru(x)),
            std::get<1>(rnn(x))};
  }
};

TEST(recurrent_layers, keep_time_and_batch_symbolic) {
  const Dim time = Dim::symbol("time", 1, 9), batch = Dim::symbol("batch", 1, 4);
  RecurrentLayers layers;
  const auto function = [&](const Tensors& in) { return layers(in[0]); };
  const auto graph = trace("f", function, {input("x", {time, batch, 3})});
  ir::verify(*graph);
  EXPECT_EQ(graph->outputs()[0].value->type.sizes[0].to_string(), "time");
  for (const int64_t t : {1, 4})
    for (const int64_t b : {1, 3}) {
      const Tensor x = eager::randn({t, b, 3});
      const ir::Interpretation result = ir::Interpreter(*graph).run({x});
      const Tensors expected = function({x});
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(result.outputs[i].to_vector<float>(), expected[i].to_vector<float>()) << i;
    }
}

}  // namespace
}  // namespace taper
