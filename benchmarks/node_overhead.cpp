// What the loop costs for each instruction: a chain of 1000 additions of one element.
#include <benchmark/benchmark.h>

#include "../tests/runtime/programs.h"

namespace taper {
namespace {

using format::Region;
using format::Storage;

// x, x + x, (x + x) + x, …: two buffers in turn, an io buffer at either end.
test::ProgramFile chain(int length) {
  test::ProgramFile p;
  const uint32_t add = p.kernel(test::ops::add, {DType::f32, DType::f32, DType::f32});
  test::MethodTables m;
  const uint32_t one = m.shape({m.literal(1)}), bytes = m.literal(4);
  const uint32_t x = m.value(Storage::buffer, m.buffer(bytes, {}, Region::io), one);
  const uint32_t y = m.value(Storage::buffer, m.buffer(bytes, {0}, Region::io), one);
  const uint32_t a = m.value(Storage::buffer, m.buffer(bytes), one);
  const uint32_t b = m.value(Storage::buffer, m.buffer(bytes, {2}), one);
  uint32_t from = x;
  for (int i = 0; i < length; ++i) {
    const uint32_t to = i == length - 1 ? y : i % 2 ? a : b;
    m.run(add, {m.tensor(from), m.tensor(x), m.tensor(to)});
    from = to;
  }
  m.input("x", x);
  m.output("y", y);
  p.methods.push_back(m);
  return p;
}

void node_overhead(benchmark::State& state) {
  const int length = static_cast<int>(state.range(0));
  test::Loaded loaded(chain(length));
  Result<Method> method = loaded.method();
  if (!method.ok()) return state.SkipWithError(name_of(method.error()));
  const float x[] = {1.0f};
  if (method.value().set_input(0, x) != Error::ok) return state.SkipWithError("set_input");
  for (auto _ : state) {
    if (method.value().execute() != Error::ok) return state.SkipWithError("execute");
  }
  state.counters["ns_per_node"] = benchmark::Counter(
      static_cast<double>(length) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(node_overhead)->Arg(1)->Arg(1000);

void load_and_create(benchmark::State& state) {
  const test::ProgramFile file = chain(static_cast<int>(state.range(0)));
  const test::AlignedBytes bytes = file.bytes();
  for (auto _ : state) {
    test::Loaded loaded(bytes);
    benchmark::DoNotOptimize(loaded.method().ok());
  }
}
BENCHMARK(load_and_create)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace taper

BENCHMARK_MAIN();
