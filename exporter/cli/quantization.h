// Quantizes and prunes the weights of a model on its way to a program: the options --recipe,
// --prune, --calibrate, --samples, --target-accuracy, --report and others. Where Taper is built
// without exporter/quantize, it refuses (without_quantize.cpp).
#pragma once
#include <iosfwd>
#include <memory>
#include <string>

#include "taper/exporter/cli/picture.h"
#include "taper/exporter/cli/pruning.h"
#include "taper/exporter/export_options.h"

namespace taper::cli {

class Command;
class Stages;

struct QuantizeChoice {
  std::string recipe;        ///< a name or a file; "": nothing is quantized
  PruneChoice prune;         ///< before that
  std::string calibrate;     ///< recorded inputs, or a text for a language model
  std::string report;        ///< a page to write
  int64_t samples = 64;      ///< of the calibration data at most
  PictureOptions pictures;   ///< of a folder of pictures
  std::string target;        ///< how good the model must stay: "top-1 >= 0.98"; "": unknown
  std::string evaluate;      ///< data for that; "": the calibration data
  bool sensitivity = false;  ///< with static activations: measure which nodes do harm
};
/// Adds --cache-dtype, for language models.
void add_cache_dtype(Command& command, std::string& dtype);
/// A recipe for the caches of a language model, "kv-int8" or "kv-int4", is none for its weights.
/// Takes it away, and returns what caches shall hold: "int8"; "" for any other recipe.
std::string take_cache_recipe(std::string& recipe);
/// The same for caches that --cache-dtype gives: they get what the recipe says. Throws UsageError
/// if both say different things.
void take_cache_recipe(std::string& recipe, std::string& dtype);
void add_quantize_options(Command& command, QuantizeChoice& choice);

class Quantization {
 public:
  /// `model` is named in errors; a text is read with its tokenizer. Throws ExportError for a recipe
  /// that cannot be read, and UsageError for options that need one.
  Quantization(const QuantizeChoice& choice, std::string model);
  ~Quantization();
  Quantization(const Quantization&) = delete;

  /// The stages that it adds to those of an export.
  int stages() const;
  /// Makes the export quantize. `stages` shows what goes on, and outlives the export.
  void add_to(ExportOptions& options, Stages& stages);
  /// Prints what became of each weight, or only their sum, and writes the page. `program` was
  /// written: the page says how long its modules take.
  void print(std::ostream& out, bool all, const std::string& program) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::cli
