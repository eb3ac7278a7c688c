// Fourier transforms of tensors along several dimensions, one after the other. The functions are
// templates over `Loops`, which says for which vectors they are compiled.
#pragma once
#include <cmath>
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/fft_stage.h"
#include "taper/kernels/shapes/fft.h"

namespace taper::portable::fft {

/// The stages of a call, in their order.
struct Plan {
  int32_t count = 0;
  Stage stages[max_rank];
  /// 1 by sqrt(elements) or by elements, as `normalization` says; the last stage multiplies by it.
  void normalize(int64_t normalization, double elements) {
    if (count == 0 || normalization == 0) return;
    stages[count - 1].scale =
        static_cast<float>(1 / (normalization == 1 ? std::sqrt(elements) : elements));
  }
};
/// c2c may transform in place.
struct ComplexPlan : Plan {
  static constexpr uint32_t overwrites = 1;
};

inline int positive(int64_t dim, int rank) { return static_cast<int>(dim < 0 ? dim + rank : dim); }

template <class Loops, int lanes>
struct Transform {
  using Complex = View<const Complex64>;
  using Dims = Span<const int64_t>;

  // ---- complex to complex

  static Error prepare_c2c(Context& context, ComplexPlan& plan, Complex self, Dims dims,
                           int64_t normalization, bool forward, View<Complex64>) {
    plan = {};
    const Shape& shape = self.shape();
    TAPER_TRY(add_complex(context, plan, shape, dims, dims.size(), !forward));
    plan.normalize(normalization, elements(shape, dims));
    return need(context, plan, 0);
  }
  static Error run_c2c(Context& context, const ComplexPlan& plan, Complex self, Dims, int64_t, bool,
                       View<Complex64> out) {
    if (plan.count == 0 && out.data() != self.data() && out.numel() > 0)
      std::memcpy(out.data(), self.data(), static_cast<size_t>(self.ref->size_bytes()));
    run_stages(context, context.scratch, plan, 0, plan.count, self.data(), out.data(), out.numel());
    return Error::ok;
  }
  static void bound_c2c(Context& context, Complex self, Dims dims, int64_t, bool, View<Complex64>) {
    context.need_scratch(bound(context, self.shape(), dims));
  }

  // ---- real to complex: the last dimension first

  static Error prepare_r2c(Context& context, Plan& plan, View<const float> self, Dims dims,
                           int64_t normalization, bool onesided, View<Complex64> out) {
    plan = {};
    const int last = positive(dims[dims.size() - 1], self.rank());
    TAPER_TRY(add(context, plan, onesided ? Kind::from_real : Kind::from_real_all, false,
                  self.size(last), self.shape(), out.shape(), last));
    TAPER_TRY(add_complex(context, plan, out.shape(), dims, dims.size() - 1, false));
    plan.normalize(normalization, elements(self.shape(), dims));
    return need(context, plan, 0);
  }
  static Error run_r2c(Context& context, const Plan& plan, View<const float> self, Dims, int64_t,
                       bool, View<Complex64> out) {
    run_stages(context, context.scratch, plan, 0, plan.count, self.data(), out.data(), out.numel());
    return Error::ok;
  }
  static void bound_r2c(Context& context, View<const float> self, Dims dims, int64_t, bool,
                        View<Complex64>) {
    context.need_scratch(bound(context, self.shape(), dims));
  }

  // ---- complex to real: the last dimension last, the others in a copy

  static Error prepare_c2r(Context& context, Plan& plan, Complex self, Dims dims,
                           int64_t normalization, int64_t last_dim_size, View<float> out) {
    plan = {};
    const int last = positive(dims[dims.size() - 1], self.rank());
    TAPER_TRY(add_complex(context, plan, self.shape(), dims, dims.size() - 1, true));
    TAPER_TRY(
        add(context, plan, Kind::to_real, true, last_dim_size, self.shape(), out.shape(), last));
    plan.normalize(normalization, elements(out.shape(), dims));
    return need(context, plan, copy_bytes(self, plan.count));
  }
  static Error run_c2r(Context& context, const Plan& plan, Complex self, Dims, int64_t, int64_t,
                       View<float> out) {
    char* const copy = static_cast<char*>(context.scratch);
    char* const rest = copy + copy_bytes(self, plan.count);
    run_stages(context, rest, plan, 0, plan.count - 1, self.data(), copy, out.numel());
    run_stages(context, rest, plan, plan.count - 1, plan.count,
               plan.count > 1 ? static_cast<const void*>(copy) : self.data(), out.data(),
               out.numel());
    return Error::ok;
  }
  static void bound_c2r(Context& context, Complex self, Dims dims, int64_t, int64_t,
                        View<float> out) {
    const size_t copy = static_cast<size_t>(copy_bytes(self, static_cast<int>(dims.size())));
    context.need_scratch(copy + bound(context, out.shape(), dims));
  }

 private:
  static Error add(Context& context, Plan& plan, Kind kind, bool inverse, index_t n,
                   const Shape& from, const Shape& to, int dim) {
    if (n > longest)
      return context.fail(Error::not_supported,
                          TAPER_TEXT("cannot transform {} elements: at most "
                                     "{}"),
                          n, longest);
    if (n > 0) plan.stages[plan.count++] = plan_stage(kind, inverse, n, from, to, dim);
    return Error::ok;
  }
  static Error add_complex(Context& context, Plan& plan, const Shape& shape, Dims dims,
                           index_t count, bool inverse) {
    for (index_t i = count; i-- > 0;) {
      const int dim = positive(dims[i], shape.rank);
      TAPER_TRY(add(context, plan, Kind::complex, inverse, shape.sizes[dim], shape, shape, dim));
    }
    return Error::ok;
  }
  static double elements(const Shape& shape, Dims dims) {
    double n = 1;
    for (const int64_t dim : dims) n *= static_cast<double>(shape.sizes[positive(dim, shape.rank)]);
    return n;
  }
  /// The memory of the copy that c2r transforms along `count` - 1 dimensions.
  static index_t copy_bytes(const Complex& self, int count) {
    return count > 1 ? pieces(self.ref->size_bytes(), 64) * 64 : 0;
  }
  static Error need(Context& context, const Plan& plan, index_t before) {
    for (int i = 0; i < plan.count; ++i) {
      if (plan.stages[i].lines() == 0) continue;
      context.need_scratch(static_cast<size_t>(
          before + StageRun<Loops, lanes>(nullptr, plan.stages[i], context.threads).bytes()));
    }
    return Error::ok;
  }
  static void run_stages(Context& context, void* scratch, const Plan& plan, int begin, int end,
                         const void* from, void* to, index_t elements_of_result) {
    if (elements_of_result == 0) return;
    for (int i = begin; i < end; ++i) {
      StageRun<Loops, lanes>(scratch, plan.stages[i], context.threads)
          .run(static_cast<const float*>(i == begin ? from : to), static_cast<float*>(to));
    }
  }

  /// Scratch for transforms of `shape` and all smaller ones.
  static size_t bound(const Context& context, const Shape& shape, Dims dims) {
    index_t most = 0;
    for (const int64_t dim : dims) {
      const int d = positive(dim, shape.rank);
      const index_t n = shape.sizes[d] < longest ? shape.sizes[d] : longest;
      index_t lines = 1;
      for (int i = 0; i < shape.rank; ++i) lines *= i == d ? 1 : shape.sizes[i];
      const index_t bytes = bytes_at_most(context, n, lines);
      most = bytes > most ? bytes : most;
    }
    return static_cast<size_t>(most);
  }
  static index_t bytes_at_most(const Context& context, index_t n, index_t lines) {
    if (n == 0 || lines == 0) return 0;
    const index_t count = context.threads == nullptr ? 1 : context.threads->count;
    const index_t size = convolution_size(n), side = most_columns(size);
    const index_t block = n < long_line ? n : long_line;
    const index_t floats = position_floats<lanes> * sizeof(float);
    const index_t blocks = 2 * count * (side > block ? side : block) * floats;
    const index_t tables = 2 * (n + 1) * 8 + size * 8 + side * 32 + lanes * 16;
    const index_t line = size * 16 + (size + lanes * side) * 8;
    const index_t copies = lines < count ? lines : count;
    constexpr index_t rounding = 64 * 16;
    return blocks + tables + copies * line + rounding * (count + 1);
  }
};

}  // namespace taper::portable::fft
