// Rules of padding with elements of the tensor itself, over the last 1, 2 or 3 dimensions of
// (channels, …) or (batch, channels, …).
#pragma once
#include "taper/kernels/shapes/pooling.h"

namespace taper {
namespace internal {

/// Pairs (before, after) from the last dimension on. A reflection leaves the edge out, so it must
/// be smaller than the extent. A replication may crop with negative numbers.
template <int n, bool reflects>
struct PadRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> padding,
                    TensorType<D>& out) {
    if (!facts.require(padding.size() == 2 * n,
                       TAPER_TEXT("padding must have {} elements, it has {}"), 2 * n,
                       padding.size()) ||
        !check_pooled<n>(facts, self))
      return false;
    out.like(self);
    for (int k = 0; k < n; ++k) {
      D& size = out.sizes[self.rank - 1 - k];
      for (int side = 0; reflects && side < 2; ++side)
        if (!facts.less(padding[2 * k + side], size,
                        TAPER_TEXT("padding {} must be less than the size {} that it reflects")))
          return false;
      size = size + padding[2 * k] + padding[2 * k + 1];
      if (!facts.at_least(size, D(1), TAPER_TEXT("padding makes a size of {}"))) return false;
    }
    return true;
  }
};

template <int n, bool reflects>
struct PadBackwardRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& self,
                    DimList<D> padding, TensorType<D>& out) {
    TensorType<D> padded;
    if (!PadRule<n, reflects>::shape(facts, self, padding, padded) ||
        !same_sizes(facts, grad_output, padded,
                    TAPER_TEXT("grad_output has {} dimensions, the padded self {}"),
                    TAPER_TEXT("grad_output has extent {} where the padded self has {}")))
      return false;
    out.like(self);
    return facts.require(grad_output.dtype == self.dtype,
                         TAPER_TEXT("grad_output and self must have the same dtype"));
  }
};

}  // namespace internal

#define TAPER_PAD_RULES(n)                                                                 \
  template <>                                                                              \
  struct Rule<ops::reflection_pad##n##d> : internal::PadRule<n, true> {};                  \
  template <>                                                                              \
  struct Rule<ops::replication_pad##n##d> : internal::PadRule<n, false> {};                \
  template <>                                                                              \
  struct Rule<ops::reflection_pad##n##d_backward> : internal::PadBackwardRule<n, true> {}; \
  template <>                                                                              \
  struct Rule<ops::replication_pad##n##d_backward> : internal::PadBackwardRule<n, false> {};
TAPER_PAD_RULES(1)
TAPER_PAD_RULES(2)
TAPER_PAD_RULES(3)
#undef TAPER_PAD_RULES

}  // namespace taper
