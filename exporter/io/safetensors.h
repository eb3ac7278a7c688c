// safetensors: named arrays behind a JSON header, nothing executable.
//
//   u64 N | N bytes of JSON | data
//   {"__metadata__": {"format": "pt"}, "fc.weight": {"dtype": "F32", "shape": [10, 84],
//   "data_offsets": [0, 3360]}, …}
//
// Offsets count from the byte behind the header. Format: https://github.com/huggingface/safetensors
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// A file's content.
struct SafeTensors {
  ArrayMap tensors;
  std::map<std::string, std::string> metadata;  ///< the strings of `__metadata__`

  /// The tensor, or FileError that lists near names: "no tensor 'fc.wieght'; there are fc.bias,
  /// fc.weight".
  const Array& at(const std::string& name) const;
};

/// Reads and checks a file completely: the header's JSON has no other keys than these and none
/// twice, every size is what dtype and shape ask for, and the ranges cover the data without overlap
/// or hole. Throws FileError otherwise, and for dtypes that Taper does not have (F8_E8M0, F4,
/// F6_…): it reads BOOL, U8, U16, U32, U64, I8, I16, I32, I64, F8_E4M3, F8_E5M2, F16, BF16, F32,
/// F64, C64.
SafeTensors read_safetensors(const std::filesystem::path& path);

/// The same over bytes in memory; `name` stands in front of messages.
SafeTensors parse_safetensors(std::span<const std::byte> file, const std::string& name);

/// Writes the tensors in the order of falling element size, then name, so that each is aligned; the
/// same content gives the same bytes. Throws FileError if a name or text is not UTF-8, or a tensor
/// is called `__metadata__`.
void write_safetensors(const std::filesystem::path& path, const SafeTensors& content);
Bytes format_safetensors(const SafeTensors& content);

}  // namespace taper::io
