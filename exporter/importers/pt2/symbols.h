// The symbols in a program's sizes. The program's ranges bound them, and the inputs of a call give
// them values.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/importers/pt2/dim_choices.h"
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// A symbol that the program reads from a tensor.
struct ElementSymbol {
  std::string name;
  Range range;
};

class Symbols {
 public:
  /// `choices` override the program's ranges and names.
  Symbols(const ExportedProgram& program, const DimChoices& choices)
      : program_(program), choices_(choices) {}

  /// A size of the program, as an expression over its symbols. Throws ExportError.
  Dim size(const SymInt& size);
  Dim expression(const std::string& text);

  /// Names and bounds of the symbols that get their values from elements of tensors ("u0").
  std::map<std::string, ElementSymbol> elements() const;

  /// Rewrites the inputs' sizes so that each of their symbols is a whole size somewhere: a call
  /// binds symbols there. If x has only the size `2*s + 1`, that size becomes the symbol x.0, and s
  /// becomes `(x.0 - 1)//2`.
  void solve(std::vector<Input>& inputs);

  /// The symbols of the inputs' sizes, by PyTorch's names. Each is an expression over the sizes
  /// that a call binds.
  const std::map<std::string, Dim, std::less<>>& by_name() const { return symbols_; }

 private:
  Dim symbol(const std::string& name);
  Range range_of(const std::string& name) const;
  const std::string& name_of(const std::string& symbol) const;
  Range range_of_expression(Dim whole);

  const ExportedProgram& program_;
  const DimChoices& choices_;
  std::map<std::string, Dim, std::less<>> symbols_;
};

}  // namespace taper::pt2
