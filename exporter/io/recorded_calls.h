// Calls of a model with what they gave, recorded elsewhere: the reference that a program is checked
// against. A safetensors file with keys
//
//   set<k>.input.<i>     argument i of call k, constants counted; a Python number is 0-dim
//   set<k>.output.<i>    result i
//   set<k>.buffer.<path> a buffer that the call changed, afterwards
//   set<k>.mutated.<i>   an argument that the call changed, afterwards
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::io {

/// Indices count None and other constants, which have no array.
struct RecordedCall {
  std::map<int, Array> inputs, outputs, mutated;
  std::map<std::string, Array> buffers;
};

/// The calls of a file in order, to be made one after the other; of several models those whose keys
/// begin with "MODEL.". Throws FileError for keys of
/// another form and for calls that are left out.
std::vector<RecordedCall> read_recorded_calls(const std::filesystem::path& path,
                                              const std::string& model = "");

/// The models whose calls a file has, "encoder" of "encoder.set0.input.0"; empty: its keys name
/// none. Throws FileError.
std::vector<std::string> recorded_models(const std::filesystem::path& path);

/// Of all expected results of a call, see Scale in io/tolerance.h.
double scale_of(const RecordedCall& call);

/// How far `got` is from `want`.
struct Difference {
  /// The largest, of complex numbers its magnitude; infinite where one is NaN and the other is not.
  double absolute = 0;
  double relative = 0;    ///< `absolute` over the largest magnitude in `want`
  int64_t element = 0;    ///< where
  std::string got, want;  ///< the elements there
  std::string other;      ///< what cannot be compared: "f32 (2, 3), not f32 (3, 2)"
};
/// Dtypes and sizes must be equal.
Difference difference(const Array& got, const Array& want);

}  // namespace taper::io
