// Checkpoints in traced training steps: the program computes values again, so its plan is smaller.
#include "taper/exporter/eager/checkpoint.h"

#include <gtest/gtest.h>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/emit/loaded.h"

namespace taper {
namespace {

using Tensors = std::vector<Tensor>;

/// A deep network whose blocks keep seven values each for backward.
struct Block : nn::Module {
  nn::LayerNorm norm{32};
  nn::Linear up{32, 64}, down{64, 32};
  nn::Dropout dropout{0.1};
  TAPER_MODULE(norm, up, down, dropout)
  Tensor forward(const Tensor& x) { return x + dropout(down(silu(up(norm(x))))); }
};
struct Deep : nn::Module {
  nn::ModuleList<Block> blocks = nn::ModuleList<Block>(12);
  nn::Linear head{32, 10};
  bool saves_memory = false;
  TAPER_MODULE(blocks, head)
  Tensor forward(Tensor x) {
    for (Block& block : blocks)
      x = saves_memory ? checkpoint([&](const Tensor& t) { return block(t); }, x) : block(x);
    return head(x);
  }
};

/// A model, its optimizer and a step. Models begin with equal weights.
struct Training {
  Deep model;
  optim::SGD optimizer;

  explicit Training(bool saves_memory) : optimizer(parameters(), {.lr = 0.1, .momentum = 0.9}) {
    model.saves_memory = saves_memory;
  }
  Tensors parameters() {
    manual_seed(3);
    model = Deep();
    return model.parameters();
  }
  Tensors step(const Tensors& in) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(in[0]), in[1]);
    loss.backward();
    optimizer.step();
    return {loss.detach()};
  }
};

struct Trained {
  std::vector<float> losses;
  emit::MethodReport report;
};
Trained train_exported(bool saves_memory, Dim batch, bool exact) {
  Training training(saves_memory);
  manual_seed(11);
  Exporter exporter;
  exporter.method("train", [&](const Tensors& in) { return training.step(in); },
                  {input("x", {batch, 32}), input("labels", {batch}, DType::i64)});
  ir::verify(exporter.graph("train"));
  ExportOptions options;
  options.exact = exact;
  emit::Report report;
  emit::Loaded program(exporter.write(options, &report), "train");
  Trained result{{}, report.methods[0]};
  Generator generator(5);
  const Tensor x = randn({64, 32}, DType::f32, generator);
  const Tensor labels = argmax(x.slice(1, 0, 10), 1);
  for (int i = 0; i < 4; ++i) result.losses.push_back(program.run({x, labels})[0].item<float>());
  return result;
}

TEST(checkpoint_in_a_program, gives_the_same_losses_with_a_smaller_plan) {
  for (const Dim batch : {Dim(64), Dim::symbol("batch", 1, 64)})
    for (const bool exact : {true, false}) {
      const Trained without = train_exported(false, batch, exact),
                    with = train_exported(true, batch, exact);
      EXPECT_EQ(with.losses, without.losses);
      std::cout << "batch " << batch.to_string() << ": plan of " << without.report.activation_bytes
                << " bytes without checkpoints, " << with.report.activation_bytes << " with; "
                << without.report.instructions << " and " << with.report.instructions
                << " instructions\n";
      EXPECT_LT(with.report.activation_bytes, without.report.activation_bytes * 6 / 10);
    }
}

TEST(checkpoint_in_a_program, trains_as_eager_does) {
  const Trained program = train_exported(true, Dim(64), true);
  Training training(true);
  manual_seed(11);
  Generator generator(5);
  const Tensor x = randn({64, 32}, DType::f32, generator);
  const Tensor labels = argmax(x.slice(1, 0, 10), 1);
  for (const float loss : program.losses)
    EXPECT_EQ(training.step({x, labels})[0].item<float>(), loss);
}

TEST(checkpoint_in_a_program, keeps_modules_apart_that_compute_again) {
  Training training(true);
  const auto graph = trace("train", [&](const Tensors& in) { return training.step(in); },
                           {input("x", {4, 32}), input("labels", {4}, DType::i64)});
  int first = 0, again = 0;
  for (const ir::Node& node : graph->nodes()) {
    first += node.module == "blocks.3.up";
    if (node.module != "(again).blocks.3.up") continue;
    ++again;
    EXPECT_TRUE(eager::is_computed_again(node.module));
    EXPECT_NE(std::string(node.location.file).find("checkpoint_test.cpp"), std::string::npos);
  }
  EXPECT_GT(first, 0);
  EXPECT_GT(again, 0);
}

TEST(checkpoint_in_a_program, updates_running_statistics_once) {
  struct Result {
    std::vector<float> mean;
    int64_t batches;
  };
  const auto run = [](bool saves_memory) {
    manual_seed(2);
    nn::BatchNorm1d norm(4);
    const auto function = [&](const Tensor& t) { return sin(norm(exp(t))); };
    const auto step = [&](const Tensors& in) -> Tensors {
      norm.zero_grad();
      const Tensor y = saves_memory ? checkpoint(function, in[0]) : function(in[0]);
      const Tensor loss = sum(y * y);
      loss.backward();
      return {loss.detach(), norm.weight.grad().clone()};
    };
    Exporter exporter;
    exporter.method("train", step, {input("x", {5, 4})});
    emit::Loaded program(exporter.write(ExportOptions{}), "train");
    Generator generator(5);
    const Tensor x = randn({5, 4}, DType::f32, generator);
    const Tensors of_program = program.run({x}), of_eager = step({x});
    EXPECT_EQ(of_program[1].to_vector<float>(), of_eager[1].to_vector<float>());
    return Result{norm.running_mean.to_vector<float>(), norm.num_batches_tracked.item<int64_t>()};
  };
  const Result with = run(true), without = run(false);
  EXPECT_EQ(with.mean, without.mean);
  EXPECT_EQ(with.batches, 1);
  EXPECT_EQ(without.batches, 1);
}

}  // namespace
}  // namespace taper
