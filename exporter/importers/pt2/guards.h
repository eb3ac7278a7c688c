// What PyTorch assumed about the sizes of a call when it exported a program: `guards_code`.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/ir/dim.h"

namespace taper::pt2 {

/// The number that a guard's text means: extent `dim` of the tensor argument `input`, or the
/// integer argument itself. Nothing: there is none.
using GuardNumber =
    std::function<std::optional<Dim>(const std::string& input, std::optional<int64_t> dim)>;

/// Guards as checks, those left out that the ranges of the symbols prove.
///
///   L['a'].size()[0] == (L['c'].size()[0] // 2)
///
/// Guards of other forms (alternatives, other functions, arguments inside of lists) say nothing
/// that operators would not check themselves, and are left out, too.
std::vector<Check> parse_guards(const std::vector<std::string>& guards, const GuardNumber& number);

}  // namespace taper::pt2
