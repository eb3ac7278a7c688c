// The device side of the backend "mine": it verifies blobs and runs them.
//
// A blob is a list of u32, in the machine's order: the numbers of operands, constants, nodes and
// results; then a Node for each node; then the value of each result. Values are counted: first the
// operands, then the constants, then the results of the nodes. All have the same sizes.
#pragma once
#include <algorithm>
#include <cstring>
#include <new>

#include "taper/runtime/device/backend.h"

namespace mine {

using namespace taper;

enum Operation : uint32_t { add = 0, mul = 1 };

struct Node {
  uint32_t operation, left, right;
};
struct Header {
  uint32_t operands, constants, nodes, results;

  uint32_t inputs() const { return operands + constants; }
  const Node& node(uint32_t i) const { return reinterpret_cast<const Node*>(this + 1)[i]; }
  uint32_t result(uint32_t i) const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const Node*>(this + 1) + nodes)[i];
  }
};

class MyBackend final : public Backend {
 public:
  const char* name() const override { return "mine"; }
  bool reads(uint32_t version) const override { return version == 1; }

  Error load(Span<const std::byte> blob, Context& context, void*& loaded) override {
    const auto* header = reinterpret_cast<const Header*>(blob.data());
    if (!is_valid(*header, static_cast<uint64_t>(blob.size())))
      return context.fail(Error::invalid_program, TAPER_TEXT("the blob is damaged"));
    loaded = const_cast<Header*>(header);
    return Error::ok;
  }
  void unload(void*) override {}

  size_t instance_bytes(const void*) const override { return sizeof(Instance); }
  Error create(void* loaded, void* memory, const DelegateArguments& arguments,
               Context& context) override {
    const Header& header = *static_cast<const Header*>(loaded);
    bool fits = arguments.operands.size() == header.operands &&
                arguments.constants.size() == header.constants &&
                arguments.results.size() == header.results;
    for (const auto& list : {arguments.operands, arguments.constants})
      for (const Slot& slot : list) fits = fits && slot.tensor->dtype == DType::f32;
    if (!fits)
      return context.fail(Error::invalid_program, TAPER_TEXT("the blob has other arguments"));
    new (memory) Instance{&header, {}};
    return Error::ok;
  }
  void release(void*) override {}

  Error reshape(void* memory, const DelegateArguments& arguments, Context& context) override {
    Instance& instance = *static_cast<Instance*>(memory);
    instance.shape = *arguments.operands[0].tensor->shape;
    for (const auto& list : {arguments.operands, arguments.constants})
      for (const Slot& slot : list)
        if (!slot.tensor->shape->same_sizes(instance.shape))
          return context.fail(Error::invalid_program, TAPER_TEXT("the sizes differ"));
    context.need_scratch(instance.header->nodes * sizeof(Block));
    return Error::ok;
  }
  void result(const void* memory, index_t, DType& dtype, Shape& shape) const override {
    dtype = DType::f32;
    shape = static_cast<const Instance*>(memory)->shape;
  }

  // Results of nodes lie in scratch, a block of each at a time.
  Error execute(void* memory, const Slot* arguments, Context& context) override {
    const Instance& instance = *static_cast<const Instance*>(memory);
    const Header& h = *instance.header;
    Block* const blocks = static_cast<Block*>(context.scratch);
    const index_t numel = instance.shape.numel();
    for (index_t begin = 0; begin < numel; begin += block_size) {
      const index_t count = std::min(numel - begin, block_size);
      const auto value = [&](uint32_t i) -> const float* {
        if (i >= h.inputs()) return blocks[i - h.inputs()];
        return static_cast<const float*>(arguments[i].tensor->data) + begin;
      };
      for (uint32_t n = 0; n < h.nodes; ++n)
        run(h.node(n).operation, value(h.node(n).left), value(h.node(n).right), blocks[n], count);
      for (uint32_t r = 0; r < h.results; ++r)
        std::copy_n(value(h.result(r)), count,
                    static_cast<float*>(arguments[h.inputs() + r].tensor->data) + begin);
    }
    return Error::ok;
  }

 private:
  static constexpr index_t block_size = 256;
  using Block = float[block_size];
  struct Instance {
    const Header* header;
    Shape shape;
  };

  static bool is_valid(const Header& h, uint64_t bytes) {
    if (bytes < sizeof h || h.operands == 0 || h.operands > bytes || h.constants > bytes ||
        h.nodes > bytes || h.results > bytes)
      return false;
    if (bytes != sizeof h + h.nodes * sizeof(Node) + h.results * sizeof(uint32_t)) return false;
    for (uint32_t n = 0; n < h.nodes; ++n) {
      const Node& node = h.node(n);
      const uint32_t known = h.inputs() + n;
      if (node.operation > mul || node.left >= known || node.right >= known) return false;
    }
    for (uint32_t r = 0; r < h.results; ++r)
      if (h.result(r) >= h.inputs() + h.nodes) return false;
    return true;
  }

  static void run(uint32_t operation, const float* a, const float* b, float* out, index_t count) {
    for (index_t i = 0; i < count; ++i) out[i] = operation == add ? a[i] + b[i] : a[i] * b[i];
  }
};

}  // namespace mine
