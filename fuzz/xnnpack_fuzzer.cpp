// Any part, with any sizes of its arguments, is refused or runs. The bytes describe a part: most of
// its indices and numbers are near right ones, so that many parts reach the library.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "taper/delegates/xnnpack/app/backend.h"
#include "taper/delegates/xnnpack/runtime/part.h"

namespace {

using namespace taper;
using namespace taper::delegates::xnnpack;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : 0; }
  uint32_t below(uint32_t n) { return n == 0 ? 0 : next() % n; }

  /// Mostly a small number, at times an extreme one.
  int64_t number() {
    constexpr int64_t extremes[] = {-1,        1 << 14,   1 << 15,   (1 << 15) + 1, INT32_MAX,
                                    INT64_MIN, INT64_MAX, 1ll << 33, 1ll << 34};
    const uint8_t byte = next();
    return byte < 240 ? byte % 12 : extremes[byte % 9];
  }
  float real() {
    constexpr float reals[] = {0, 1, -1, 0.5f, 6, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 1e-42f};
    return reals[below(11)];
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

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
  static size_t size_of(DType d) {
    if (d == DType::i8 || d == DType::u8) return 1;
    return d == DType::bf16 ? 2 : 4;
  }
  static constexpr size_t guard = 64;
  Shape shape;
  DType dtype;
  std::vector<uint16_t> elements;
};

Shape shape_of(Input& in) {
  Shape s;
  s.rank = static_cast<int32_t>(in.below(6));
  constexpr index_t sizes[] = {1, 2, 3, 4, 5, 6, 16, 32, 64};
  for (int i = 0; i < s.rank; ++i)
    s.sizes[i] = in.below(64) == 0 ? 0 : sizes[in.below(s.rank <= 2 ? 9 : 6)];
  s.make_dense();
  return s;
}

using Words = std::vector<uint64_t>;

/// Writes a part. `bytes` gets its size.
Words part_of(Input& in, uint32_t operands, uint32_t constants, size_t& bytes) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<blob::Node>> nodes;
  const uint32_t count = 1 + in.below(8);
  for (uint32_t n = 0; n < count; ++n) {
    const auto kind = static_cast<blob::Kind>(in.below(19));
    auto function = blob::Function::none;
    if (kind == blob::Kind::unary) function = static_cast<blob::Function>(in.below(19));
    if (kind == blob::Kind::binary) function = static_cast<blob::Function>(32 + in.below(8));
    std::vector<uint32_t> inputs(in.below(6));
    for (uint32_t& i : inputs) {
      const uint8_t choice = in.next();
      i = choice < 250 ? choice % (operands + constants + n + 1) : no_value;
    }
    std::vector<int64_t> numbers(in.below(18));
    for (int64_t& x : numbers) x = in.number();
    std::vector<float> parameters(in.below(4));
    for (float& p : parameters) p = in.real();
    nodes.push_back(blob::CreateNodeDirect(b, kind, function, &inputs, &numbers, &parameters));
  }
  std::vector<flatbuffers::Offset<blob::Quantized>> quantized;
  if (in.below(2) == 1) {
    constexpr int zeros[] = {0, 0, 0, 3, -128, 127, 128};
    constexpr float scales[] = {0.5f, 0.5f, 0.5f, 0.01f, 1e-10f, 1e10f, 0, NAN};
    for (uint32_t v = 0; v < operands + constants + count; ++v) {
      const uint32_t choice = in.below(8);
      if (choice == 0) continue;
      constexpr uint8_t bits[] = {8, 8, 8, 4, 16, 32};
      constexpr uint32_t blocks[] = {0, 0, 32, 32, 64, 33};
      const bool has_scales = choice < 3 && constants > 0, is_rounded = choice == 3;
      quantized.push_back(blob::CreateQuantized(
          b, v, is_rounded ? 8 : bits[in.below(6)], has_scales ? 0 : zeros[in.below(7)],
          scales[in.below(8)], has_scales ? operands + in.below(constants) : no_value,
          static_cast<uint8_t>(in.below(5)), has_scales ? blocks[in.below(6)] : 0, is_rounded));
    }
  }
  std::vector<uint32_t> results(1 + in.below(3));
  for (uint32_t& r : results) r = operands + constants + in.below(count + 1);
  b.Finish(blob::CreatePartDirect(b, operands, constants, &nodes, &results, &quantized),
           blob::PartIdentifier());
  bytes = b.GetSize();
  Words words(bytes / 8 + 1);
  std::memcpy(words.data(), b.GetBufferPointer(), bytes);
  return words;
}

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
  Input in(data, size);
  const uint32_t operands = 1 + in.below(2), constants = in.below(4);
  std::vector<Shape> shapes;
  for (uint32_t i = 0; i < operands + constants; ++i) shapes.push_back(shape_of(in));
  size_t bytes = 0;
  const Words words = part_of(in, operands, constants, bytes);
  const Span<const std::byte> blob(reinterpret_cast<const std::byte*>(words.data()),
                                   static_cast<index_t>(bytes));
  if (!Part::is_valid(blob)) return 0;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs.emplace_back(shapes[i], Part(blob).dtype(static_cast<index_t>(i)));
  if (!is_small(Part(blob), inputs)) return 0;
  ErrorInfo info;
  Context context{nullptr, 0, nullptr, &info};
  void* loaded = nullptr;
  if (backend().load(blob, context, loaded) != Error::ok) std::abort();
  run(backend(), loaded, Part(blob), inputs);
  backend().unload(loaded);
  return 0;
}
