#pragma once
#include <initializer_list>
#include <string>
#include <utility>

#include "taper/exporter/base/error.h"

namespace taper::nn::internal {

/// Throws EagerError at the line that makes a layer: "Linear: out_features -1 is negative".
inline void check_sizes(const std::string& layer,
                        std::initializer_list<std::pair<const char*, int64_t>> sizes,
                        Location here) {
  for (const auto& [name, size] : sizes)
    if (size < 0)
      throw EagerError(here, layer + ": " + name + " " + std::to_string(size) + " is negative");
}

}  // namespace taper::nn::internal
