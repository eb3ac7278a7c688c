// Arguments of calls as numbers. Internal to compile.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {

inline bool are_fixed(const std::vector<Dim>& dims) {
  return std::ranges::all_of(dims, &Dim::is_constant);
}
inline std::vector<int64_t> numbers(const std::vector<Dim>& dims) {
  std::vector<int64_t> list;
  for (const Dim d : dims) list.push_back(d.value());
  return list;
}
inline int64_t axis_of(Dim dim, int rank) {
  return dim.value() < 0 ? dim.value() + rank : dim.value();
}
inline double real(const Scalar& s) { return s.is_real ? s.real : static_cast<double>(s.integer); }

/// The library has depthwise kernels for windows of up to 25 elements. It computes larger ones as
/// a product for each channel, which takes 20 times as long as Taper's kernel.
inline std::string refuses_depthwise_window(int64_t elements) {
  if (elements <= 25) return "";
  return "the library is slow with depthwise windows of " + std::to_string(elements) + " elements";
}

}  // namespace taper::delegates::xnnpack
