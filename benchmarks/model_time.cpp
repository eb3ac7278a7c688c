// The time of a whole model, asked for a slice at a time: how peers/models.py takes turns with it.
//
//   model_time PROGRAM.taper THREADS OUTPUT INPUT...
//                                 runs `forward` once on the inputs, and writes its first output.
//                                 All of them are files of plain dense elements. Prints a line of
//                                 JSON: the time from before the load to behind the call, and the
//                                 most memory that was resident then beyond that before. Then reads
//                                 lines "seconds" and answers each with a line of JSON: the times
//                                 of calls in these seconds.
//   model_time --peak THREADS     prints what the machine can do now: multiply-adds in registers,
//                                 and reads of memory
//
// Between two lines the program sleeps.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#ifdef TAPER_WITH_XNNPACK
#include "taper/delegates/xnnpack/app/backend.h"
#endif
#include "taper/exporter/roofline/roofline.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "model_time: %s\n", what.c_str());
  std::exit(1);
}

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// A line of /proc/self/status in MB: "VmRSS:" now, "VmHWM:" the most since `forget_peak`.
double resident_mb(const std::string& line) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == line && file >> word) return std::stod(word) * 1024e-6;
  return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

void print_peak(int threads) {
  const ThreadPool pool(threads);
  const roofline::Peaks peaks = roofline::measure_peaks(pool.threads());
  std::printf("{\"gflops\": %.1f, \"gbps\": %.1f}\n", peaks.gflops,
              peaks.bandwidths.back().read_gbps);
}

// ---- a model ----

class Model {
 public:
  Model(const std::string& path, int threads, const std::vector<std::string>& inputs)
      : pool_(threads),
        module_(load(path, threads > 1 ? pool_.threads() : nullptr)),
        method_(forward(module_)) {
    if (static_cast<size_t>(method_.input_count()) != inputs.size())
      fail(path + " takes " + std::to_string(method_.input_count()) + " inputs");
    for (index_t i = 0; i < method_.input_count(); ++i) read(i, inputs[static_cast<size_t>(i)]);
  }

  void run() {
    if (method_.execute() != Error::ok) fail("the call failed");
  }

  void write_output(const std::string& path) const {
    const TensorRef t = method_.output(0);
    if (t.shape == nullptr || !t.shape->is_dense()) fail("the first output is not dense");
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(t.data), static_cast<std::streamsize>(t.size_bytes()));
    if (!file) fail(path + " cannot be written");
  }

 private:
  static Module load(const std::string& path, const Threads* threads) {
    std::string why;
    ModuleOptions options;
    options.threads = threads, options.message = &why;
#ifdef TAPER_WITH_XNNPACK
    options.backends = {&delegates::xnnpack::backend()};
#endif
    Result<Module> loaded = Module::load(path, options);
    if (!loaded.ok()) fail(why);
    return std::move(loaded).value();
  }

  static Method forward(Module& module) {
    const Result<Method> created = module.method("forward");
    if (!created.ok()) fail(module.message());
    return created.value();
  }

  /// Input `i` lies in the method's memory and stays there from call to call.
  void read(index_t i, const std::string& path) {
    const TensorRef t = method_.input(i);
    if (t.shape == nullptr) fail("an input is a number");
    std::ifstream file(path, std::ios::binary);
    if (!file.read(static_cast<char*>(t.data), static_cast<std::streamsize>(t.size_bytes())) ||
        file.peek() != std::ifstream::traits_type::eof())
      fail(path + " does not have " + std::to_string(t.size_bytes()) + " bytes");
  }

  ThreadPool pool_;
  Module module_;
  Method method_;
};

/// Calls for about so long, at least one.
void print_slice(Model& model, double seconds) {
  std::vector<double> times;
  for (double spent = 0; spent < 1e3 * seconds || times.empty(); spent += times.back())
    times.push_back(milliseconds([&] { model.run(); }));
  std::sort(times.begin(), times.end());
  std::printf("{\"best_ms\": %.6f, \"median_ms\": %.6f, \"calls\": %zu}\n", times.front(),
              times[times.size() / 2], times.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const bool peak = args.size() == 2 && args[0] == "--peak";
  const int threads = args.size() < 2 ? 0 : std::atoi(args[1].c_str());
  if ((!peak && args.size() < 4) || threads < 1 || threads > max_threads)
    return std::fprintf(stderr,
                        "usage: model_time PROGRAM THREADS OUTPUT INPUT...\n"
                        "       model_time --peak THREADS\n"),
           2;
  if (peak) return print_peak(threads), 0;

  forget_peak();
  const double before = resident_mb("VmRSS:");
  std::optional<Model> model;
  const double start = milliseconds([&] {
    model.emplace(args[0], threads, std::vector<std::string>(args.begin() + 3, args.end()));
    model->run();
  });
  std::printf("{\"start_ms\": %.3f, \"peak_mb\": %.2f}\n", start, resident_mb("VmHWM:") - before);
  model->write_output(args[2]);
  std::fflush(stdout);
  for (double seconds; std::cin >> seconds; std::fflush(stdout)) print_slice(*model, seconds);
  return 0;
}
