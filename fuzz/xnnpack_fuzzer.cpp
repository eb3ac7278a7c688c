// Any part, with any sizes of its arguments, is refused or runs, in f32 and in f16.
// xnnpack_parts.cpp makes parts of the bytes.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "taper/delegates/xnnpack/app/backend.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "xnnpack_parts.h"

namespace {

using Words = std::vector<uint64_t>;
using namespace taper;
using namespace taper::delegates::xnnpack;

/// A tensor with elements, and a guard behind them that nobody may change.
struct Tensor {
  Tensor(const Shape& s, DType d) : shape(s), dtype(d) {
    const size_t count = bytes() / sizeof(uint16_t) + guard;
    elements.assign(count, 0x3f3f);  // 0.747 as f32
  }
  size_t bytes() const {
    const size_t size = static_cast<size_t>(shape.numel()) * size_of(dtype);
    return (size + 1) / 2 * 2;
  }
  bool is_intact() const {
    return std::all_of(elements.begin() + static_cast<std::ptrdiff_t>(bytes() / 2), elements.end(),
                       [](uint16_t e) { return e == 0x3f3f; });
  }
  static size_t size_of(DType d) { return static_cast<size_t>(taper::size_bytes(d)); }
  /// Writes integers of the tensor's type, as many as it has.
  void write(const std::vector<int64_t>& integers) {
    auto* to = reinterpret_cast<std::byte*>(elements.data());
    const size_t count = std::min(integers.size(), static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < count; ++i)  // the low bytes come first
      std::memcpy(to + i * size_of(dtype), &integers[i], size_of(dtype));
  }
  static constexpr size_t guard = 64;
  Shape shape;
  DType dtype;
  std::vector<uint16_t> elements;
};

/// Whether a run takes but a moment.
bool is_small(const Part& part, const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes(static_cast<size_t>(part.values()));
  for (size_t i = 0; i < inputs.size(); ++i) shapes[i] = inputs[i].shape;
  if (part.infer(shapes.data()) >= 0) return true;  // it is refused
  return std::all_of(shapes.begin(), shapes.end(),
                     [](const Shape& s) { return s.numel() < 20000; });
}

void run(Backend& backend, void* loaded, const Part& part, std::vector<Tensor>& inputs) {
  ErrorInfo info;
  Context context{nullptr, 0, nullptr, &info};
  const size_t given = inputs.size(), results = static_cast<size_t>(part.results());
  std::vector<Tensor> outputs(results, Tensor(Shape(), DType::f32));
  std::vector<TensorRef> refs(given + results);
  std::vector<Slot> slots(given + results, Slot{});
  for (size_t i = 0; i < given + results; ++i) {
    Tensor& t = i < given ? inputs[i] : outputs[i - given];
    refs[i] = {t.elements.data(), &t.shape, t.dtype, Layout::dense};
    slots[i].tensor = &refs[i];
  }
  const Span<const Slot> all(slots.data(), static_cast<index_t>(slots.size()));
  const DelegateArguments arguments{all.part(0, part.operands()),
                                    all.part(part.operands(), part.constants()),
                                    all.part(part.inputs(), part.results()), &backend};
  Words memory(backend.instance_bytes(loaded) / 8 + 1);
  if (backend.create(loaded, memory.data(), arguments, context) != Error::ok) return;
  if (backend.reshape(memory.data(), arguments, context) == Error::ok) {
    for (size_t r = 0; r < results; ++r) {
      DType dtype = DType::f32;
      Shape shape;
      backend.result(memory.data(), static_cast<index_t>(r), dtype, shape);
      outputs[r] = Tensor(shape, dtype);
      refs[given + r].data = outputs[r].elements.data(), refs[given + r].dtype = dtype;
    }
    static_cast<void>(backend.execute(memory.data(), slots.data(), context));
  }
  for (const auto* list : {&inputs, &outputs})
    for (const Tensor& t : *list)
      if (!t.is_intact()) std::abort();
  backend.release(memory.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzzing::Choices choices(data, size);
  const fuzzing::Sample sample = fuzzing::make_sample(choices);
  const Span<const std::byte> blob(reinterpret_cast<const std::byte*>(sample.blob.data()),
                                   static_cast<index_t>(sample.bytes));
  if (!Part::is_valid(blob)) return 0;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    inputs.emplace_back(sample.inputs[i], Part(blob).dtype(static_cast<index_t>(i)));
  if (Part(blob).is_grouped_product()) inputs[1].write(sample.ends);
  if (!is_small(Part(blob), inputs)) return 0;
  ErrorInfo info;
  Context context{nullptr, 0, nullptr, &info};
  for (Backend* backend : {&backend(), &f16_backend()}) {
    void* loaded = nullptr;
    if (backend->load(blob, context, loaded) != Error::ok) std::abort();
    run(*backend, loaded, Part(blob), inputs);
    backend->unload(loaded);
  }
  return 0;
}
