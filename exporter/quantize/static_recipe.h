#pragma once
#include <optional>

#include "taper/exporter/quantize/recipe.h"
#include "taper/exporter/quantize/static/options.h"

namespace taper::quantize {

/// What a recipe with static activations asks for; empty: it has none. Nodes that match a rule with
/// float weights stay float. Throws ExportError if the recipe also puts weights into blocks, or if
/// its static rules differ.
std::optional<StaticOptions> static_options(const Recipe& recipe);

}  // namespace taper::quantize
