#include "taper/exporter/io/element.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "taper/kernels/float8.h"

namespace taper::io {
namespace {

template <class Float8>
double value_of(const Array& array, size_t i) {
  Float8 element;
  element.bits = std::to_integer<uint8_t>(array.raw()[i]);
  return static_cast<double>(static_cast<float>(element));
}

}  // namespace

double element(const Array& array, int64_t index) {
  const auto i = static_cast<size_t>(index);
  switch (array.dtype) {
    case DType::boolean:
      return array.values<bool>()[i];
    case DType::u8:
      return array.values<uint8_t>()[i];
    case DType::i8:
      return array.values<int8_t>()[i];
    case DType::i16:
      return array.values<int16_t>()[i];
    case DType::i32:
      return array.values<int32_t>()[i];
    case DType::i64:
      return static_cast<double>(array.values<int64_t>()[i]);
    case DType::f16:
      return array.values<Half>()[i];
    case DType::bf16:
      return array.values<BFloat16>()[i];
    case DType::f32:
      return array.values<float>()[i];
    case DType::f64:
      return array.values<double>()[i];
    case DType::c64:
      return array.values<Complex64>()[i].real;
    case DType::f8_e4m3fn:
      return value_of<Float8E4M3>(array, i);
    case DType::f8_e5m2:
      return value_of<Float8E5M2>(array, i);
    case DType::u16:
      return array.values<uint16_t>()[i];
    case DType::u32:
      return array.values<uint32_t>()[i];
    case DType::u64:
      return static_cast<double>(array.values<uint64_t>()[i]);
    default:
      break;
  }
  return 0;
}

std::complex<double> complex_element(const Array& array, int64_t i) {
  if (!is_complex(array.dtype)) return element(array, i);
  const Complex64 z = array.values<Complex64>()[static_cast<size_t>(i)];
  return {z.real, z.imag};
}

std::string element_text(const Array& array, int64_t i, int digits) {
  const std::complex<double> z = complex_element(array, i);
  std::ostringstream text;
  text << std::setprecision(digits) << z.real();
  if (is_complex(array.dtype)) text << std::showpos << z.imag() << 'j';
  return text.str();
}

double largest_magnitude(const Array& array) {
  double largest = 0;
  for (int64_t i = 0; i < array.numel(); ++i)
    if (const double x = std::abs(complex_element(array, i)); std::isfinite(x))
      largest = std::max(largest, x);
  return largest;
}

}  // namespace taper::io
