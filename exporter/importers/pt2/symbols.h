// The symbols of a program's sizes: made from its ranges, bound by the inputs of a call.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/importers/pt2/program.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::pt2 {

class Symbols {
 public:
  /// `bounds` replaces the program's ranges. Throws ExportError for a name that the program does
  /// not have.
  Symbols(const ExportedProgram& program, const std::map<std::string, LoadOptions::Bounds>& bounds);

  /// A size with the program's own symbols. Throws ExportError.
  Dim size(const SymInt& size);
  Dim expression(const std::string& text);

  /// Bounds of the symbols that get their values from elements of tensors ("u0").
  std::map<std::string, Range> element_ranges() const;

  /// Sees to it that every symbol of `sizes`, the inputs' sizes, stands alone in some of them, so
  /// that a call binds it: where only `2*s + 1` occurs, that becomes a symbol, and s follows from
  /// it.
  void solve(const std::vector<eager::Dims*>& sizes);

 private:
  Dim symbol(const std::string& name);
  Range range_of(const std::string& name) const;
  Range range_of_expression(Dim whole);

  const ExportedProgram& program_;
  const std::map<std::string, LoadOptions::Bounds>& bounds_;
  std::map<std::string, Dim, std::less<>> symbols_;
};

}  // namespace taper::pt2
