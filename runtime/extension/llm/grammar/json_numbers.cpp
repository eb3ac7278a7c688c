#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "taper/runtime/extension/llm/grammar/json_schema.h"

namespace taper::llm::json_text {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double value_of(const std::string& digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  const bool is_tiny = digits.find('-', 1) != std::string::npos;
  return is_tiny ? 0 : digits[0] == '-' ? -infinity : infinity;
}

// From `low` to below `high`.
struct Interval {
  double low, high;
};

// A step whose multiples are exact in binary.
bool is_exact(double step) { return step * 0x1p20 == std::floor(step * 0x1p20); }

// Whether a number that may be written lies in the interval.
bool has_valid(const Schema& s, double step, Interval in) {
  const double low = std::max(in.low, s.minimum), high = std::min(in.high, s.maximum);
  if (!(low <= high)) return false;
  if (low == high && (low == in.high || s.excludes_minimum || s.excludes_maximum)) {
    return low != in.high && !(low == s.minimum && s.excludes_minimum) &&
           !(low == s.maximum && s.excludes_maximum);
  }
  if (step == 0 || !is_exact(step) || !std::isfinite(low)) return true;
  double multiple = std::ceil(low / step) * step;
  if (multiple == s.minimum && s.excludes_minimum) multiple += step;
  return multiple < in.high && multiple <= s.maximum &&
         !(multiple == s.maximum && s.excludes_maximum);
}

Schema mirrored(const Schema& s) {
  Schema m;
  m.minimum = -s.maximum;
  m.maximum = -s.minimum;
  m.excludes_minimum = s.excludes_maximum;
  m.excludes_maximum = s.excludes_minimum;
  return m;
}

double step_of(const Schema& s) {
  if (!s.is_integral()) return s.multiple_of;
  return s.multiple_of == std::floor(s.multiple_of) ? std::max(s.multiple_of, 1.0) : 1;
}

// How many decimals a step has, such as 2 for 0.05.
size_t decimals_of(double step) {
  size_t decimals = 0;
  for (double scaled = step; decimals < 20 && std::abs(scaled - std::round(scaled)) > 1e-9;
       scaled = step * std::pow(10, static_cast<double>(decimals)))
    ++decimals;
  return decimals;
}

// Whether more decimals than the `places` that are there can make a multiple of the step. Behind
// the decimals of the step only zeros help.
bool has_valid_fraction(const Schema& s, double step, const std::string& digits, size_t places) {
  constexpr size_t most_tried = 4;
  const size_t decimals = decimals_of(step);
  if (places >= decimals) return is_valid_number(s, digits + "0");
  if (decimals - places > most_tried) return true;  // nobody knows
  const int count = static_cast<int>(std::pow(10, static_cast<double>(decimals - places)) + 0.5);
  for (int i = 0; i < count; ++i)
    if (is_valid_number(s, digits + std::to_string(count + i).substr(1))) return true;
  return false;
}

}  // namespace

bool Schema::is_bounded() const {
  return minimum != -infinity || maximum != infinity || multiple_of != 0;
}

bool may_become_valid(const Schema& schema, const std::string& digits) {
  if (digits[0] == '-') {
    Schema positive = mirrored(schema);
    const double step = step_of(schema);
    positive.multiple_of = step;
    positive.types = schema.types;
    if (digits.size() > 1) return may_become_valid(positive, digits.substr(1));
    return has_valid(positive, step, {0, infinity});
  }
  if (digits.find_first_of("eE") != std::string::npos) return true;
  const double step = step_of(schema), value = value_of(digits);
  const size_t point = digits.find('.');
  if (point != std::string::npos && step != 0)
    return has_valid_fraction(schema, step, digits, digits.size() - point - 1);
  if (point != std::string::npos) {
    const auto places = static_cast<double>(digits.size() - point - 1);
    // one more digit than there are, so that rounding refuses nothing
    return has_valid(schema, step, {value, value + std::pow(10, -places) * 1.000001});
  }
  if (digits == "0") return has_valid(schema, step, {0, 1});
  for (double scale = 1; value * scale <= std::max(schema.maximum, 1.0) && scale < 1e300;
       scale *= 10) {
    if (has_valid(schema, step, {value * scale, (value + 1) * scale})) return true;
    if (schema.maximum == infinity && value * scale > schema.minimum && scale > 1e20) break;
  }
  return false;
}

bool is_valid_number(const Schema& s, const std::string& digits) {
  const double value = value_of(digits);
  if (value < s.minimum || (s.excludes_minimum && value == s.minimum)) return false;
  if (value > s.maximum || (s.excludes_maximum && value == s.maximum)) return false;
  if (s.multiple_of == 0) return true;
  if (!std::isfinite(value)) return false;
  if (s.multiple_of == std::floor(s.multiple_of)) return std::fmod(value, s.multiple_of) == 0;
  const double times = value / s.multiple_of;
  return times == std::floor(times);
}

}  // namespace taper::llm::json_text
