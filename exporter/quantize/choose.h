// What a recipe says about a weight. Internal.
#pragma once
#include <string>

#include "taper/exporter/quantize/block_format.h"
#include "taper/exporter/quantize/matrix.h"
#include "taper/exporter/quantize/readers.h"
#include "taper/exporter/quantize/recipe.h"

namespace taper::quantize {

/// The first rule that fits a weight, or one of the nodes that read it; nullptr: none does.
const Rule* rule_for(const Recipe& recipe, const Weight& weight);

/// Folds batch norms into weights, if a rule widens them: later passes fold into f32 weights alone.
void fold_batch_norms(const std::vector<ir::Graph*>& graphs, const Recipe& recipe);

/// Marks weights that no kernel reads in blocks, if their rule says "widen": true. Nothing hinders
/// them then.
void widen_others(const Recipe& recipe, std::vector<Weight>& weights);

struct ChosenFormat {
  const BlockFormat* format = nullptr;  ///< nullptr: no format of the scheme fits
  int64_t depth = 0;                    ///< of a row, with the zeros at its end
  std::string why;                      ///< why none fits

  int64_t bytes(int64_t rows) const { return rows * depth / format->elements * format->bytes; }
};
/// The first format of a scheme of blocks that the rows fit, with zeros at their ends if need be.
ChosenFormat choose_format(const Scheme& scheme, const Weight& weight);

/// A weight as f32, one row for each output, with zeros at the ends of rows.
Matrix rows_of(const Weight& weight, int64_t padded_depth);

}  // namespace taper::quantize
