#include "taper/exporter/cli/pruning.h"

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/quantize/prune.h"

namespace taper::cli {
namespace {

std::string check_sparsity(const std::string& text) {
  try {
    quantize::parse_sparsity(text);
    return "";
  } catch (const ExportError& e) {
    return e.what();
  }
}

}  // namespace

void add_prune_options(Command& command, PruneChoice& choice) {
  command
      .option("--prune METHOD", choice.method,
              "Sets weights to zero first: magnitude, or wanda and sparsegpt, which learn from "
              "--calibrate. Programs become neither smaller nor faster by it")
      .one_of({"magnitude", "wanda", "sparsegpt"});
  command
      .option("--sparsity PATTERN", choice.sparsity,
              "Which weights --prune sets to zero: 2:4, so that two of four neighbours stay "
              "(default); 0.5, a part of all; 0.5:4x8, a part of the blocks of 4 rows and 8 "
              "columns")
      .checked_by(check_sparsity);
  command
      .option("--prune-exclude PATTERN", choice.exclude,
              "Weights that --prune leaves: by path, module or operator, with * and ?")
      .one_value();
}

std::optional<quantize::Pruning> pruning_of(const PruneChoice& choice, bool has_data) {
  if (choice.method.empty()) {
    if (!choice.sparsity.empty()) throw UsageError("--sparsity", "it needs --prune");
    if (!choice.exclude.empty()) throw UsageError("--prune-exclude", "it needs --prune");
    return std::nullopt;
  }
  quantize::Pruning pruning{.method = quantize::pruning_method(choice.method)};
  if (!choice.sparsity.empty()) pruning.sparsity = quantize::parse_sparsity(choice.sparsity);
  pruning.exclude = choice.exclude;
  if (pruning.method != quantize::Pruning::Method::magnitude && !has_data)
    throw UsageError("--calibrate",
                     choice.method + " needs inputs, which show what weights matter");
  if (pruning.method == quantize::Pruning::Method::sparsegpt && pruning.sparsity.has_blocks())
    throw UsageError("--sparsity",
                     "sparsegpt prunes single weights; for blocks take magnitude or "
                     "wanda");
  return pruning;
}

}  // namespace taper::cli
