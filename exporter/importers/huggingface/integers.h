// Matrices of small unsigned integers with a scale and a zero point for each group along the input:
// element (i, j) is scale (q - zero).
#pragma once
#include <functional>

#include "taper/exporter/importers/huggingface/quantized_parts.h"

namespace taper::huggingface::internal {

struct Integers {
  int64_t out = 0, in = 0;
  int64_t group = 0;  ///< neighbours along the input, a multiple of 32
  int bits = 4;
  /// Writes the 32 integers of a row from `first` on.
  std::function<void(int64_t row, int64_t first, uint8_t* to)> values;
  std::function<int(int64_t row, int64_t group)> zero;
  std::function<float(int64_t row, int64_t group)> scale;
};

/// In blocks: q4_0 if every zero point is 8, else q4_1. 8 bits: q8_0. Offsets of q4_1 are rounded
/// to f16, by at most a hundredth of a step. Throws if f16 does not hold a scale.
Repacked in_blocks(const Named& weight, const Integers& m);

/// `config[key]`, or `otherwise` if there is none. Throws if it is no integer.
int64_t integer(const nlohmann::json& config, const char* key, int64_t otherwise);
/// The group that the configuration says; -1: the whole row. Throws if blocks of 32 do not divide
/// it.
int64_t group_of(const Named& weight, int64_t said, int64_t in);
/// Throws unless weights have 4 or 8 bits.
int bits_of(const nlohmann::json& config, const char* key);

}  // namespace taper::huggingface::internal
