#include "taper/delegates/xnnpack/runtime/node_times.h"

#include <cstring>

#include "taper/delegates/xnnpack/runtime/clamps.h"

namespace taper::delegates::xnnpack {
namespace {

// A piece of memory that is given back.
class Piece {
 public:
  Piece(Memory& memory, size_t bytes)
      : memory_(memory), bytes_(bytes), data_(memory.allocate(bytes)) {}
  ~Piece() {
    if (data_ != nullptr) memory_.release(data_, bytes_);
  }
  Piece(const Piece&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Memory& memory_;
  size_t bytes_;
  void* data_;
};

size_t bytes_of(xnn_runtime_t runtime, xnn_profile_info what) {
  size_t bytes = 0;
  (void)xnn_get_runtime_profiling_info(runtime, what, 0, nullptr, &bytes);
  return bytes;
}
bool read(xnn_runtime_t runtime, xnn_profile_info what, void* to, size_t bytes) {
  size_t needed = 0;
  return to != nullptr &&
         xnn_get_runtime_profiling_info(runtime, what, bytes, to, &needed) == xnn_status_success;
}

// Whether the library makes the node a part of another one, as xnn_subgraph_fusion does: zeros
// around images of the convolution behind them.
bool is_padding(const Part& part, index_t i) {
  const NodeView n = part.node(i);
  if (n.kind != blob::Kind::pad || n.numbers.size() != 8 || n.parameters[0] != 0) return false;
  for (const int place : {0, 3, 4, 7})  // batches and channels
    if (n.numbers[place] != 0) return false;
  const index_t reader = only_reader(part, part.inputs() + i);
  if (reader < 0) return false;
  const blob::Kind kind = part.node(reader).kind;
  return kind == blob::Kind::convolution || kind == blob::Kind::depthwise;
}

// The nodes that are computed along with another one.
NodeSet fused_nodes(const Part& part) {
  NodeSet fused;
  for (index_t i = 0; i < part.nodes(); ++i) {
    if (is_padding(part, i)) fused.add(i);
    if (!fused.has(i) && has_bounds(part.node(i))) (void)with_clamps(part, i, fused);
  }
  return fused;
}

bool is_operand(const Part& part, uint32_t value) {
  return static_cast<index_t>(value) < part.operands();
}

// What the library reads for this input: padding that became a part of the node reads it.
uint32_t read_by_library(const Part& part, uint32_t input) {
  const index_t before = static_cast<index_t>(input) - part.inputs();
  return input != no_value && before >= 0 && is_padding(part, before) ? part.node(before).inputs[0]
                                                                      : input;
}

bool reads(const Part& part, index_t node, uint32_t value) {
  for (const uint32_t input : part.node(node).inputs)
    if (read_by_library(part, input) == value) return true;
  return false;
}

// In f16, the library rounds an operand before the first node that reads it, and once more for each
// further time that this node does.
size_t conversions_before(const Part& part, const NodeSet& fused, index_t node) {
  size_t count = 0;
  for (const uint32_t input : part.node(node).inputs) {
    const uint32_t value = read_by_library(part, input);
    if (!is_operand(part, value)) continue;
    index_t first = 0;
    while (fused.has(first) || !reads(part, first, value)) ++first;
    count += first == node ? 1 : 0;
  }
  return count;
}

// In f16, a result becomes f32 behind its node.
size_t conversions_behind(const Part& part, index_t node) {
  NodeSet clamps;
  const index_t value = has_bounds(part.node(node))
                            ? static_cast<index_t>(with_clamps(part, node, clamps).result)
                            : part.inputs() + node;
  for (index_t r = 0; r < part.results(); ++r)
    if (part.result(r) == value) return 1;
  return 0;
}

}  // namespace

void tell_node_times(xnn_runtime_t runtime, const Part& part, Precision precision, Memory& memory,
                     NodeObserver& observer) {
  size_t count = 0;
  if (!read(runtime, xnn_profile_info_num_operators, &count, sizeof count) || count == 0) return;
  const size_t name_bytes = bytes_of(runtime, xnn_profile_info_operator_name);
  const Piece names(memory, name_bytes), times(memory, count * sizeof(uint64_t)),
      nodes(memory, count * sizeof(NodeObserver::Node));
  if (nodes.as<void>() == nullptr ||
      !read(runtime, xnn_profile_info_operator_name, names.as<void>(), name_bytes) ||
      !read(runtime, xnn_profile_info_operator_timing, times.as<void>(), count * sizeof(uint64_t)))
    return;
  // "" of operators that are no nodes of the part
  const Piece sources(memory, count * sizeof(const char*));
  if (sources.as<void>() == nullptr) return;
  const char** source = sources.as<const char*>();
  size_t known = 0;
  const auto add = [&](const char* text, size_t copies) {
    for (; copies > 0; --copies, ++known)
      if (known < count) source[known] = text;
  };
  const NodeSet fused = fused_nodes(part);
  const bool converts = precision == Precision::f16;
  for (index_t i = 0; i < part.nodes(); ++i) {
    if (fused.has(i)) continue;
    if (converts) add("", conversions_before(part, fused, i));
    add(part.node(i).source, 1);
    if (converts) add("", conversions_behind(part, i));
  }
  const char* name = names.as<char>();
  for (size_t i = 0; i < count; ++i, name += std::strlen(name) + 1)
    nodes.as<NodeObserver::Node>()[i] = {name, known == count ? source[i] : "",
                                         times.as<uint64_t>()[i]};
  observer.ran(nodes.as<NodeObserver::Node>(), count);
}

}  // namespace taper::delegates::xnnpack
