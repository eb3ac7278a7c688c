// Weights that a program holds in halves, for kernels that read f32. Weights that are packed at
// load are f32, or halves in panels (Packing). Others are widened into the scratch of each call.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/small_floats.h"

namespace taper::portable {

/// A Packing of a kernel that reads both layouts if a file has them, and asks for neither.
template <int argument>
constexpr Packing reads_from(Layout from, Layout layout) {
  return {argument, -1, from, layout, nullptr, nullptr};
}

/// The Packings of an argument that may be f32 or in halves, and is read faster in one layout of
/// f32. Without `bytes` and `pack`, the kernel does not ask for it.
template <int argument, Layout layout, int unless = -1, auto bytes = nullptr, auto pack = nullptr>
constexpr Packing to_f32_layout[] = {{argument, unless, Layout::dense, layout, bytes, pack},
                                     {argument, unless, Layout::dense_f16, layout, bytes, pack},
                                     {argument, unless, Layout::dense_bf16, layout, bytes, pack}};

/// The Packings of a record whose kernel reads f32 in `argument`, which may be in halves. `own`:
/// the layouts in halves that the kernel reads itself.
template <int argument, LayoutSet own = 0>
struct WidenedPackings {
  Span<const Packing> packings;
};

/// Where the halves of a tensor lie, and what they are as f32. Dense ones keep their strides, and
/// panels become panels_of_first.
struct Halves {
  bool f16, in_panels;
  index_t count;          ///< elements of f32, with those that fill up panels
  index_t depth, panels;  ///< of a matrix in panels

  explicit Halves(const TensorRef& t)
      : f16(is_in_f16(t.layout)), in_panels(!has_strides(t.layout)), count(0), depth(0), panels(0) {
    const Shape& s = *t.shape;
    if (s.numel() == 0) return;
    if (in_panels) {
      depth = s.numel() / s.sizes[0], panels = (s.sizes[0] + panel_width - 1) / panel_width;
      count = panels * depth * panel_width;
      return;
    }
    for (int i = 0; i < s.rank; ++i) count += (s.sizes[i] - 1) * s.strides[i];
    ++count;
  }
  size_t bytes() const { return static_cast<size_t>(count) * sizeof(float); }
};

template <class E>
void widen_in_order(const Threads* threads, index_t count, const E* from, float* to) {
  constexpr index_t block = 1 << 14;
  parallel_for(threads, (count + block - 1) / block, [&](index_t b) {
    const index_t end = (b + 1) * block < count ? (b + 1) * block : count;
    for (index_t i = b * block; i < end; ++i) to[i] = to_float(from[i]);
  });
}

/// Widens all halves of a tensor. `to` has room for Halves::count elements.
inline void widen(const Threads* threads, const TensorRef& t, float* to) {
  const Halves h(t);
  const auto* bf16 = static_cast<const BFloat16*>(t.data);
  if (h.f16) return widen_in_order(threads, h.count, static_cast<const Half*>(t.data), to);
  if (!h.in_panels) return widen_in_order(threads, h.count, bf16, to);
  parallel_for(threads, h.panels, [&](index_t p) {
    const BFloat16* from = bf16 + p * ((h.depth + 1) / 2 * 2 * panel_width);
    float* panel = to + p * h.depth * panel_width;
    for (index_t k = 0; k < h.depth; ++k)
      for (int i = 0; i < panel_width; ++i)
        *panel++ = to_float(from[2 * (k / 2 * panel_width + i) + k % 2]);
  });
}

namespace internal {

/// The same arguments, but that one is f32. Its elements will lie at the start of the scratch.
template <int argument, LayoutSet own, int count>
struct WidenedSlots {
  Slot slots[count];
  TensorRef tensor;
  size_t bytes = 0;  ///< of scratch; 0: the argument stays as it is

  explicit WidenedSlots(const Slot* given) {
    constexpr size_t line = 64;  // so many bytes behind a tensor may be read
    tensor = *given[argument].tensor;
    if (!is_in_halves(tensor.layout) || (one(tensor.layout) & own) != 0) return;
    for (int i = 0; i < count; ++i) slots[i] = given[i];
    slots[argument].tensor = &tensor;
    bytes = (Halves(tensor).bytes() + 2 * line - 1) / line * line;
    tensor.layout = has_strides(tensor.layout) ? Layout::dense : Layout::panels_of_first;
    tensor.data = nullptr;
  }
};

template <const Operator& op, int argument, LayoutSet own, auto... functions>
struct Widened {
  static constexpr Kernel kernel = make_kernel<op, functions...>("");
  static_assert(kernel.scratch_bound == nullptr, "it would not see the widened weight");
  using Slots = WidenedSlots<argument, own, kernel.expected_count>;

  static Error prepare_kernel(Context& context, void* plan, const Slot* slots) {
    if constexpr (kernel.prepare != nullptr) return kernel.prepare(context, plan, slots);
    return Error::ok;
  }
  static Error prepare(Context& context, void* plan, const Slot* given) {
    const Slots s(given);
    if (s.bytes == 0) return prepare_kernel(context, plan, given);
    Context rest = context;
    rest.scratch_bytes = 0;
    TAPER_TRY(prepare_kernel(rest, plan, s.slots));
    context.need_scratch(s.bytes + rest.scratch_bytes);
    return Error::ok;
  }
  static Error run(Context& context, const void* plan, const Slot* given) {
    Slots s(given);
    if (s.bytes == 0) return kernel.run(context, plan, given);
    widen(context.threads, *given[argument].tensor, static_cast<float*>(context.scratch));
    s.tensor.data = context.scratch;
    Context rest = context;
    rest.scratch = static_cast<std::byte*>(context.scratch) + s.bytes;
    return kernel.run(rest, plan, s.slots);
  }
};

}  // namespace internal
}  // namespace taper::portable

namespace taper {

/// The record of a kernel, around which halves are widened.
template <const Operator& op, auto... functions, int argument, LayoutSet own>
constexpr Kernel make_kernel(const char* name, CpuFeatures needs,
                             portable::WidenedPackings<argument, own> p) {
  using Widened = portable::internal::Widened<op, argument, own, functions...>;
  Kernel kernel = make_kernel<op, functions...>(name, needs, p.packings);
  kernel.prepare = Widened::prepare, kernel.run = Widened::run;
  return kernel;
}

}  // namespace taper
