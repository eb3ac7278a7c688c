#pragma once
#include <array>
#include <concepts>
#include <cstdint>

#include "taper/exporter/eager/tensor.h"

namespace taper::nn {

/// One number for each of `n` spatial dimensions. A single number stands for all: `.kernel_size =
/// 5`, `.kernel_size = {3, 5}`.
template <int n>
struct Extents {
  std::array<int64_t, n> values;

  template <std::integral T>
  Extents(T all) {
    values.fill(static_cast<int64_t>(all));
  }
  template <std::integral... T>
  requires(n > 1 && sizeof...(T) == n) Extents(T... each) : values{static_cast<int64_t>(each)...} {}

  int64_t operator[](int i) const { return values[static_cast<size_t>(i)]; }
  eager::Ints ints() const { return {values.begin(), values.end()}; }
  eager::Dims dims() const { return {values.begin(), values.end()}; }
};

}  // namespace taper::nn
