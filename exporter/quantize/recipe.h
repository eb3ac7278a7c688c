// Which weights are quantized, and how: a short list of rules.
//
//   [{"match": "embedding", "scheme": "int8"},
//    {"match": "*.down_proj", "scheme": {"weights": ["q4_k", "q5_1"], "method": "mse"}},
//    {"match": "*", "scheme": "int4"}]
//
// The first rule that matches a weight decides. docs/quantization.md describes the words.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/quantize/static/observer.h"
#include "taper/exporter/quantize/static/pattern.h"
#include "taper/runtime/core/layout.h"

namespace taper::quantize {

/// How integers are chosen for a scale, and scales for a weight.
enum class Method : uint8_t {
  best,     ///< gptq where there is calibration data, else what is measured to be best
  nearest,  ///< round to nearest; the scale follows from the range
  mse,      ///< round to nearest; the scale has the least squared error
  hqq,      ///< half-quadratic: for formats with offsets (hqq.h)
  gptq,     ///< errors make up for each other; needs calibration data (gptq.h)
  gptq_act_order,
};

/// What products do with the values that a weight is multiplied with.
enum class Activations : uint8_t {
  as_exported,   ///< rounded to 8 bits unless the export is exact
  floats,        ///< f32
  int8_dynamic,  ///< rounded to 8 bits while the program runs, 32 elements at a time
  int8_static,   ///< integers throughout, with scales from calibration
};

struct Scheme {
  enum class Weights : uint8_t { floats, blocks, float8, int8_channel };
  Weights weights = Weights::floats;
  std::vector<Layout> layouts;  ///< of blocks: the first one that fits the rows
  Method method = Method::best;
  Activations activations = Activations::as_exported;
  bool awq = false;  ///< of blocks: channels are scaled first (awq.h)
  /// Of blocks: a layer learns from the inputs that it gets when the layers before it are rounded.
  bool sequential = false;
  /// Of blocks: weights that no kernel reads in blocks, such as those of convolutions, become f32
  /// in each call.
  bool widen = false;
  // of static activations
  ObserverOptions observer;
  bool correct_bias = true;      ///< StaticOptions::correct_bias
  int weight_bits = 8;           ///< StaticOptions::weight_bits
  bool equalize = false;         ///< static/equalize.h
  std::optional<double> smooth;  ///< the strength (static/smooth.h)
};

struct Rule {
  /// `*` and `?` stand for any characters and for one. Compared with the path of the weight, the
  /// modules and the operators that read it, and the words "first" and "last": the products that
  /// come first and last in the graph.
  std::string match;
  Scheme scheme;
};

struct Recipe {
  std::string name;  ///< "int4-g32", or the file
  std::vector<Rule> rules;
  bool is_shipped = false;
};

/// Throws ExportError, which names the rule and the key.
Recipe parse_recipe(std::string_view json, const std::string& name);
/// One that ships by its name, or a file. Throws ExportError.
Recipe find_recipe(const std::string& name_or_file);
/// The names of those that ship.
std::vector<std::string> recipe_names();
/// The text of one that ships.
std::string_view shipped_recipe(std::string_view name);

}  // namespace taper::quantize
