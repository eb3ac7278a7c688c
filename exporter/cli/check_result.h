// Compares one result with the expected one, for `taper check`.
#pragma once
#include <iosfwd>
#include <string>

#include "taper/exporter/compare/measure.h"

namespace taper::cli {

struct Checked {
  compare::Measure measure;
  double tolerance = 0, absolute_tolerance = 0;

  /// Whether it is within one of the two tolerances; see Measure::exceeds.
  bool fits() const {
    const io::Difference& d = measure.difference;
    return !measure.exceeds(tolerance) || (d.other.empty() && d.absolute <= absolute_tolerance);
  }
  bool is_worse_than(const Checked& other) const;
};

/// Types must be equal. With `any_float`, floating types may differ, because programs in half
/// precision keep their states in halves.
Checked check_result(const io::Array& got, const io::Array& want, double tolerance,
                     bool any_float = false);
/// The same for a result that is None.
Checked absent_instead_of(const io::Array& want);

/// Prints one line, "ok" or "WRONG". Returns whether the result fits. `where` follows the index of
/// the element.
bool print_result(std::ostream& out, const std::string& name, const Checked& result,
                  const std::string& where = "");

}  // namespace taper::cli
