// A backend for tests. Its part adds all operands and constants: result = factor * sum.
#pragma once
#include <cstring>
#include <vector>

#include "taper/runtime/device/backend.h"

namespace taper::test {

/// The blob is the factor, one byte. Every call is counted.
class FakeBackend : public Backend {
 public:
  int loaded = 0, unloaded = 0, created = 0, released = 0, reshaped = 0, executed = 0;
  Error create_error = Error::ok, execute_error = Error::ok;
  index_t result_rows = 0;  ///< told instead of the right number, if it is not 0
  const void* threads = nullptr;

  const char* name() const override { return "fake"; }
  bool reads(uint32_t version) const override { return version == 1; }

  Error load(Span<const std::byte> blob, Context& context, void*& made) override {
    if (blob.size() != 1)
      return context.fail(Error::invalid_program, TAPER_TEXT("the blob has {} bytes"), blob.size());
    ++loaded;
    made = const_cast<std::byte*>(blob.data());
    return Error::ok;
  }
  void unload(void*) override { ++unloaded; }

  size_t instance_bytes(const void*) const override { return sizeof(Instance); }
  Error create(void* made, void* memory, const DelegateArguments& arguments,
               Context& context) override {
    if (create_error != Error::ok) return context.fail(create_error, TAPER_TEXT("no instance"));
    ++created;
    threads = context.threads;
    Instance& instance = *new (memory) Instance{};
    instance.factor = static_cast<float>(*static_cast<const uint8_t*>(made));
    instance.inputs = arguments.operands.size() + arguments.constants.size();
    for (const Slot& constant : arguments.constants)
      instance.first_constant = *static_cast<const float*>(constant.tensor->data);
    return Error::ok;
  }
  void release(void*) override { ++released; }

  Error reshape(void* memory, const DelegateArguments& arguments, Context& context) override {
    ++reshaped;
    Instance& instance = *static_cast<Instance*>(memory);
    instance.shape = *arguments.operands[0].tensor->shape;
    if (result_rows != 0) instance.shape.sizes[0] = result_rows;
    context.need_scratch(static_cast<size_t>(instance.shape.numel()) * sizeof(float));
    return Error::ok;
  }
  void result(const void* memory, index_t, DType& dtype, Shape& shape) const override {
    dtype = DType::f32;
    shape = static_cast<const Instance*>(memory)->shape;
  }

  Error execute(void* memory, const Slot* arguments, Context& context) override {
    ++executed;
    if (execute_error != Error::ok) return context.fail(execute_error, TAPER_TEXT("it broke"));
    const Instance& instance = *static_cast<const Instance*>(memory);
    float* sums = static_cast<float*>(context.scratch);
    float* result = static_cast<float*>(arguments[instance.inputs].tensor->data);
    for (index_t i = 0; i < instance.shape.numel(); ++i) {
      sums[i] = 0;
      for (index_t k = 0; k < instance.inputs; ++k)
        sums[i] += static_cast<const float*>(arguments[k].tensor->data)[i];
      result[i] = instance.factor * sums[i];
    }
    return Error::ok;
  }

 private:
  struct Instance {
    float factor, first_constant;
    index_t inputs;
    Shape shape;
  };
};

}  // namespace taper::test
