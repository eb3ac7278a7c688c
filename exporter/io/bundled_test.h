// A call of a method with what it gives, as a program file carries it.
#pragma once
#include <numeric>
#include <string>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::io {

/// Inputs and outputs in the method's order. A result fits if no element is further from the
/// expected one than `absolute_tolerance`, or than `relative_tolerance` times the largest magnitude
/// of the expected result.
struct BundledTest {
  std::string method, name;
  std::vector<Array> inputs, outputs;
  double absolute_tolerance = 0, relative_tolerance = 0;

  int64_t size_bytes() const {
    const auto add = [](int64_t sum, const Array& a) {
      return sum + static_cast<int64_t>(a.size_bytes());
    };
    return std::accumulate(outputs.begin(), outputs.end(),
                           std::accumulate(inputs.begin(), inputs.end(), int64_t{0}, add), add);
  }
};

}  // namespace taper::io
