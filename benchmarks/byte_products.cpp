// Convolutions of static 8-bit integers (taper::conv2d_q8), beside those of f32
// (taper::convolution) and, where it is built, XNNPACK's of the same integers, whose results are
// compared. On a machine that does other work as well, compare the best figures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/cpu.h"
#ifdef TAPER_WITH_XNNPACK
#include <xnnpack.h>
#endif

using namespace taper;

namespace {

struct Layer {
  const char* name;
  index_t size, inputs, outputs, kernel, stride, groups;

  index_t padding() const { return kernel / 2; }
  index_t result() const { return (size + 2 * padding() - kernel) / stride + 1; }
  bool is_depthwise() const { return groups > 1; }
  index_t depth() const { return kernel * kernel * inputs / groups; }
  double operations() const {
    return 2.0 * static_cast<double>(result() * result() * outputs * depth());
  }
};
const Layer layers[] = {
    {"mobilenet_v2/first", 224, 3, 32, 3, 2, 1},
    {"mobilenet_v2/expand", 56, 24, 144, 1, 1, 1},
    {"mobilenet_v2/depthwise", 56, 144, 144, 3, 1, 144},
    {"mobilenet_v2/expand_late", 14, 96, 576, 1, 1, 1},
    {"mobilenet_v2/depthwise_late", 14, 576, 576, 3, 1, 576},
    {"mobilenet_v2/project_late", 7, 960, 320, 1, 1, 1},
    {"resnet18/first", 224, 3, 64, 7, 2, 1},
    {"resnet18/layer1", 56, 64, 64, 3, 1, 1},
    {"resnet18/layer3", 14, 256, 256, 3, 1, 1},
    {"resnet18/layer4", 7, 512, 512, 3, 1, 1},
};

/// A dense tensor at a multiple of 64 bytes, with 64 bytes behind it.
class Dense {
 public:
  Dense(DType dtype, std::vector<index_t> sizes)
      : shape_(Shape::dense(sizes)),
        memory_(std::aligned_alloc(
                    64, (static_cast<size_t>(shape_.numel() * size_bytes(dtype)) + 191) / 64 * 64),
                &std::free) {
    ref_ = {memory_.get(), &shape_, dtype, Layout::dense};
    std::fill_n(data<std::byte>(), ref_.size_bytes() + 64, std::byte{0});
  }
  Dense(const Dense&) = delete;
  template <class T>
  T* data() {
    return static_cast<T*>(memory_.get());
  }
  index_t numel() const { return shape_.numel(); }
  const TensorRef* ref() const { return &ref_; }

 private:
  Shape shape_;
  std::unique_ptr<void, decltype(&std::free)> memory_;
  TensorRef ref_;
};

Slot slot(const TensorRef* t) {
  Slot s{};
  s.tensor = t, s.kind = Kind::tensor, s.present = t != nullptr;
  return s;
}
Slot slot(int64_t value) {
  Slot s{};
  s.integer = value, s.kind = Kind::integer, s.present = true;
  return s;
}
Slot slot(double value) {
  Slot s{};
  s.real = value, s.kind = Kind::real, s.present = true;
  return s;
}
Slot slot(const std::vector<int64_t>& list) {
  Slot s{};
  s.integers = list.data(), s.size = static_cast<uint32_t>(list.size()), s.kind = Kind::integer;
  s.present = true;
  return s;
}

/// The records that this machine can run, the fastest first.
std::vector<const Kernel*> records(KernelSet set, const Operator& op) {
  std::vector<const Kernel*> found;
  for (const Kernel* k : set)
    if (k->op == &op && cpu_features().has(k->needs)) found.push_back(k);
  return found;
}

/// A call that is prepared once.
class Prepared {
 public:
  Prepared(const Kernel& kernel, const std::vector<Slot>& slots) : kernel_(kernel), slots_(slots) {
    if (kernel.prepare != nullptr && kernel.prepare(context_, plan_, slots.data()) != Error::ok)
      std::abort();
    scratch_.reset(std::aligned_alloc(64, context_.scratch_bytes / 64 * 64 + 64));
    context_.scratch = scratch_.get();
  }
  void run() {
    if (kernel_.run(context_, plan_, slots_.data()) != Error::ok) std::abort();
  }

 private:
  const Kernel& kernel_;
  std::vector<Slot> slots_;
  alignas(8) std::byte plan_[max_plan_bytes];
  Context context_;
  std::unique_ptr<void, decltype(&std::free)> scratch_{nullptr, &std::free};
};
void time_calls(benchmark::State& state, const Kernel& kernel, const std::vector<Slot>& slots,
                double operations) {
  Prepared call(kernel, slots);
  for (auto _ : state) call.run();
  state.counters["operations"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
}

const std::vector<int64_t> one{1, 1}, whole_range{-128, 127};
constexpr double input_scale = 0.03, output_scale = 1.1;
constexpr int64_t input_zero = -9, output_zero = 4;

/// The integers of a layer, and its weights as panels.
struct Integers {
  Dense x, plain, scales, offsets, panels, y;

  explicit Integers(const Layer& l)
      : x(DType::i8, {1, l.size, l.size, l.inputs}),
        plain(DType::i8, {l.outputs, l.depth()}),
        scales(DType::f32, {l.outputs}),
        offsets(DType::i32, {2, l.outputs}),
        panels(DType::i8, {(l.outputs + 15) / 16, (l.depth() + 3) / 4, 16, 4}),
        y(DType::i8, {1, l.result(), l.result(), l.outputs}) {
    std::mt19937 engine(1);
    for (index_t i = 0; i < x.numel(); ++i) x.data<int8_t>()[i] = static_cast<int8_t>(engine());
    const index_t vectors = (l.depth() + 3) / 4;
    for (index_t c = 0; c < l.outputs; ++c) {
      scales.data<float>()[c] = 0.01f / static_cast<float>(1 + c % 7);
      for (index_t k = 0; k < l.depth(); ++k) {
        const auto w = static_cast<int8_t>(static_cast<int>(engine() % 255) - 127);
        plain.data<int8_t>()[c * l.depth() + k] = w;
        panels.data<int8_t>()[((c / 16 * vectors + k / 4) * 16 + c % 16) * 4 + k % 4] = w;
        offsets.data<int32_t>()[l.outputs + c] += w;
      }
      offsets.data<int32_t>()[c] = static_cast<int32_t>(engine() % 2000) - 1000;
    }
  }
};

/// Lists that the slots of a call point to.
struct Lists {
  std::vector<int64_t> size, stride, padding;

  explicit Lists(const Layer& l)
      : size{l.kernel, l.kernel}, stride{l.stride, l.stride}, padding{l.padding(), l.padding()} {}
};
std::vector<Slot> call_of(const Layer& l, const Integers& n, const Lists& lists) {
  return {
      slot(n.x.ref()),         slot(n.panels.ref()), slot(n.scales.ref()), slot(n.offsets.ref()),
      slot(lists.size),        slot(lists.stride),   slot(lists.padding),  slot(one),
      slot(int64_t{l.groups}), slot(input_scale),    slot(input_zero),     slot(output_scale),
      slot(output_zero),       slot(whole_range),    slot(n.y.ref())};
}
void of_integers(benchmark::State& state, const Layer& l, const Kernel& kernel) {
  const Integers n(l);
  const Lists lists(l);
  time_calls(state, kernel, call_of(l, n, lists), l.operations());
}

void of_f32(benchmark::State& state, const Layer& l) {
  const Kernel& kernel = *records(optimized::all, ops::taper_convolution).front();
  Dense x(DType::f32, {1, l.size, l.size, l.inputs}),
      w(DType::f32, {l.outputs, l.inputs / l.groups, l.kernel, l.kernel}),
      y(DType::f32, {1, l.result(), l.result(), l.outputs});
  TensorRef weight = *w.ref();
  std::unique_ptr<void, decltype(&std::free)> packed(nullptr, &std::free);
  for (const Packing& p : kernel.packings) {
    if (p.argument != 1 || p.from != Layout::dense || p.bytes == nullptr) continue;
    const size_t bytes = p.bytes(weight);
    if (bytes == 0) continue;
    packed.reset(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
    p.pack(weight, packed.get());
    weight.data = packed.get(), weight.layout = p.layout;
    break;
  }
  const std::vector<int64_t> stride{l.stride, l.stride}, padding{l.padding(), l.padding()};
  Slot no_program = slot(std::vector<int64_t>{}), none{}, no_others{};
  none.kind = Kind::real, none.present = true, no_others.kind = Kind::tensor;
  no_others.present = true;
  time_calls(state, kernel,
             {slot(x.ref()), slot(&weight), slot(static_cast<const TensorRef*>(nullptr)),
              slot(stride), slot(padding), slot(one), slot(int64_t{l.groups}), no_others,
              no_program, none, slot(y.ref())},
             l.operations());
}

#ifdef TAPER_WITH_XNNPACK
void of_xnnpack(benchmark::State& state, const Layer& l) {
  Integers n(l);
  xnn_initialize(nullptr);
  const auto pad = static_cast<uint32_t>(l.padding()), kernel = static_cast<uint32_t>(l.kernel),
             stride = static_cast<uint32_t>(l.stride);
  xnn_operator_t op = nullptr;
  if (xnn_create_convolution2d_nhwc_qs8_qc8w(
          pad, pad, pad, pad, kernel, kernel, stride, stride, 1, 1, static_cast<uint32_t>(l.groups),
          static_cast<size_t>(l.inputs / l.groups), static_cast<size_t>(l.outputs / l.groups),
          static_cast<size_t>(l.inputs), static_cast<size_t>(l.outputs),
          static_cast<int8_t>(input_zero), static_cast<float>(input_scale), n.scales.data<float>(),
          n.plain.data<int8_t>(), n.offsets.data<int32_t>(), static_cast<int8_t>(output_zero),
          static_cast<float>(output_scale), -128, 127, 0, nullptr, nullptr,
          &op) != xnn_status_success)
    return state.SkipWithError("XNNPACK does not take the layer");
  const std::unique_ptr<xnn_operator, decltype(&xnn_delete_operator)> owner(op,
                                                                            &xnn_delete_operator);
  size_t workspace = 0, alignment = 0, height = 0, width = 0;
  const auto size = static_cast<size_t>(l.size);
  if (xnn_reshape_convolution2d_nhwc_qs8_qc8w(op, 1, size, size, &workspace, &alignment, &height,
                                              &width, nullptr) != xnn_status_success)
    return state.SkipWithError("XNNPACK does not take the sizes");
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(64, workspace / 64 * 64 + 64), &std::free);
  xnn_setup_convolution2d_nhwc_qs8_qc8w(op, memory.get(), n.x.data<int8_t>(), n.y.data<int8_t>());
  for (auto _ : state) xnn_run_operator(op, nullptr);
  Integers ours(l);
  const Lists lists(l);
  Prepared(*records(quantized::all, ops::taper_conv2d_q8).front(), call_of(l, ours, lists)).run();
  if (!std::equal(n.y.data<int8_t>(), n.y.data<int8_t>() + n.y.numel(), ours.y.data<int8_t>()))
    return state.SkipWithError("XNNPACK gives other integers");
  state.counters["operations"] =
      benchmark::Counter(l.operations(), benchmark::Counter::kIsIterationInvariantRate);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const Layer& l : layers) {
    const std::string name = l.name;
    for (const Kernel* k : records(quantized::all, ops::taper_conv2d_q8))
      if (k->needs != CpuFeatures{})
        benchmark::RegisterBenchmark((name + "/" + k->name).c_str(), of_integers, l, *k);
    benchmark::RegisterBenchmark((name + "/f32").c_str(), of_f32, l);
#ifdef TAPER_WITH_XNNPACK
    benchmark::RegisterBenchmark((name + "/xnnpack").c_str(), of_xnnpack, l);
#endif
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
