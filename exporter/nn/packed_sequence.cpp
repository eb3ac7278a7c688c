#include "taper/exporter/nn/packed_sequence.h"

#include <algorithm>
#include <string>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/positions.h"

namespace taper::nn {

using eager::Tensor;

namespace {

void check_lengths(const std::vector<int64_t>& lengths, int64_t time, bool sorted, Location here) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::string named = "pack_padded_sequence: length " + std::to_string(lengths[i]) +
                              " of sequence " + std::to_string(i);
    if (lengths[i] < 1 || lengths[i] > time)
      throw EagerError(here, named + " must lie in [1, " + std::to_string(time) + "]");
    if (sorted && i > 0 && lengths[i] > lengths[i - 1])
      throw EagerError(here, named +
                                 " is greater than the one before; sort the batch, or pass "
                                 "enforce_sorted = false");
  }
}

/// (time, batch, …), as long as `time`.
Tensor with_time(const Tensor& padded, int64_t time) {
  const Dim now = padded.size(0);
  if (proves_less(Dim(time), now)) return padded.slice(0, 0, time);
  eager::Dims more = padded.sizes();
  more[0] = Dim(time) - now;
  return same(now, Dim(time)) ? padded : eager::cat({padded, eager::zeros(more, padded.dtype())});
}

}  // namespace

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, PackOptions options,
                                    Location here) {
  const PlaceScope scope(here);
  if (input.rank() < 2 || lengths.rank() != 1 || lengths.dtype() != DType::i64)
    throw EagerError(here,
                     "pack_padded_sequence: needs an input (time, batch, …) and i64 lengths "
                     "(batch), got " +
                         eager::to_string(input.sizes()) + " and " +
                         eager::to_string(lengths.sizes()) + " " + taper::name_of(lengths.dtype()));
  Tensor padded = options.batch_first ? input.transpose(0, 1) : input;
  if (proves_different(padded.size(1), lengths.size(0)))
    throw EagerError(here, "pack_padded_sequence: there are " + lengths.size(0).to_string() +
                               " lengths for a batch of " + padded.size(1).to_string());
  if (!lengths.is_traced() && !input.is_traced()) {
    const std::vector<int64_t> known = lengths.to_vector<int64_t>();
    check_lengths(known, padded.size(0).value(), options.enforce_sorted, here);
    if (!known.empty()) padded = with_time(padded, *std::ranges::max_element(known));
  }
  return {padded, lengths};
}
PackedSequence pack_padded_sequence(const Tensor& input, const std::vector<int64_t>& lengths,
                                    PackOptions options, Location here) {
  return pack_padded_sequence(
      input, Tensor::from(lengths, {static_cast<int64_t>(lengths.size())}, here), options, here);
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted,
                             Location here) {
  std::vector<int64_t> lengths;
  for (const Tensor& sequence : sequences) {
    if (!sequence.defined() || sequence.rank() < 1)
      throw EagerError(here, "pack_sequence: each sequence needs a first dimension of steps");
    lengths.push_back(sequence.size(0).value());
  }
  return pack_padded_sequence(eager::pad_sequence(sequences, false, 0, "right", here), lengths,
                              {.enforce_sorted = enforce_sorted}, here);
}

std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, PadOptions options,
                                              Location here) {
  const PlaceScope scope(here);
  Tensor padded = sequence.padded;
  if (options.total_length && proves_less(Dim(*options.total_length), padded.size(0)))
    throw EagerError(here, "pad_packed_sequence: total_length " +
                               std::to_string(*options.total_length) + " is less than " +
                               padded.size(0).to_string() + ", the steps of the longest sequence");
  if (options.total_length) padded = with_time(padded, *options.total_length);
  eager::Dims at(static_cast<size_t>(padded.rank()), Dim(1)), of(at);
  at[0] = padded.size(0), of[1] = padded.size(1);
  const Tensor inside =
      internal::positions(padded.size(0)).reshape(at) < sequence.lengths.reshape(of);
  padded = eager::where(inside, padded, Scalar(options.padding_value));
  return {options.batch_first ? padded.transpose(0, 1) : padded, sequence.lengths};
}

std::vector<Tensor> unpack_sequence(const PackedSequence& sequence, Location here) {
  std::vector<Tensor> sequences;
  const std::vector<int64_t> lengths = sequence.lengths.to_vector<int64_t>(here);
  for (size_t b = 0; b < lengths.size(); ++b)
    sequences.push_back(
        sequence.padded.select(1, static_cast<int64_t>(b), here).slice(0, 0, lengths[b], 1, here));
  return sequences;
}

}  // namespace taper::nn
