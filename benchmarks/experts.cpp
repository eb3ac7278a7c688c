// The product of a mixture of experts, `_grouped_mm`: the kernel, XNNPACK with an operator for each
// expert, and what a graph of fixed sizes could do, in which all experts multiply all tokens.
//
//   experts [--threads N]     prints a line for each case: the least milliseconds of each
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "taper/delegates/xnnpack/app/backend.h"
#include "taper/delegates/xnnpack/compile/delegate.h"
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;
using eager::Tensor;

namespace {

struct Case {
  int64_t experts, chosen, inputs, outputs, tokens;
  int64_t rows() const { return tokens * chosen; }
};

std::vector<float> random_numbers(int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<float> list(static_cast<size_t>(count));
  for (float& e : list) e = numbers(random);
  return list;
}

/// Where the rows of each expert end, if each token chooses any of them.
std::vector<int64_t> random_ends(const Case& c) {
  std::mt19937 random(2);
  std::vector<int64_t> ends(static_cast<size_t>(c.experts)), all(ends.size());
  std::iota(all.begin(), all.end(), 0);
  for (int64_t t = 0; t < c.tokens; ++t) {
    std::shuffle(all.begin(), all.end(), random);
    for (int64_t i = 0; i < c.chosen; ++i) ++ends[static_cast<size_t>(all[static_cast<size_t>(i)])];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return ends;
}

/// A program that keeps its file, and the least time of its calls.
class Runner {
 public:
  template <class F>
  Runner(F&& function, std::vector<InputSpec> inputs, const char* backend, const Threads* threads) {
    Exporter exporter;
    exporter.method("forward", function, std::move(inputs));
    ExportOptions options;
    options.exact = false, options.backend = backend;
    file_ = exporter.write(options);
    ModuleOptions load;
    load.backends = {&delegates::xnnpack::backend()}, load.threads = threads;
    module_.emplace(Module::load(file_, load).value());
    method_.emplace(module_->method("forward").value());
  }
  Method& method() { return *method_; }
  void run() {
    const auto begin = std::chrono::steady_clock::now();
    if (method_->execute() != Error::ok) std::abort();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    least_ = std::min(least_, time.count());
  }
  double least() const { return least_; }

 private:
  std::vector<std::byte> file_;
  std::optional<Module> module_;
  std::optional<Method> method_;
  double least_ = 1e30;
};

void measure(const Case& c, const Threads* threads) {
  const Tensor matrices = Tensor::from<float>(random_numbers(c.experts * c.inputs * c.outputs),
                                              {c.experts, c.inputs, c.outputs});
  const auto product = [&](const Tensor& x, const Tensor& ends) {
    return eager::grouped_mm(x, matrices, ends);
  };
  const Tensor all =
      eager::reshape(eager::permute(matrices, {0, 2, 1}), {c.experts * c.outputs, c.inputs});
  const auto of_all = [&](const Tensor& x) { return eager::linear(x, all); };
  const std::vector<InputSpec> inputs{input("x", {c.rows(), c.inputs}),
                                      input("ends", {c.experts}, DType::i64)};
  Runner kernel(product, inputs, "", threads), parts(product, inputs, "xnnpack", threads),
      graph(of_all, {input("x", {c.tokens, c.inputs})}, "xnnpack", threads);
  const std::vector<float> x = random_numbers(c.rows() * c.inputs);
  const std::vector<int64_t> ends = random_ends(c);
  const auto columns = static_cast<index_t>(c.inputs);
  for (Runner* r : {&kernel, &parts})
    if (r->method().set_input(0, x.data(), {static_cast<index_t>(c.rows()), columns}) !=
            Error::ok ||
        r->method().set_input(1, ends.data(), {static_cast<index_t>(c.experts)}) != Error::ok)
      std::abort();
  if (graph.method().set_input(0, x.data(), {static_cast<index_t>(c.tokens), columns}) != Error::ok)
    std::abort();
  for (int64_t i = 0; i < std::max<int64_t>(12, 300 / c.tokens); ++i)
    kernel.run(), parts.run(), graph.run();
  std::printf(
      "%3lld of %3lld experts (%lld, %lld), %3lld tokens: kernel %7.3f, XNNPACK %7.3f, a graph "
      "%7.3f\n",
      static_cast<long long>(c.chosen), static_cast<long long>(c.experts),
      static_cast<long long>(c.inputs), static_cast<long long>(c.outputs),
      static_cast<long long>(c.tokens), kernel.least(), parts.least(), graph.least());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  static const delegates::xnnpack::XnnpackDelegate delegate(&delegates::xnnpack::backend());
  partition::hand_in(delegate);
  const bool has_threads = argc == 3 && std::strcmp(argv[1], "--threads") == 0;
  if (argc > 1 && !has_threads) return std::fprintf(stderr, "usage: experts [--threads N]\n"), 2;
  const ThreadPool pool(has_threads ? std::max(1, std::atoi(argv[2])) : 1);
  for (const Case& c : {Case{8, 2, 1024, 1792, 1},
                        {8, 2, 1024, 1792, 16},
                        {8, 2, 1024, 1792, 128},
                        {64, 8, 1024, 512, 1},
                        {64, 8, 1024, 512, 16},
                        {64, 8, 1024, 512, 128}})
    measure(c, has_threads ? pool.threads() : nullptr);
}
