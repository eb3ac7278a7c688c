// What one eager call costs beyond its arithmetic: one-element tensors, where the kernel itself is
// a few nanoseconds.
#include <benchmark/benchmark.h>

#include "taper/exporter/eager/eager.h"

using namespace taper;
using eager::Tensor;

namespace {

void add_off_the_tape(benchmark::State& state) {
  eager::NoGrad guard;
  const Tensor a = Tensor::from<float>({1}, {1}), b = Tensor::from<float>({2}, {1});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(add_off_the_tape);

void add_on_the_tape(benchmark::State& state) {
  const Tensor a = Tensor::from<float>({1}, {1}).set_requires_grad(),
               b = Tensor::from<float>({2}, {1});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(add_on_the_tape);

void relu_on_the_tape(benchmark::State& state) {
  const Tensor a = Tensor::from<float>({1}, {1}).set_requires_grad();
  for (auto _ : state) benchmark::DoNotOptimize(relu(a));
}
BENCHMARK(relu_on_the_tape);

void add_in_place(benchmark::State& state) {
  eager::NoGrad guard;
  Tensor a = Tensor::from<float>({1}, {1});
  const Tensor b = Tensor::from<float>({2}, {1});
  for (auto _ : state) a.add_(b);
}
BENCHMARK(add_in_place);

void view(benchmark::State& state) {
  const Tensor a = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  for (auto _ : state) benchmark::DoNotOptimize(a.t());
}
BENCHMARK(view);

void mul_forward_and_backward(benchmark::State& state) {
  const Tensor a = Tensor::from<float>({3}, {}).set_requires_grad();
  for (auto _ : state) {
    a.set_grad({});
    (a * a).backward();
  }
}
BENCHMARK(mul_forward_and_backward);

}  // namespace

BENCHMARK_MAIN();
