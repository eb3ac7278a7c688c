#include "taper/exporter/cli/check_result.h"

#include <iomanip>
#include <limits>
#include <ostream>
#include <sstream>

#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

std::string text_of(const Checked& result, const std::string& where) {
  const io::Difference& d = result.measure.difference;
  if (!d.other.empty()) return d.other;
  std::ostringstream text;
  text << std::setprecision(3);
  if (result.fits() && d.relative > result.tolerance) {
    text << "differs by " << d.absolute << ", which is rounding";
    return text.str();
  }
  text << d.relative << " of the largest magnitude";
  if (!result.fits())
    text << ", more than " << result.tolerance << ": element " << d.element << where << " is "
         << d.got << ", not " << d.want;
  return text.str();
}

}  // namespace

bool Checked::is_worse_than(const Checked& other) const {
  if (fits() != other.fits()) return other.fits();
  return measure.difference.relative > other.measure.difference.relative;
}

Checked check_result(const io::Array& got, const io::Array& want, double tolerance,
                     bool any_float) {
  const bool may_measure = any_float || got.dtype == want.dtype;
  return {may_measure ? compare::measure(got, want)
                      : compare::Measure{io::difference(got, want), {}, {}},
          tolerance};
}

Checked absent_instead_of(const io::Array& want) {
  Checked result;
  io::Difference& d = result.measure.difference;
  d.other = "absent, not " + want.describe();
  d.absolute = d.relative = std::numeric_limits<double>::infinity();
  return result;
}

bool print_result(std::ostream& out, const std::string& name, const Checked& result,
                  const std::string& where) {
  out << (result.fits() ? "ok    " : "WRONG ") << io::printable(name) << "  "
      << io::printable(text_of(result, where)) << '\n';
  return result.fits();
}

}  // namespace taper::cli
