// NumPy's .npy files. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// Reads format versions 1 to 3. Arrays in Fortran order are converted to row-major.
/// dtypes: |b1 → bool, u1 → u8, i1 → i8, <i2, <i4, <i8 → i16, i32, i64, <u2, <u4, <u8 → u16, u32,
/// u64, <f2 → f16, <f4 → f32, <f8 → f64, <c8 → c64. Throws FileError for anything else: other
/// dtypes, big-endian numbers, structured arrays, pickled objects, a damaged header, a size that
/// differs from what the header announces.
Array read_npy(const std::filesystem::path& path);

/// The same over bytes in memory; `name` stands in front of messages.
Array parse_npy(std::span<const std::byte> file, const std::string& name);

/// Writes format version 1, row-major, the data aligned to 64. Throws FileError for bf16 and the
/// floats of 8 bits, which NumPy does not have.
void write_npy(const std::filesystem::path& path, const Array& array);
Bytes format_npy(const Array& array);

}  // namespace taper::io
