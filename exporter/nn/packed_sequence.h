// Sequences of different lengths in one batch, for RNN, LSTM and GRU:
//
//   auto packed = nn::pack_padded_sequence(x, lengths, {.enforce_sorted = false});
//   auto [output, h, c] = lstm(packed);
//   auto [padded, lengths_again] = nn::pad_packed_sequence(output);
//
// PyTorch stores the steps one behind the other. Here the batch stays padded and masks choose its
// steps, so that sizes do not depend on data and a program can take lengths as an input. Sequences
// are never sorted; h and c have the order of the batch.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "taper/exporter/eager/tensor.h"

namespace taper::nn {

struct PackedSequence {
  eager::Tensor padded;   ///< (time, batch, …)
  eager::Tensor lengths;  ///< i64 (batch): the steps of each sequence, at least 1
};

struct PackOptions {
  bool batch_first = false;    ///< the input is (batch, time, …)
  bool enforce_sorted = true;  ///< refuse lengths that increase
};

/// input (time, batch, …), lengths i64 (batch). Throws EagerError unless each length lies in [1,
/// time], and if lengths increase while `enforce_sorted`. A trace cannot look at lengths. There the
/// program fails if a length lies outside.
PackedSequence pack_padded_sequence(const eager::Tensor& input, const eager::Tensor& lengths,
                                    PackOptions options = {}, Location here = Location::current());
PackedSequence pack_padded_sequence(const eager::Tensor& input, const std::vector<int64_t>& lengths,
                                    PackOptions options = {}, Location here = Location::current());
/// Packs tensors (length, …).
PackedSequence pack_sequence(const std::vector<eager::Tensor>& sequences,
                             bool enforce_sorted = true, Location here = Location::current());

struct PadOptions {
  bool batch_first = false;
  double padding_value = 0;
  /// The time of the result. Absent: the greatest length; in a trace, the time of the packed input.
  std::optional<int64_t> total_length = std::nullopt;
};

/// The padded tensor and the lengths. Throws EagerError if total_length is less than a length.
std::pair<eager::Tensor, eager::Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                                            PadOptions options = {},
                                                            Location here = Location::current());
/// The sequences one by one: (length, …) each. Not in a trace.
std::vector<eager::Tensor> unpack_sequence(const PackedSequence& sequence,
                                           Location here = Location::current());

}  // namespace taper::nn
