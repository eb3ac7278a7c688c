// An operator whose kernels want a constant packed, and programs that call it.
#pragma once
#include <gtest/gtest.h>

#include <functional>

#include "programs.h"
#include "taper/runtime/packing/packing.h"
#include "taper/runtime/program/tables.h"

namespace taper::test {
namespace ops {
inline constexpr Operator weigh{"weigh", Category::kernel,
                                "test::weigh(Tensor weight, bool other) -> Tensor"};
}
}  // namespace taper::test

namespace taper {

template <>
struct Rule<test::ops::weigh> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& weight, bool, TensorType<D>& out) {
    if (!facts.require(weight.rank >= 1 && weight.rank <= 3, "needs one to three dimensions"))
      return false;
    out.dtype = weight.dtype, out.rank = 1, out[0] = weight[0];
    return true;
  }
};

namespace test {

/// How often a weight was packed, and a packed one was read.
inline int packings = 0, packed_calls = 0;

inline size_t bytes_of_weight(const TensorRef& dense) {
  return static_cast<size_t>(dense.shape->sizes[1]) * 16 * sizeof(float);
}
inline void pack_weight(const TensorRef& dense, void* packed) {
  ++packings;
  for (index_t k = 0; k < dense.shape->sizes[1]; ++k)
    for (index_t i = 0; i < 16; ++i)
      static_cast<float*>(packed)[k * 16 + i] =
          i < dense.shape->sizes[0]
              ? static_cast<const float*>(
                    dense.data)[i * dense.shape->strides[0] + k * dense.shape->strides[1]]
              : 0;
}
inline constexpr Packing packs_weight[] = {
    {0, 1, Layout::dense, Layout::panels_of_first, bytes_of_weight, pack_weight}};
inline constexpr Packing packs_otherwise[] = {
    {0, 1, Layout::dense, Layout::panels_of_last, bytes_of_weight, pack_weight}};

struct WeighPlan {
  index_t row, column;
};
inline Error prepare_weigh(Context&, WeighPlan& plan, AnyView<const float> weight, bool,
                           View<float>) {
  const bool packed = weight.layout() != Layout::dense;
  plan = {packed ? 1 : weight.stride(0), packed ? 16 : weight.stride(1)};
  return Error::ok;
}
// The sum of each row of up to 16.
inline Error run_weigh(Context&, const WeighPlan& plan, AnyView<const float> weight, bool,
                       View<float> out) {
  if (weight.layout() != Layout::dense) ++packed_calls;
  for (index_t i = 0; i < weight.size(0); ++i) {
    out.data()[i] = 0;
    for (index_t k = 0; k < weight.size(1); ++k)
      out.data()[i] += weight.data()[i * plan.row + k * plan.column];
  }
  return Error::ok;
}
inline constexpr Kernel weigh_packed =
    make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_packed", {}, packs_weight);
inline constexpr Kernel weigh_otherwise =
    make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_other", {}, packs_otherwise);
inline const Kernel* const set[] = {&weigh_packed, &add_f32, &negate_f32, &join_f32};

inline format::Argument flag(bool value) {
  return {value, 0, format::ArgumentKind::boolean, format::ArgumentForm::literal};
}

/// forward() -> the row sums of a constant (2, 3).
struct Weighing {
  ProgramFile file;
  uint32_t kernel, constant, weight, result;

  Weighing() {
    kernel = file.kernel(ops::weigh, {DType::f32, DType::f32});
    constant = file.constant<float>("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    file.methods.push_back(method("forward"));
  }
  MethodTables& m() { return file.methods[0]; }
  MethodTables method(const char* name) {
    MethodTables m;
    m.name = name;
    weight = m.value(Storage::constant, constant, fixed_shape(m, {2, 3}, {3, 1}));
    result = io_tensor(m, {m.literal(2)});
    m.run(kernel, {m.tensor(weight), flag(false), m.tensor(result)});
    m.output("y", result);
    return m;
  }
  static uint32_t fixed_shape(MethodTables& m, std::vector<int64_t> sizes,
                              std::vector<int64_t> strides) {
    std::vector<uint32_t> s, t;
    for (const int64_t n : sizes) s.push_back(m.literal(n));
    for (const int64_t n : strides) t.push_back(m.literal(n));
    return m.shape(s, t);
  }
  /// What some kernels want packed: nothing, or the memory for LoadOptions::packed.
  AlignedBytes packed(KernelSet kernels = set) const {
    Loaded loaded(file, {}, kernels);
    EXPECT_EQ(loaded.error(), Error::ok) << (loaded.info.message ? loaded.info.message : "");
    if (!loaded.program->ok()) return AlignedBytes();
    const Program& program = loaded.program->value();
    AlignedBytes workspace(packing_workspace(program));
    AlignedBytes memory(find_packed(program, workspace));
    if (memory.size() > 0) {
      EXPECT_EQ(pack(program, workspace, memory), Error::ok);
    }
    return memory;
  }
};

/// A program with its constants packed for `set`.
inline Loaded load_packed(const ProgramFile& file, const AlignedBytes& packed) {
  LoadOptions options;
  options.packed = packed;
  return Loaded(file, options, set);
}

inline std::vector<float> result_of(Loaded& loaded, const char* name = "forward") {
  Result<Method> method = loaded.method(name);
  if (!method.ok() || method->execute() != Error::ok) return {};
  return elements(method->output(0));
}

/// A second reader of the constant, or another way to read it.
struct Reader {
  const char* what;
  std::function<void(Weighing&)> add;
  std::vector<float> result = {6, 15};
};

inline const Reader readers[] = {
    {"a kernel that wants it dense",
     [](Weighing& w) {
       const uint32_t negate = w.file.kernel(ops::negate, {DType::f32, DType::f32});
       const uint32_t t = io_tensor(w.m(), {w.m().literal(2), w.m().literal(3)});
       w.m().run(negate, {w.m().tensor(w.weight), w.m().tensor(t)});
     }},
    {"the same kernel through another view",
     [](Weighing& w) {
       const uint32_t turned =
           w.m().value(Storage::constant, w.constant, Weighing::fixed_shape(w.m(), {3, 2}, {1, 3}));
       const uint32_t t = io_tensor(w.m(), {w.m().literal(3)});
       w.m().run(w.kernel, {w.m().tensor(turned), flag(false), w.m().tensor(t)});
     }},
    {"a part of it",
     [](Weighing& w) {
       const uint32_t part =
           w.m().value(Storage::constant, w.constant, Weighing::fixed_shape(w.m(), {1, 3}, {3, 1}));
       w.m().arguments[0] = w.m().tensor(part);
       w.m().arguments[2] = w.m().tensor(io_tensor(w.m(), {w.m().literal(1)}));
       w.m().outputs[0].value = w.m().size(w.m().values) - 1;
     },
     {6}},
    {"a size that is not a literal",
     [](Weighing& w) {
       MethodTables& m = w.m();
       const uint32_t two =
           m.node(format::Operation::add, format::NumberType::i64, m.literal(1), m.literal(1));
       const uint32_t view = m.value(Storage::constant, w.constant,
                                     m.shape({two, m.literal(3)}, {m.literal(3), m.literal(1)}));
       m.arguments[0] = m.tensor(view);
     }},
    {"a flag that is set", [](Weighing& w) { w.m().arguments[1] = flag(true); }},
    {"a list",
     [](Weighing& w) {
       MethodTables& m = w.m();
       const uint32_t join = w.file.kernel(ops::join, {DType::f32, DType::f32});
       const uint32_t row =
           m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, {6}, {1}));
       const uint32_t t = io_tensor(m, {m.literal(6)});
       const format::Argument list = m.tensors({row});
       m.run(join, {list, m.tensor(t)});
     }},
    {"an output", [](Weighing& w) { w.m().output("weight", w.weight); }},
    {"a state's initial value",
     [](Weighing& w) {
       w.file.state("s", {2, 3}, DType::f32, w.constant);
     }},
    {"another method, densely",
     [](Weighing& w) {
       MethodTables m = w.method("other");
       m.arguments[1] = flag(true);
       w.file.methods.push_back(m);
     }},
};

}  // namespace test
}  // namespace taper
