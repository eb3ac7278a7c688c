#include "taper/exporter/cli/work.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "taper/exporter/cli/recency.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

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

// (query, key, value): each row of the query meets each row of the key, and each result each row of
// the value. A causal mask would halve that; it is counted whole.
double attention_operations(const Tensors& t) {
  if (t.arguments.size() < 3 || t.arguments[1]->shape->rank < 2) return 0;
  const Shape& key = *t.arguments[1]->shape;
  return 2 * static_cast<double>(key.sizes[key.rank - 2]) *
         (numel(t.arguments[0]) + numel(t.results[0]));
}

double operations_of(std::string_view op, const Tensors& t) {
  if (t.results.empty()) return 0;
  const auto product = [&](size_t left) {
    return t.arguments.size() > left ? 2 * numel(t.results[0]) * last_extent(t.arguments[left]) : 0;
  };
  if (op == "mm" || op == "bmm" || op == "linear" || op == "matmul" || op == "mv" || op == "dot" ||
      op == "_int_mm" || op == "_grouped_mm" || op == "taper::block_linear" ||
      op == "taper::block_linear_q8")
    return product(0);
  if (op == "addmm" || op == "baddbmm" || op == "addmv") return product(1);
  if (op == "scaled_dot_product_attention" || op == "taper::attention" ||
      op == "_scaled_dot_product_flash_attention_for_cpu")
    return attention_operations(t);
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
  // a vector of weights in panels has four neighbours along the depth
  if ((op == "taper::conv2d_q8" || op == "taper::linear_q8") && t.arguments.size() >= 2)
    return 2 * numel(t.results[0]) * 4 * static_cast<double>(t.arguments[1]->shape->sizes[1]);
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

// Operators that read a few rows of their first argument.
bool looks_up(std::string_view op) {
  return op == "embedding" || op == "_embedding_bag" || op == "index.Tensor" ||
         op == "index_select" || op == "gather" || op == "taper::block_embedding";
}

// A tensor in memory, in the order in which an instruction touches them.
struct Touch {
  const void* data;
  double bytes;
  bool is_written;
};

std::vector<Touch> touches_of(const InstructionInfo& in) {
  const Tensors t = tensors_of(in);
  // as they are stored; panels have a few zeros more
  const auto bytes_of = [](const TensorRef* tensor) {
    return static_cast<double>(
        stored_bytes(static_cast<size_t>(tensor->size_bytes()), tensor->layout));
  };
  std::vector<Touch> touches;
  for (const TensorRef* a : t.arguments) touches.push_back({a->data, bytes_of(a), false});
  double written = 0;
  for (const TensorRef* r : t.results) {
    touches.push_back({r->data, bytes_of(r), true});
    written += touches.back().bytes;
  }
  if (looks_up(in.op) && !t.arguments.empty())
    touches[0].bytes = std::min(touches[0].bytes, written);
  return touches;
}

}  // namespace

std::string type_text(const TensorRef& t) {
  std::vector<std::string> sizes;
  for (int i = 0; i < t.shape->rank; ++i) sizes.push_back(std::to_string(t.shape->sizes[i]));
  return std::string(name_of(t.dtype)) + "[" + io::joined(sizes) + "]";
}

std::string types_text(const InstructionInfo& instruction) {
  const Tensors t = tensors_of(instruction);
  std::vector<std::string> arguments, results;
  for (const TensorRef* a : t.arguments) arguments.push_back(type_text(*a));
  for (const TensorRef* r : t.results) results.push_back(type_text(*r));
  return io::joined(arguments, " ") + " -> " + io::joined(results, " ");
}

std::vector<roofline::Work> works_of(const Method& method) {
  std::vector<roofline::Work> works;
  std::vector<std::vector<Touch>> touches;
  size_t pages = 0;
  for (index_t i = 0; i < method.instruction_count(); ++i) {
    const InstructionInfo in = method.instruction(i);
    works.push_back({operations_of(in.op, tensors_of(in)), {}});
    touches.push_back(touches_of(in));
    for (const Touch& t : touches.back()) pages += Recency::pages(t.data, t.bytes);
  }
  // in the second run, all memory was touched before
  Recency recency(2 * pages);
  for (const auto& list : touches)
    for (const Touch& t : list) recency.touch(t.data, t.bytes);
  for (size_t i = 0; i < works.size(); ++i)
    for (const Touch& t : touches[i])
      works[i].operands.push_back({t.bytes, t.is_written, recency.touch(t.data, t.bytes)});
  return works;
}

}  // namespace taper::cli
