// What packing weights once is worth: whole programs with packed weights and with dense ones, in
// turns, and whether the results have the same bits. One thread, processor times.
//
//   packing mobilenet_v2.taper bert.taper
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/module.h"

using namespace taper;

namespace {

// Of the processor, for one thread: what other programs do at the same time does not count.
double milliseconds() {
  return 1e3 * static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "packing: %s\n", what.c_str());
  std::exit(1);
}

struct Loaded {
  std::optional<Module> module;
  std::optional<Method> method;
  double load;  ///< milliseconds
  std::vector<double> times;

  Loaded(const std::string& path, PackWeights weights) {
    std::string why;
    ModuleOptions options;
    options.pack_weights = weights, options.message = &why;
    const double begin = milliseconds();
    Result<Module> loaded = Module::load(path, options);
    load = milliseconds() - begin;
    if (!loaded.ok()) fail(why);
    module = std::move(loaded).value();
    const Result<Method> created = module->method("forward");
    if (!created.ok()) fail(module->message());
    method = created.value();
    for (index_t i = 0; i < method->input_count(); ++i) fill(method->input(i));
  }
  void run() {
    const double begin = milliseconds();
    if (method->execute() != Error::ok) fail(method->name());
    times.push_back(milliseconds() - begin);
  }
  double median() {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  // Numbers for floats, zeros for indices.
  static void fill(const TensorRef& t) {
    if (t.shape == nullptr) return;
    std::memset(t.data, 0, static_cast<size_t>(t.size_bytes()));
    if (t.dtype != DType::f32) return;
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    for (index_t i = 0; i < t.shape->numel(); ++i) static_cast<float*>(t.data)[i] = normal(engine);
  }
};

bool same_results(const Method& a, const Method& b) {
  for (index_t i = 0; i < a.output_count(); ++i) {
    const TensorRef x = a.output(i), y = b.output(i);
    if (x.shape != nullptr && std::memcmp(x.data, y.data, static_cast<size_t>(x.size_bytes())) != 0)
      return false;
  }
  return true;
}

bool measure(const char* path) {
  Loaded dense(path, PackWeights::never), packed(path, PackWeights::of_mapped_files);
  const double begin = milliseconds();
  int rounds = 0;
  for (; rounds < 7 || milliseconds() - begin < 6000; ++rounds) dense.run(), packed.run();
  const bool same = same_results(*dense.method, *packed.method);
  const double a = dense.median(), b = packed.median();
  std::printf(
      "%-24s dense %8.2f ms (fastest %8.2f)  packed %8.2f ms (fastest %8.2f)  ratio %.2f (%.2f)  "
      "load %.1f ms, %.1f ms  %s\n",
      path, a, dense.times[0], b, packed.times[0], a / b, dense.times[0] / packed.times[0],
      dense.load, packed.load, same ? "same bits" : "OTHER BITS");
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: packing PROGRAM...\n"), 2;
  bool same = true;
  for (int i = 1; i < argc; ++i) same &= measure(argv[i]);
  return same ? 0 : 1;
}
