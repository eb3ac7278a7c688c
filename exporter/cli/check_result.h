// One result beside the expected one, as `taper check` sees it.
#pragma once
#include <iosfwd>
#include <string>

#include "taper/exporter/compare/measure.h"

namespace taper::cli {

struct Checked {
  compare::Measure measure;
  double tolerance = 0, absolute_tolerance = 0;

  /// Within either tolerance; see Measure::exceeds.
  bool fits() const {
    const io::Difference& d = measure.difference;
    return !measure.exceeds(tolerance) || (d.other.empty() && d.absolute <= absolute_tolerance);
  }
  bool is_worse_than(const Checked& other) const;
};

/// Types must be equal, but for floating ones if `any_float` is set: programs of halves keep their
/// states in these.
Checked check_result(const io::Array& got, const io::Array& want, double tolerance,
                     bool any_float = false);
/// Of a result that is None.
Checked absent_instead_of(const io::Array& want);

/// Prints one line, "ok" or "WRONG". Returns whether it fits. `where` stands behind the element's
/// index.
bool print_result(std::ostream& out, const std::string& name, const Checked& result,
                  const std::string& where = "");

}  // namespace taper::cli
