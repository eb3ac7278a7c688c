#include "taper/exporter/compare/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "taper/exporter/io/element.h"

namespace taper::compare {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// All elements as f64, which holds every value of the other floating types. A complex number is
/// two of them.
std::vector<double> numbers(const io::Array& array) {
  std::vector<double> list;
  for (int64_t i = 0; i < array.numel(); ++i) {
    const std::complex<double> z = io::complex_element(array, i);
    list.push_back(z.real());
    if (is_complex(array.dtype)) list.push_back(z.imag());
  }
  return list;
}

bool are_equal(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// ---- steps between floats

int significant_bits(DType floating) {
  switch (floating) {
    case DType::bf16:
      return 8;
    case DType::f16:
      return 11;
    case DType::f32:
    case DType::c64:
      return 24;
    default:
      return 53;
  }
}

/// The position of a float among all floats of its type. Neighbours have neighbouring positions;
/// zero has position 0.
template <class Bits, class T>
int64_t place_of(T value) {
  static_assert(sizeof(Bits) == sizeof(T));
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const auto magnitude = static_cast<int64_t>(static_cast<Bits>(bits & ~sign));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

int64_t place_of(double x, DType type) {
  switch (type) {
    case DType::bf16:
      return place_of<uint16_t>(BFloat16(static_cast<float>(x)));
    case DType::f16:
      return place_of<uint16_t>(Half(static_cast<float>(x)));
    case DType::f32:
    case DType::c64:
      return place_of<uint32_t>(static_cast<float>(x));
    default:
      return place_of<uint64_t>(x);
  }
}

double largest_ulp(std::span<const double> got, std::span<const double> want, DType type) {
  uint64_t largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (are_equal(got[i], want[i])) continue;
    if (!std::isfinite(got[i]) || !std::isfinite(want[i])) return infinity;
    const int64_t x = place_of(got[i], type), y = place_of(want[i], type);
    // the distance of two positions may need 64 bits
    largest = std::max(
        largest, static_cast<uint64_t>(std::max(x, y)) - static_cast<uint64_t>(std::min(x, y)));
  }
  return static_cast<double>(largest);
}

// ---- the angle

double largest_magnitude(std::span<const double> values) {
  double largest = 0;
  for (const double x : values)
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  return largest;
}

double cosine_of(std::span<const double> got, std::span<const double> want) {
  // scaled, so that no square overflows or becomes 0
  const double scale_got = largest_magnitude(got), scale_want = largest_magnitude(want);
  if (scale_got == 0 || scale_want == 0) return scale_got == scale_want ? 1 : 0;
  double product = 0, of_got = 0, of_want = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(want[i])) {
      if (are_equal(got[i], want[i])) continue;
      return nan;
    }
    if (!std::isfinite(got[i])) return nan;
    const double x = got[i] / scale_got, y = want[i] / scale_want;
    product += x * y, of_got += x * x, of_want += y * y;
  }
  return std::clamp(product / std::sqrt(of_got * of_want), -1.0, 1.0);
}

// ---- arrays

io::Array as_f64(const io::Array& array, std::span<const double> elements) {
  return io::Array::of<double>(array.sizes, elements);
}

}  // namespace

Measure measure(const io::Array& got, const io::Array& want) {
  const bool same_type = got.dtype == want.dtype;
  const bool floats =
      (is_floating(got.dtype) && is_floating(want.dtype)) || (same_type && is_complex(got.dtype));
  if (got.sizes != want.sizes || (!same_type && !floats))
    return {io::difference(got, want), {}, {}};
  if (same_type && std::ranges::equal(got.raw(), want.raw())) {
    if (!floats) return {};
    return {{}, 0, 1};
  }
  if (!floats) {
    Measure m{io::difference(got, want), {}, {}};
    // the bytes differ, but i64 numbers may differ so little that doubles do not show it
    const bool exact = got.dtype != DType::i64 && got.dtype != DType::u64;
    if (m.difference.absolute == 0 && !exact) m.difference.absolute = m.difference.relative = 1;
    return m;
  }
  const std::vector<double> x = numbers(got), y = numbers(want);
  const bool coarser = significant_bits(got.dtype) < significant_bits(want.dtype);
  return {same_type ? io::difference(got, want) : io::difference(as_f64(got, x), as_f64(want, y)),
          largest_ulp(x, y, coarser ? got.dtype : want.dtype), cosine_of(x, y)};
}

}  // namespace taper::compare
