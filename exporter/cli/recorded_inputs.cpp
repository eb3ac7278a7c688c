#include "taper/exporter/cli/recorded_inputs.h"

#include <algorithm>

#include "taper/exporter/cli/picture.h"

namespace taper::cli {

bool fits(const io::Array& array, const Callable::Input& input) {
  if (input.is_number) return array.numel() == 1 && is_integral(array.dtype);
  const auto same = [](int64_t given, int64_t wanted) {
    return wanted == any_extent || given == wanted;
  };
  return array.dtype == input.dtype && std::ranges::equal(array.sizes, input.sizes, same);
}

std::optional<std::vector<int>> choose_inputs(const std::map<int, io::Array>& recorded,
                                              const std::vector<Callable::Input>& inputs) {
  // ways[n]: how many ways to give the first n inputs with the arguments so far; 2 stands for more
  std::vector<int> ways(inputs.size() + 1, 0);
  std::vector<std::vector<int>> chosen(inputs.size() + 1);
  ways[0] = 1;
  for (const auto& [position, array] : recorded)
    for (size_t n = inputs.size(); n > 0; --n) {
      if (ways[n - 1] == 0 || !fits(array, inputs[n - 1])) continue;
      if (ways[n] == 0) {
        chosen[n] = chosen[n - 1];
        chosen[n].push_back(position);
      }
      ways[n] = std::min(2, ways[n] + ways[n - 1]);
    }
  return ways.back() == 1 ? std::optional(chosen.back()) : std::nullopt;
}

}  // namespace taper::cli
