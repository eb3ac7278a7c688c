// The options --prune, --sparsity and --prune-exclude.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace taper::quantize {
struct Pruning;
}

namespace taper::cli {

class Command;

struct PruneChoice {
  std::string method;                ///< "": nothing is pruned
  std::string sparsity;              ///< "": 2:4
  std::vector<std::string> exclude;  ///< patterns
};
void add_prune_options(Command& command, PruneChoice& choice);
/// Throws UsageError for options that do not fit, or need --prune. `has_data`: for calibration.
std::optional<quantize::Pruning> pruning_of(const PruneChoice& choice, bool has_data);

}  // namespace taper::cli
