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
  const NodeSet fused = fused_nodes(part);
  size_t expected = 0;
  for (index_t i = 0; i < part.nodes(); ++i) expected += fused.has(i) ? 0 : 1;
  const char* name = names.as<char>();
  index_t node = 0;
  for (size_t i = 0; i < count; ++i, ++node, name += std::strlen(name) + 1) {
    while (node < part.nodes() && fused.has(node)) ++node;
    const bool is_known = expected == count && node < part.nodes();
    nodes.as<NodeObserver::Node>()[i] = {name, is_known ? part.node(node).source : "",
                                         times.as<uint64_t>()[i]};
  }
  observer.ran(nodes.as<NodeObserver::Node>(), count);
}

}  // namespace taper::delegates::xnnpack
