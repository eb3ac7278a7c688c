// What a new size costs: `execute` computes again what depends on it, among a thousand instructions
// that do not.
//
//   shapes --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include "../tests/runtime/programs.h"

namespace taper {
namespace {

using format::InstructionKind;
using format::NumberType;
using format::Operation;
using format::Region;
using format::Storage;
using format::SymbolSource;

constexpr int others = 1000, touched = 5;
constexpr int64_t rounds = 1'000'000;

/// x + x, again and again: `count` instructions, on a value and on two buffers of its size.
struct Chain {
  Chain(test::MethodTables& m, uint32_t extent, uint32_t x) : x(x) {
    const uint32_t shape = m.shape({extent}), bytes = m.times(extent, m.literal(4));
    const auto first = static_cast<uint32_t>(m.buffers.size());
    a = m.value(Storage::buffer, m.buffer(bytes), shape);
    b = m.value(Storage::buffer, m.buffer(bytes, {first}), shape);
  }
  void run(test::MethodTables& m, uint32_t add, int count) const {
    for (int i = 0; i < count; ++i)
      m.run(add, {m.tensor(i == 0 ? x : i % 2 ? a : b), m.tensor(x), m.tensor(i % 2 ? b : a)});
  }
  uint32_t x, a, b;
};

// forward(x: f32[1], y: f32[n]): a thousand sums of x; five of y, in a loop of a million rounds if
// `loops`.
test::ProgramFile program(bool loops) {
  test::ProgramFile p;
  const uint32_t add = p.kernel(test::ops::add, {DType::f32, DType::f32, DType::f32});
  test::MethodTables m;
  const uint32_t one = m.literal(1);
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 1, 0, 1, 16));
  const uint32_t x = test::io_tensor(m, {one}), y = test::io_tensor(m, {n});
  const Chain of_x(m, one, x), of_y(m, n, y);
  of_x.run(m, add, others);
  if (loops) m.instruction(InstructionKind::loop_begin, others + touched + 1);
  of_y.run(m, add, touched);
  if (loops) {
    const uint32_t counter =
        m.of_symbol(m.symbol(SymbolSource::loop_counter, others, 0, 0, rounds));
    m.instruction(InstructionKind::loop_end, others, {},
                  m.node(Operation::less, NumberType::boolean, counter, m.literal(rounds)));
  }
  m.input("x", x), m.input("y", y);
  p.methods.push_back(m);
  return p;
}

/// Calls `forward`, with a y of `sizes` elements in turn.
void execute(benchmark::State& state, bool loops, const std::vector<index_t>& sizes) {
  test::Loaded loaded(program(loops));
  Result<Method> method = loaded.method();
  if (!method.ok()) return state.SkipWithError(name_of(method.error()));
  const std::vector<float> ones(16, 1.0f);
  if (method.value().set_input(0, ones.data(), {1}) != Error::ok)
    return state.SkipWithError("set_input");
  size_t turn = 0;
  for (auto _ : state) {
    if (method.value().set_input(1, ones.data(), {sizes[turn++ % sizes.size()]}) != Error::ok ||
        method.value().execute() != Error::ok)
      return state.SkipWithError("execute");
  }
}

void rounds_of_a_loop(benchmark::State& state) {
  execute(state, true, {1});
  state.counters["ns_per_round"] = benchmark::Counter(
      static_cast<double>(rounds) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(rounds_of_a_loop)->Unit(benchmark::kMillisecond);

// The difference of these two is the price of a new size. The five sums are of as few elements.
void a_call_with_the_same_size(benchmark::State& state) { execute(state, false, {2}); }
void a_call_with_another_size(benchmark::State& state) { execute(state, false, {1, 3}); }
BENCHMARK(a_call_with_the_same_size);
BENCHMARK(a_call_with_another_size);

}  // namespace
}  // namespace taper

BENCHMARK_MAIN();
