// How long a program takes to load. `load` verifies the tables and finds each instruction's kernel.
// `load_and_prepare` is what an app waits for before its first call: it maps the file, packs
// weights that the file does not hold packed, and prepares the method "forward"; once more with two
// threads. Beside them stands the price of one question to the processor, which load asks once. In
// some virtual machines that question costs more than all the rest.
//
//   taper export mobilenet_v2.pt2 -o mobilenet_v2.taper
//   taper export mobilenet_v2.pt2 -o dense.taper --dense
//   load mobilenet_v2.taper dense.taper
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/platform/cpu.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/runtime/program/program.h"
#include "taper/tests/runtime/program_file.h"

using namespace taper;

namespace {

test::AlignedBytes read(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    std::fprintf(stderr, "load: %s cannot be read\n", path);
    std::exit(1);
  }
  test::AlignedBytes bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void load(benchmark::State& state, const char* path) {
  const test::AlignedBytes file = read(path);
  const Result<size_t> bytes = Program::metadata_bytes(file);
  if (!bytes.ok()) return state.SkipWithError("this is not a program");
  test::AlignedBytes metadata(bytes.value());
  for (auto _ : state) {
    Result<Program> program = Program::load(file, default_kernels(), metadata);
    if (!program.ok()) return state.SkipWithError("the program does not load");
    benchmark::DoNotOptimize(program);
  }
}

void load_and_prepare(benchmark::State& state, const char* path, int threads) {
  ThreadPool pool(threads);
  ModuleOptions options;
  options.threads = pool.threads();
  for (auto _ : state) {
    Result<Module> module = Module::load(path, options);
    if (!module.ok() || !module->method("forward").ok())
      return state.SkipWithError("the program does not load, or has no method forward");
  }
}

void ask_the_processor(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(cpu_features());
}

}  // namespace

BENCHMARK(ask_the_processor);

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 2) return std::fprintf(stderr, "usage: load PROGRAM...\n"), 2;
  for (int i = 1; i < argc; ++i) {
    const std::string name = "load_and_prepare " + std::string(argv[i]);
    benchmark::RegisterBenchmark(("load " + std::string(argv[i])).c_str(), load, argv[i])
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(name.c_str(), load_and_prepare, argv[i], 1)
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + ", 2 threads").c_str(), load_and_prepare, argv[i], 2)
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
