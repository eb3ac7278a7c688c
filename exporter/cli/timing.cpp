#include "taper/exporter/cli/timing.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

constexpr int warm_up_runs = 3;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// The tensors of an instruction: arguments first, then results.
struct Tensors {
  std::vector<const TensorRef*> arguments, results;
};

Tensors tensors_of(const InstructionInfo& in) {
  Tensors t;
  const index_t n = in.arguments.size(),
                results = in.kernel != nullptr ? in.kernel->result_count : 1;
  for (index_t i = 0; i < n; ++i) {
    const Slot& s = in.arguments[i];
    if (s.kind != Kind::tensor || !s.present) continue;
    std::vector<const TensorRef*>& list = i < n - results ? t.arguments : t.results;
    if (in.kernel != nullptr && in.kernel->expected[i].list) {
      for (uint32_t k = 0; k < s.size; ++k)
        if (s.tensors[k] != nullptr) list.push_back(s.tensors[k]);
    } else {
      list.push_back(s.tensor);
    }
  }
  return t;
}

double numel(const TensorRef* t) { return static_cast<double>(t->shape->numel()); }
double last_extent(const TensorRef* t) {
  return t->shape->rank == 0 ? 1 : static_cast<double>(t->shape->sizes[t->shape->rank - 1]);
}

// Two operations for each of `outputs` elements and each weight that contributes to it. The weight
// is (out or in channels, …).
double convolution_operations(double outputs, const TensorRef* weight) {
  return weight->shape->sizes[0] == 0
             ? 0
             : 2 * outputs * numel(weight) / static_cast<double>(weight->shape->sizes[0]);
}

double operations_of(std::string_view op, const Tensors& t) {
  if (t.results.empty()) return 0;
  const auto product = [&](size_t left) {
    return t.arguments.size() > left ? 2 * numel(t.results[0]) * last_extent(t.arguments[left]) : 0;
  };
  if (op == "mm" || op == "bmm" || op == "linear" || op == "matmul" || op == "mv" || op == "dot")
    return product(0);
  if (op == "addmm" || op == "baddbmm" || op == "addmv") return product(1);
  if (op == "convolution" && t.arguments.size() >= 2) {
    // a transposed convolution multiplies each input with its weights: weight (in channels, …)
    const bool transposed = t.arguments[0]->shape->rank > 1 &&
                            t.arguments[1]->shape->sizes[0] == t.arguments[0]->shape->sizes[1] &&
                            t.arguments[1]->shape->sizes[0] != t.results[0]->shape->sizes[1];
    return convolution_operations(numel(transposed ? t.arguments[0] : t.results[0]),
                                  t.arguments[1]);
  }
  // for Winograd's algorithm the operations of the convolution, of which it needs fewer
  if ((op == "taper::convolution" || op == "taper::winograd_convolution") &&
      t.arguments.size() >= 2)
    return convolution_operations(numel(t.results[0]), t.arguments[1]);
  // (grad_output, input, weight) -> gradients of input and weight. Each is as much work as the
  // forward pass; the gradient of the bias is little work.
  if (op == "convolution_backward" && t.arguments.size() >= 3) {
    const auto products =
        std::ranges::count_if(t.results, [](const TensorRef* r) { return r->shape->rank > 1; });
    return static_cast<double>(products) *
           convolution_operations(numel(t.arguments[0]), t.arguments[2]);
  }
  return 0;
}

std::string types_text(const Tensors& t) {
  std::vector<std::string> arguments, results;
  for (const TensorRef* a : t.arguments) arguments.push_back(type_text(*a));
  for (const TensorRef* r : t.results) results.push_back(type_text(*r));
  return io::joined(arguments, " ") + " -> " + io::joined(results, " ");
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

std::string type_text(const TensorRef& t) {
  std::vector<std::string> sizes;
  for (int i = 0; i < t.shape->rank; ++i) sizes.push_back(std::to_string(t.shape->sizes[i]));
  return std::string(name_of(t.dtype)) + "[" + io::joined(sizes) + "]";
}

Work work_of(const InstructionInfo& instruction) {
  const Tensors t = tensors_of(instruction);
  Work work;
  work.operations = operations_of(instruction.op, t);
  for (const auto* list : {&t.arguments, &t.results})
    for (const TensorRef* tensor : *list) work.bytes += static_cast<double>(tensor->size_bytes());
  return work;
}

Timing time_method(RunningMethod& running, int runs) {
  Method& method = running.method();
  for (int i = 0; i < warm_up_runs; ++i) running.execute();

  const size_t count = static_cast<size_t>(method.instruction_count());
  Timing timing;
  timing.runs = runs;
  std::vector<ProfileEvent> events(4 * count + 64);  // a loop executes an instruction several times
  std::vector<std::vector<double>> times(count);
  std::vector<double> totals;
  Profiler profiler;
  profiler.events = events;
  profiler.now = now_ns;
  method.set_profiler(&profiler);
  for (int run = 0; run < runs; ++run) {
    profiler.count = 0;
    const uint64_t begin = now_ns();
    running.execute();
    totals.push_back(static_cast<double>(now_ns() - begin) / 1000);
    std::vector<double> sums(count, 0);
    for (index_t e = 0; e < profiler.count; ++e) {
      sums[events[static_cast<size_t>(e)].instruction] +=
          static_cast<double>(events[static_cast<size_t>(e)].end -
                              events[static_cast<size_t>(e)].begin) /
          1000;
      timing.events.push_back(events[static_cast<size_t>(e)]);
    }
    for (size_t i = 0; i < count; ++i) times[i].push_back(sums[i]);
  }
  method.set_profiler(nullptr);
  if (timing.events.empty() && count > 0)
    throw ExportError(
        "this build of the runtime cannot profile; configure it with -DTAPER_PROFILE=ON");

  timing.median_us = median(totals);
  for (size_t i = 0; i < count; ++i) {
    const InstructionInfo in = method.instruction(static_cast<index_t>(i));
    timing.instructions.push_back({in.op, in.kernel != nullptr ? in.kernel->name : "",
                                   types_text(tensors_of(in)), text_of(in.source),
                                   text_of(in.module), median(times[i]), work_of(in)});
  }
  return timing;
}

}  // namespace taper::cli
