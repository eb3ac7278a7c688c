// Arguments of calls as numbers. Internal to compile.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {

inline bool are_fixed(const std::vector<Dim>& dims) {
  return std::ranges::all_of(dims, &Dim::is_constant);
}
inline bool has_fixed_sizes(const ir::Value& v, int first_dimension = 0) {
  return std::all_of(v.type.sizes + first_dimension, v.type.sizes + v.type.rank,
                     [](Dim d) { return d.is_constant(); });
}
inline std::vector<int64_t> numbers(const std::vector<Dim>& dims) {
  std::vector<int64_t> list;
  for (const Dim d : dims) list.push_back(d.value());
  return list;
}
/// The sizes of a reshape, with 0 for a symbolic one.
inline std::vector<int64_t> numbers_or_zero(std::initializer_list<Dim> sizes) {
  std::vector<int64_t> list;
  for (const Dim d : sizes) list.push_back(d.is_constant() ? d.value() : 0);
  return list;
}
inline std::vector<int64_t> sizes_of(const ir::Value& v) {
  return numbers({v.type.sizes, v.type.sizes + v.type.rank});
}
/// `count` numbers from a list of as many, one or no elements.
inline std::vector<int64_t> several(const std::vector<Dim>& dims, size_t count,
                                    const std::vector<int64_t>& otherwise) {
  const std::vector<int64_t> list = numbers(dims);
  if (list.empty()) return otherwise;
  return list.size() == 1 ? std::vector<int64_t>(count, list[0]) : list;
}
inline std::vector<int64_t> pair_of(const std::vector<Dim>& dims,
                                    const std::vector<int64_t>& otherwise) {
  return several(dims, 2, otherwise);
}
inline std::vector<int64_t> joined(std::initializer_list<std::vector<int64_t>> lists) {
  std::vector<int64_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}
inline int64_t axis_of(Dim dim, int rank) {
  return dim.value() < 0 ? dim.value() + rank : dim.value();
}
inline double real(const Scalar& s) { return s.is_real ? s.real : static_cast<double>(s.integer); }
inline bool is_one(const Scalar* s) { return s != nullptr && real(*s) == 1; }

/// The runtime refuses larger steps: see Part::infer.
inline std::string refuses_steps(const std::vector<int64_t>& steps) {
  const bool are_few = std::ranges::all_of(steps, [](int64_t n) { return n <= most_step; });
  return are_few ? "" : "a window, a stride, a padding or a dilation is larger than 32768";
}

/// The library has depthwise kernels for windows of up to 25 elements. It computes larger ones as
/// a product for each channel, which takes 20 times as long as Taper's kernel.
inline std::string refuses_depthwise_window(int64_t elements) {
  if (elements <= 25) return "";
  return "the library is slow with depthwise windows of " + std::to_string(elements) + " elements";
}

}  // namespace taper::delegates::xnnpack
