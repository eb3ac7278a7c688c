// Operators through the device kernels, the way eager calls them without a tape: the calls of
// operators.json at 1 and 2 threads. Beside each time stands a roof of the same run: the
// processor's peak of multiply-adds for products, otherwise a copy by as many threads that reads
// and writes as many bytes as the operator does, so that it meets the same caches.
//
//   operators [operators.json]          a name begins with the line's number:
//                                       --benchmark_filter=^0007/
//   operators --serve [operators.json]  reads lines "number threads seconds" and answers each with
//   a
//                                       line of JSON: how peers/operators.py takes turns with it
//   operators --check [operators.json]  whether every operator that has a kernel has a call
//
// `best_ns` is the least of many short samples: what the code can do on a machine that others use.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <optional>

#include "taper/benchmarks/operator_cases.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/roofline/roofline.h"

using namespace taper;

namespace {

constexpr double sample_ns = 20000;  // shorter calls are timed several at a time

double nanoseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

/// The least time of one call, and calls in one sample.
double best_of(int samples, const std::function<void()>& work, int& calls) {
  work();
  calls = static_cast<int>(std::max(1.0, sample_ns / nanoseconds(work)));
  double best = 1e30;
  for (int i = 0; i < samples; ++i)
    best = std::min(best, nanoseconds([&] {
                            for (int k = 0; k < calls; ++k) work();
                          }) / calls);
  return best;
}

/// Bytes a nanosecond, read and written, of a copy that touches `bytes` bytes.
double copy_rate(double bytes) {
  const size_t half = std::max<size_t>(static_cast<size_t>(bytes / 2), 64);
  using Buffer = std::unique_ptr<char, decltype(&std::free)>;
  const Buffer from(static_cast<char*>(std::malloc(half)), &std::free),
      to(static_cast<char*>(std::malloc(half)), &std::free);
  std::memset(from.get(), 1, half), std::memset(to.get(), 1, half);
  const index_t parts = half < (1 << 16) || !eager::threads() ? 1 : eager::threads()->count;
  const auto size = static_cast<index_t>(half);
  int calls;
  const double time = best_of(
      20,
      [&] {
        parallel_for(eager::threads(), parts, [&](index_t i) {
          const index_t begin = size * i / parts, end = size * (i + 1) / parts;
          std::memcpy(to.get() + begin, from.get() + begin, static_cast<size_t>(end - begin));
        });
        benchmark::ClobberMemory();
      },
      calls);
  return 2 * static_cast<double>(size) / time;
}

/// The roofs of this run. A measurement is a good while's copying: each is made once.
class Roofs {
 public:
  double copy(double bytes, int threads) {
    return once({threads, bytes}, [&] { return copy_rate(bytes); });
  }
  double peak(int threads) {
    return once({threads, -1}, [] { return roofline::measure_gflops(eager::threads()); });
  }

 private:
  double once(std::pair<int, double> key, const std::function<double()>& measure) {
    const auto [at, is_new] = found_.try_emplace(key, 0.0);
    if (is_new) at->second = measure();
    return at->second;
  }
  std::map<std::pair<int, double>, double> found_;
};

/// What is told of a call besides its time.
std::map<std::string, double> figures(const OperatorCase& c,
                                      const std::vector<eager::Tensor>& results, double best,
                                      int threads, Roofs& roofs) {
  const double flops = c.flops(results), bytes = c.bytes(results);
  std::map<std::string, double> f = {{"best_ns", best},
                                     {"ns_per_element", best / c.elements(results[0])},
                                     {"flops", flops},
                                     {"bytes", bytes}};
  if (flops > 0) {
    f["GFLOPS"] = flops / best;
    f["share"] = flops / best / roofs.peak(threads);
  } else {
    f["GBps"] = bytes / best;
    f["share"] = bytes / best / roofs.copy(bytes, threads);
  }
  return f;
}

void run(benchmark::State& state, const OperatorCases& cases, size_t index, int threads,
         Roofs& roofs) {
  eager::set_threads(threads);
  eager::NoGrad guard;
  std::optional<OperatorCase> c;
  std::vector<eager::Tensor> results;
  try {
    c = cases.make(index);
    results = c->run();
  } catch (const std::exception& e) {
    state.SkipWithError(e.what());
    return;
  }
  int calls;
  best_of(
      1, [&] { c->run(); }, calls);
  std::vector<double> times;
  for (auto _ : state) {
    const double time = nanoseconds([&] {
      for (int k = 0; k < calls; ++k) c->run();
    });
    state.SetIterationTime(time * 1e-9);
    times.push_back(time / calls);
  }
  std::sort(times.begin(), times.end());
  for (const auto& [name, value] : figures(*c, results, times.front(), threads, roofs))
    state.counters[name] = value;
  state.counters["median_ns"] = times[times.size() / 2];
}

/// Answers one line of `--serve`. The last call asked for is kept: others ask for it again.
class Server {
 public:
  explicit Server(const OperatorCases& cases) : cases_(cases) {}

  golden::Json answer(size_t index, int threads, double seconds) try {
    eager::set_threads(threads);
    eager::NoGrad guard;
    if (!case_ || index != index_) {
      case_.reset();
      case_ = cases_.make(index);
      index_ = index;
    }
    const std::vector<eager::Tensor> results = case_->run();
    int calls;
    double best = best_of(
        1, [&] { case_->run(); }, calls);
    for (double spent = 0; spent < seconds * 1e9;) {
      const double time = nanoseconds([&] {
        for (int k = 0; k < calls; ++k) case_->run();
      });
      best = std::min(best, time / calls);
      spent += time;
    }
    return figures(*case_, results, best, threads, roofs_);
  } catch (const std::exception& e) {
    return {{"error", e.what()}};
  }

 private:
  const OperatorCases& cases_;
  Roofs roofs_;
  std::optional<OperatorCase> case_;
  size_t index_ = 0;
};

int serve(const OperatorCases& cases) {
  Server server(cases);
  size_t index;
  int threads;
  double seconds;
  while (std::cin >> index >> threads >> seconds)
    std::cout << server.answer(index, threads, seconds).dump() << std::endl;
  return 0;
}

/// Every operator with a kernel must have a call, or stand in `without` with a reason. 1 if not.
int check(const OperatorCases& cases) {
  int faults = 0;
  std::map<std::string, std::string> without = cases.without();
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    const std::string name(info->name);
    const bool has_kernel = !info->kernels.empty() || info->op->category == Category::kernel;
    if (without.erase(name) > 0) {
      if (cases.has(name)) std::cerr << name << " has a call and a reason to have none\n", ++faults;
    } else if (has_kernel && !cases.has(name)) {
      std::cerr << name << " has no call in operators.json\n", ++faults;
    }
  }
  for (const auto& [name, reason] : without)
    std::cerr << name << " of `without` is no operator\n", ++faults;
  return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  const std::string mode = argc > 1 && std::strncmp(argv[1], "--", 2) == 0 ? argv[1] : "";
  const int file = mode.empty() ? 1 : 2;
  const OperatorCases cases(argc > file ? argv[file] : TAPER_OPERATOR_CASES);
  if (mode == "--serve") return serve(cases);
  if (mode == "--check") return check(cases);
  if (!mode.empty()) throw std::runtime_error("there is no option " + mode);
  Roofs roofs;
  for (size_t i = 0; i < cases.count(); ++i)
    for (const int threads : {1, 2}) {
      const std::string number = std::to_string(10000 + i).substr(1);
      benchmark::RegisterBenchmark(
          (number + "/" + std::to_string(threads) + "/" + cases.name(i)).c_str(),
          [&, i, threads](benchmark::State& state) { run(state, cases, i, threads, roofs); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  benchmark::RunSpecifiedBenchmarks();
} catch (const std::exception& e) {
  std::cerr << "operators: " << e.what() << "\n";
  return 1;
}
