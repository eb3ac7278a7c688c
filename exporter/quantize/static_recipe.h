#pragma once
#include <optional>

#include "taper/exporter/quantize/recipe.h"
#include "taper/exporter/quantize/static/options.h"

namespace taper::quantize {

/// What a recipe with static activations asks for.
struct StaticRecipe {
  StaticOptions options;
  bool equalize = false;         ///< static/equalize.h
  std::optional<double> smooth;  ///< the strength (static/smooth.h)
};

/// Empty: the recipe has no static activations. Nodes that match a rule with float weights stay
/// float. Throws ExportError if the recipe also puts weights into blocks, or if its static rules
/// differ.
std::optional<StaticRecipe> static_recipe(const Recipe& recipe);

}  // namespace taper::quantize
