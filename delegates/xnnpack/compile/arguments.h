// Arguments of calls as numbers. Internal to compile.
#pragma once
#include <algorithm>
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

}  // namespace taper::delegates::xnnpack
