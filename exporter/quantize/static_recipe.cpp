#include "taper/exporter/quantize/static_recipe.h"

#include <algorithm>

#include "taper/exporter/base/error.h"

namespace taper::quantize {
namespace {

bool is_static(const Rule& rule) { return rule.scheme.activations == Activations::int8_static; }

}  // namespace

std::optional<StaticRecipe> static_recipe(const Recipe& recipe) {
  const auto first = std::ranges::find_if(recipe.rules, is_static);
  if (first == recipe.rules.end()) return {};
  const auto fail = [&](const std::string& what) { throw ExportError(recipe.name + ": " + what); };
  StaticRecipe result{{}, first->scheme.equalize, first->scheme.smooth};
  StaticOptions& options = result.options;
  options.observer = first->scheme.observer;
  options.correct_bias = first->scheme.correct_bias;
  options.weight_bits = first->scheme.weight_bits;
  for (const Rule& rule : recipe.rules) {
    if (is_static(rule)) {
      if (rule.match != "*" || &rule != &recipe.rules.back())
        fail(
            "a rule with int8-static activations matches \"*\" and comes last; rules with "
            "\"float\" "
            "weights before it say what stays float");
    } else if (rule.scheme.weights == Scheme::Weights::floats) {
      options.exclude.push_back(rule.match);
    } else {
      fail("the rule for \"" + rule.match +
           "\" has blocks; beside int8-static activations a weight "
           "is \"int8-channel\" or \"float\"");
    }
  }
  return result;
}

}  // namespace taper::quantize
