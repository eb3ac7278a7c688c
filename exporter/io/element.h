// One element of an array, whatever its dtype, for printing and comparing.
#pragma once
#include <complex>
#include <cstdint>
#include <string>

#include "taper/exporter/io/array.h"

namespace taper::io {

/// The `i`-th element, row by row, 0 ≤ i < numel(). i64 and u64 beyond 2^53 are rounded; bool is 0
/// or 1. Of c64, the real part.
double element(const Array& array, int64_t i);
/// The same of any array; the imaginary part is 0 unless the array is complex.
std::complex<double> complex_element(const Array& array, int64_t i);
/// "1.5"; "1.5-2j" of a complex array.
std::string element_text(const Array& array, int64_t i, int digits = 8);

/// The largest magnitude of all finite elements; 0 if there is none. c64: |a + bi|.
double largest_magnitude(const Array& array);

}  // namespace taper::io
