#include "taper/exporter/cli/work.h"

#include <algorithm>
#include <vector>

#include "taper/exporter/cli/recency.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/roofline/multiply_adds.h"

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

roofline::Call call_of(const InstructionInfo& in) {
  const auto sizes_of = [](const std::vector<const TensorRef*>& tensors) {
    std::vector<roofline::Sizes> sizes;
    for (const TensorRef* t : tensors)
      sizes.emplace_back(t->shape->sizes, t->shape->sizes + t->shape->rank);
    return sizes;
  };
  const Tensors t = tensors_of(in);
  roofline::Call call{in.op, sizes_of(t.arguments), sizes_of(t.results)};
  // the only flag of a convolution
  for (const Slot& s : in.arguments)
    if (s.kind == Kind::boolean && s.present) call.transposed = s.integer != 0;
  return call;
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
  if (roofline::looks_up(in.op) && !t.arguments.empty())
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
    works.push_back({2 * roofline::multiply_adds(call_of(in)), {}});
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
