// Windows by which a signal is multiplied. Their lengths are numbers, so they are constants.
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/kernels/portable/special_functions.h"

namespace taper::eager::decompositions {
namespace {

namespace math = portable::math;
using math::pi;

/// value(k / n) for k < length. A periodic window repeats after n = length; a symmetric one ends at
/// n = length - 1.
template <const Operator& op, class Value>
Tensor window(const Arguments<op>& a, const Value& value) {
  const int64_t length = a.template integer<"window_length">();
  const DType dtype = a.template has<"dtype">() ? a.template dtype<"dtype">() : DType::f32;
  bool periodic = true;
  if constexpr (schema<op>.find("periodic") >= 0) periodic = a.template boolean<"periodic">();
  constexpr int64_t longest = int64_t{1} << 24;
  if (length < 0 || length > longest || !is_floating(dtype))
    throw EagerError(std::string(schema<op>.name) +
                     ": needs a length in [0, 2^24] and a floating dtype, got " +
                     std::to_string(length) + " and " + taper::name_of(dtype));
  const auto n = static_cast<double>(periodic ? length : length - 1);
  std::vector<double> elements;
  elements.reserve(static_cast<size_t>(length));
  for (int64_t k = 0; k < length; ++k)
    elements.push_back(length == 1 ? 1 : value(static_cast<double>(k) / n));
  return to(Tensor::from(elements, {length}), dtype);
}

/// alpha - beta * cos(2πt)
auto raised_cosine(double alpha, double beta) {
  return [=](double t) { return alpha - beta * std::cos(2 * pi * t); };
}
double triangle(double t) { return 1 - std::fabs(2 * t - 1); }
double blackman(double t) {
  return 0.42 - 0.5 * std::cos(2 * pi * t) + 0.08 * std::cos(4 * pi * t);
}

auto kaiser(double beta) {
  return [=](double t) {
    const double side = 2 * t - 1;
    return math::bessel_i(0, beta * std::sqrt(std::fmax(0, 1 - side * side))) /
           math::bessel_i(0, beta);
  };
}
constexpr double kaiser_beta = 12;  // PyTorch's default

}  // namespace

TAPER_DECOMPOSITION(hann_window) { return {window(a, raised_cosine(0.5, 0.5))}; }
TAPER_DECOMPOSITION(hann_window_periodic) { return {window(a, raised_cosine(0.5, 0.5))}; }
TAPER_DECOMPOSITION(hamming_window) { return {window(a, raised_cosine(0.54, 0.46))}; }
TAPER_DECOMPOSITION(hamming_window_periodic) { return {window(a, raised_cosine(0.54, 0.46))}; }
TAPER_DECOMPOSITION(hamming_window_periodic_alpha) {
  return {window(a, raised_cosine(a.real<"alpha">(), 0.46))};
}
TAPER_DECOMPOSITION(hamming_window_periodic_alpha_beta) {
  return {window(a, raised_cosine(a.real<"alpha">(), a.real<"beta">()))};
}
TAPER_DECOMPOSITION(bartlett_window) { return {window(a, triangle)}; }
TAPER_DECOMPOSITION(bartlett_window_periodic) { return {window(a, triangle)}; }
TAPER_DECOMPOSITION(blackman_window) { return {window(a, blackman)}; }
TAPER_DECOMPOSITION(blackman_window_periodic) { return {window(a, blackman)}; }
TAPER_DECOMPOSITION(kaiser_window) { return {window(a, kaiser(kaiser_beta))}; }
TAPER_DECOMPOSITION(kaiser_window_periodic) { return {window(a, kaiser(kaiser_beta))}; }
TAPER_DECOMPOSITION(kaiser_window_beta) {
  const double beta = a.real<"beta">();
  if (!(std::fabs(beta) <= 700)) throw EagerError("kaiser_window: beta must lie in [-700, 700]");
  return {window(a, kaiser(beta))};
}

}  // namespace taper::eager::decompositions
