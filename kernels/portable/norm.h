// What the normalisations share.
#pragma once
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

/// Element i of a weight or bias, or `fallback` if it is absent.
template <class T>
T value_or(const Maybe<View<const T>>& v, index_t i, T fallback) {
  return v ? v->data()[i] : fallback;
}

}  // namespace taper::portable
