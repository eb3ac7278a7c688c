// The device side of the backend "mine": it verifies blobs and runs them.
//
// A blob is a list of u32, in the machine's order: the numbers of inputs, nodes and results; then
// the operation and both operands of each node; then the value of each result. Values are counted:
// first operands and constants, which are the inputs, then the results of nodes. All have the same
// sizes.
#pragma once
#include <new>

#include "taper/runtime/device/backend.h"

namespace mine {

using namespace taper;

enum Operation : uint32_t { add = 0, mul = 1 };

struct Blob {
  struct Node {
    uint32_t operation, left, right;
  };
  uint32_t inputs, nodes, results;

  const Node& node(uint32_t i) const { return reinterpret_cast<const Node*>(this + 1)[i]; }
  uint32_t result(uint32_t i) const { return reinterpret_cast<const uint32_t*>(&node(nodes))[i]; }

  bool is_valid(uint64_t bytes) const {
    if (bytes < sizeof(Blob) || inputs == 0 || inputs > bytes || nodes > bytes || results > bytes ||
        bytes != sizeof(Blob) + nodes * sizeof(Node) + results * sizeof(uint32_t))
      return false;
    bool valid = true;
    for (uint32_t n = 0; n < nodes; ++n)
      valid = valid && node(n).operation <= mul && node(n).left < inputs + n &&
              node(n).right < inputs + n;
    for (uint32_t r = 0; r < results; ++r) valid = valid && result(r) < inputs + nodes;
    return valid;
  }
};

class MyBackend final : public Backend {
 public:
  const char* name() const override { return "mine"; }
  bool reads(uint32_t version) const override { return version == 1; }

  Error load(Span<const std::byte> bytes, Context& context, void*& loaded) override {
    loaded = const_cast<std::byte*>(bytes.data());
    if (static_cast<Blob*>(loaded)->is_valid(static_cast<uint64_t>(bytes.size()))) return Error::ok;
    return context.fail(Error::invalid_program, TAPER_TEXT("the blob is damaged"));
  }
  void unload(void*) override {}

  size_t instance_bytes(const void*) const override { return sizeof(Instance); }
  Error create(void* loaded, void* memory, const DelegateArguments& arguments,
               Context& context) override {
    const Blob& blob = *static_cast<const Blob*>(loaded);
    new (memory) Instance{&blob, {}};
    bool fits = arguments.operands.size() + arguments.constants.size() == blob.inputs &&
                arguments.operands.size() > 0 && arguments.results.size() == blob.results;
    for (const auto& list : {arguments.operands, arguments.constants})
      for (const Slot& slot : list) fits = fits && slot.tensor->dtype == DType::f32;
    if (fits) return Error::ok;
    return context.fail(Error::invalid_program, TAPER_TEXT("the blob has other arguments"));
  }
  void release(void*) override {}

  Error reshape(void* memory, const DelegateArguments& arguments, Context& context) override {
    Instance& instance = *static_cast<Instance*>(memory);
    instance.shape = *arguments.operands[0].tensor->shape;
    for (const auto& list : {arguments.operands, arguments.constants})
      for (const Slot& slot : list)
        if (!slot.tensor->shape->same_sizes(instance.shape))
          return context.fail(Error::invalid_program, TAPER_TEXT("the sizes differ"));
    context.need_scratch((size_t{instance.blob->inputs} + instance.blob->nodes) * sizeof(float));
    return Error::ok;
  }
  void result(const void* memory, index_t, DType& dtype, Shape& shape) const override {
    dtype = DType::f32;
    shape = static_cast<const Instance*>(memory)->shape;
  }

  Error execute(void* memory, const Slot* arguments, Context& context) override {
    const Instance& instance = *static_cast<const Instance*>(memory);
    const Blob& blob = *instance.blob;
    auto* values = static_cast<float*>(context.scratch);  // of one element
    const auto elements = [&](uint32_t i) {
      return static_cast<float*>(arguments[i].tensor->data);
    };
    for (index_t i = 0; i < instance.shape.numel(); ++i) {
      for (uint32_t k = 0; k < blob.inputs; ++k) values[k] = elements(k)[i];
      for (uint32_t n = 0; n < blob.nodes; ++n) {
        const float a = values[blob.node(n).left], b = values[blob.node(n).right];
        values[blob.inputs + n] = blob.node(n).operation == add ? a + b : a * b;
      }
      for (uint32_t r = 0; r < blob.results; ++r)
        elements(blob.inputs + r)[i] = values[blob.result(r)];
    }
    return Error::ok;
  }

 private:
  struct Instance {
    const Blob* blob;
    Shape shape;
  };
};

}  // namespace mine
