#include "taper/delegates/xnnpack/runtime/node_times.h"

#include <cstring>

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

// The only node that reads the value; -1: there are others, or it is a result of the part.
index_t only_reader(const Part& part, index_t value) {
  index_t reader = -1;
  for (index_t r = 0; r < part.results(); ++r)
    if (part.result(r) == value) return -1;
  for (index_t i = 0; i < part.nodes(); ++i)
    for (const uint32_t input : part.node(i).inputs) {
      if (static_cast<index_t>(input) != value) continue;
      if (reader >= 0) return -1;
      reader = i;
    }
  return reader;
}

bool is_clamp(const NodeView& n) {
  return n.kind == blob::Kind::unary && n.function == blob::Function::clamp;
}
bool has_bounds(const NodeView& n) {
  switch (n.kind) {
    case blob::Kind::convolution:
    case blob::Kind::depthwise:
    case blob::Kind::deconvolution:
    case blob::Kind::fully_connected:
    case blob::Kind::max_pool:
    case blob::Kind::average_pool:
      return true;
    default:
      return is_clamp(n);
  }
}

// Whether the library makes the node a part of another one, as xnn_subgraph_fusion does: clamps of
// the node before them, and zeros around images of the convolution behind them.
bool is_fused(const Part& part, index_t i) {
  const NodeView n = part.node(i);
  const index_t input = static_cast<index_t>(n.inputs[0]);
  if (is_clamp(n))
    return input >= part.inputs() && has_bounds(part.node(input - part.inputs())) &&
           only_reader(part, input) == i;
  if (n.kind != blob::Kind::pad || n.numbers.size() != 8 || n.parameters[0] != 0) return false;
  for (const int place : {0, 3, 4, 7})  // batches and channels
    if (n.numbers[place] != 0) return false;
  const index_t reader = only_reader(part, part.inputs() + i);
  if (reader < 0) return false;
  const blob::Kind kind = part.node(reader).kind;
  return kind == blob::Kind::convolution || kind == blob::Kind::depthwise;
}

}  // namespace

void tell_node_times(xnn_runtime_t runtime, const Part& part, Memory& memory,
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
  size_t expected = 0;
  for (index_t i = 0; i < part.nodes(); ++i) expected += is_fused(part, i) ? 0 : 1;
  const char* name = names.as<char>();
  index_t node = 0;
  for (size_t i = 0; i < count; ++i, ++node, name += std::strlen(name) + 1) {
    while (node < part.nodes() && is_fused(part, node)) ++node;
    const bool is_known = expected == count && node < part.nodes();
    nodes.as<NodeObserver::Node>()[i] = {name, is_known ? part.node(node).source : "",
                                         times.as<uint64_t>()[i]};
  }
  observer.ran(nodes.as<NodeObserver::Node>(), count);
}

}  // namespace taper::delegates::xnnpack
