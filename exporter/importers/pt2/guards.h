// The assumptions that PyTorch made about the sizes of a call when it exported a program:
// `guards_code`.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/dim/dim.h"

namespace taper::pt2 {

/// The number that a text in a guard means: extent `dim` of the tensor argument `input`, or,
/// without `dim`, the integer argument itself. Nothing if there is none.
using GuardNumber =
    std::function<std::optional<Dim>(const std::string& input, std::optional<int64_t> dim)>;

struct Guards {
  std::vector<Check> checks;        ///< but for those that the ranges of the symbols prove
  std::vector<std::string> unread;  ///< of other forms: alternatives, other functions
};
/// Reads guards as checks. An argument inside another one has PyTorch's name, "d_a":
///
///   L['d']['a'].size()[0] == (L['xs'][0].size()[0] // 2)
Guards parse_guards(const std::vector<std::string>& guards, const GuardNumber& number);

}  // namespace taper::pt2
