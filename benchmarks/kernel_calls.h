// What benchmarks of single kernels have in common.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "taper/kernels/kernel.h"

namespace taper::benchmarks {

using Buffer = std::unique_ptr<std::byte, decltype(&std::free)>;
/// Aligned, with 64 readable bytes behind it. Its bytes are small numbers in every format.
inline Buffer buffer(size_t bytes) {
  bytes = (bytes + 127) / 64 * 64;
  Buffer b(static_cast<std::byte*>(std::aligned_alloc(64, bytes)), &std::free);
  std::fill_n(b.get(), bytes, std::byte{0x11});
  return b;
}

inline Slot slot(const TensorRef* t) {
  Slot s{};
  s.tensor = t, s.kind = Kind::tensor, s.present = t != nullptr;
  return s;
}

/// The record of f32 that a loader would take on this machine.
inline const Kernel& record(KernelSet set, const Operator& op) {
  for (const Kernel* k : set)
    if (k->op == &op && cpu_features().has(k->needs) &&
        (k->expected[0].dtypes & one(DType::f32)) != 0)
      return *k;
  std::abort();
}

inline double seconds(const std::chrono::steady_clock::time_point& start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace taper::benchmarks
