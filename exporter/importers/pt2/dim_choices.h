// Translates LoadOptions::dims, the caller's choices for dimensions, to the program's symbols.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/importers/pt2/program.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::pt2 {

/// The symbol of a PyTorch expression that is only a symbol: "s77" for "Symbol('s77',
/// integer=True)". nullopt for other expressions.
std::optional<std::string> symbol_in(std::string_view expression);

/// Bounds of an expression over symbols. The program does not prove them; the caller promises them.
struct Promise {
  std::string text;  ///< "u0*x.0"
  std::map<std::string, std::string>
      symbols;  ///< PyTorch's name of each name in it: "s77" of "x.0"
  LoadOptions::Bounds bounds;
};

struct DimChoices {
  std::map<std::string, LoadOptions::DimOption> symbols;  ///< by PyTorch's name
  /// The name of every symbol for people: the name that the caller gave, else the first place of
  /// the size ("x.0"), else PyTorch's name.
  std::map<std::string, std::string> names;
  std::vector<Promise> promises;
  std::vector<std::string> unknown;  ///< keys that name nothing in this program
  std::vector<std::string> notes;    ///< notes for people
};

/// Dimension `dim` of an input in the notation of --dim: "x.0". If `dim` is -1, the input is a
/// number, and the text is its name: "n".
std::string place_text(const std::string& input, int dim);

/// The program's symbols: first those of the inputs, in order, then those that depend on data.
std::vector<Dimension> dimensions_of(const ExportedProgram& program);

/// Throws ExportError for bounds outside those of the program, for a place whose size is fixed or
/// computed, and for two keys that contradict each other.
DimChoices choose_dims(const ExportedProgram& program,
                       const std::map<std::string, LoadOptions::DimOption>& dims);

}  // namespace taper::pt2
