// A whole training step (forward, backward, update) in eager, with random data: images or tokens
// per second. The argument is the number of threads.
#include <benchmark/benchmark.h>

#include "taper/examples/train_gpt/gpt.h"
#include "taper/examples/train_lenet/lenet.h"
#include "taper/examples/train_resnet/resnet.h"

using namespace taper;

namespace {

template <class Model>
void run(benchmark::State& state, Model& model, optim::Optimizer& optimizer, const Tensor& inputs,
         const Tensor& targets, int64_t items, bool flat) {
  eager::set_threads(static_cast<int>(state.range(0)));
  const auto step = [&] {
    Tensor out = model(inputs);
    const Tensor loss =
        cross_entropy(flat ? flatten(out, 0, 1) : out, flat ? flatten(targets) : targets);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  };
  step();
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations() * items);
}

Tensor labels(int64_t count, int64_t classes) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * 7) % classes;
  return Tensor::from(values, {count});
}

void lenet(benchmark::State& state) {
  LeNet model;
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  run(state, model, optimizer, randn({64, 1, 28, 28}), labels(64, 10), 64, false);
}
void resnet20(benchmark::State& state) {
  ResNet model({3, 3, 3});
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
  run(state, model, optimizer, randn({64, 3, 32, 32}), labels(64, 10), 64, false);
}
void small_gpt(benchmark::State& state) {
  gpt::Gpt model(65);
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3, .weight_decay = 0.1});
  const Tensor ids = labels(16 * gpt::context, 65).reshape({16, gpt::context});
  run(state, model, optimizer, ids, ids, 16 * gpt::context, true);
}
BENCHMARK(lenet)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(resnet20)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(small_gpt)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
