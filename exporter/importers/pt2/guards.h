// `guards_code`: the assumptions about the sizes of a call that PyTorch made when it exported a
// program.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/dim/dim.h"

namespace taper::pt2 {

/// The number that a guard refers to: size `dim` of the tensor argument `input` or, without `dim`,
/// the integer argument itself. nullopt if there is none.
using GuardNumber =
    std::function<std::optional<Dim>(const std::string& input, std::optional<int64_t> dim)>;

struct Guards {
  std::vector<Check> checks;        ///< without those that follow from the ranges of the symbols
  std::vector<std::string> unread;  ///< guards of other forms: alternatives, other functions
};
/// Reads guards as checks. An argument inside another one is written with PyTorch's name, "d_a":
///
///   L['d']['a'].size()[0] == (L['xs'][0].size()[0] // 2)
Guards parse_guards(const std::vector<std::string>& guards, const GuardNumber& number);

}  // namespace taper::pt2
