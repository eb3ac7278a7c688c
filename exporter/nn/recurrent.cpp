#include "taper/exporter/nn/recurrent.h"

#include <cmath>

#include "taper/exporter/eager/decompositions/recurrent.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/text.h"
#include "taper/exporter/nn/check.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {
namespace {

Parameter even(const Ints& sizes, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  return init::uniform_(Tensor::empty(sizes), -bound, bound);
}

using eager::decompositions::Cell;

/// Layers as the operators take them; packed sequences are always (time, batch, …).
template <class Options>
eager::decompositions::Layers packed_layers(const char* name, Cell cell, const Options& o,
                                            bool training) {
  return {name, cell, o.bias, o.num_layers, o.dropout, training, o.bidirectional, false};
}

/// A result without the batch of one that `with_batch` made.
Tensor without_batch(const Tensor& result, const Tensor& input, int64_t dim) {
  return input.rank() == 2 ? result.squeeze(dim) : result;
}

}  // namespace

Recurrent::Recurrent(const char* class_name, int64_t gates, int64_t input_size, int64_t hidden_size,
                     RecurrentOptions options, int64_t proj_size, Location here)
    : class_name_(class_name),
      input_size_(input_size),
      hidden_size_(hidden_size),
      proj_size_(proj_size),
      options_(options) {
  internal::check_sizes(class_name, {{"input_size", input_size}}, here);
  const std::string prefix = std::string(class_name) + ": ";
  for (const auto& [name, size] :
       {std::pair("hidden_size", hidden_size), std::pair("num_layers", options.num_layers)})
    if (size < 1)
      throw EagerError(here, prefix + name + " must be 1 or more, got " + std::to_string(size));
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw EagerError(
        here, prefix + "dropout " + eager::to_text(options.dropout) + " is not a probability");
  if (proj_size < 0 || proj_size >= hidden_size)
    throw EagerError(here, prefix + "proj_size must lie in [0, hidden_size), got " +
                               std::to_string(proj_size) + " for hidden_size " +
                               std::to_string(hidden_size));
  const int64_t outputs = proj_size > 0 ? proj_size : hidden_size,
                directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string end = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      const auto add = [&](const char* name, const Ints& sizes) {
        names_.push_back(name + end);
        weights_.push_back(even(sizes, hidden_size));
      };
      add("weight_ih", {gates * hidden_size, layer == 0 ? input_size : outputs * directions});
      add("weight_hh", {gates * hidden_size, outputs});
      if (options.bias) {
        add("bias_ih", {gates * hidden_size});
        add("bias_hh", {gates * hidden_size});
      }
      if (proj_size > 0) add("weight_hr", {proj_size, hidden_size});
    }
  set_names();
}

void Recurrent::visit_members(Members& members) {
  for (size_t i = 0; i < weights_.size(); ++i) members.add(names_[i], weights_[i]);
}

Tensor Recurrent::with_batch(const Tensor& input) const {
  if (input.rank() != 2 && input.rank() != 3)
    throw EagerError(place(), std::string(class_name_) + ": input " +
                                  eager::to_string(input.sizes()) + " has " +
                                  std::to_string(input.rank()) + " dimensions, it takes 2 or 3");
  if (!same(input.size(-1), Dim(input_size_)))
    throw EagerError(place(), std::string(class_name_) + ": input " +
                                  eager::to_string(input.sizes()) + " has no " +
                                  std::to_string(input_size_) + " features");
  return input.rank() == 3 ? input : input.unsqueeze(options_.batch_first ? 0 : 1);
}

Tensor Recurrent::state_or_zeros(const Tensor& state, const Tensor& input, int64_t extent) const {
  const bool batched = input.rank() == 3;
  if (!state.defined()) {
    const Dim batch = batched ? input.size(options_.batch_first ? 0 : 1) : Dim(1);
    return eager::zeros(
        {Dim(options_.num_layers * (options_.bidirectional ? 2 : 1)), batch, Dim(extent)},
        input.dtype());
  }
  if (state.rank() != input.rank())
    throw EagerError(place(),
                     std::string(class_name_) + ": a state " + eager::to_string(state.sizes()) +
                         " does not belong to the input " + eager::to_string(input.sizes()));
  return batched ? state : state.unsqueeze(1);
}

Tensor Recurrent::packed_state(const Tensor& state, const PackedSequence& input,
                               int64_t extent) const {
  const Tensor& padded = input.padded;
  if (!padded.defined() || padded.rank() != 3 || !same(padded.size(2), Dim(input_size_)))
    throw EagerError(place(),
                     std::string(class_name_) + ": packed sequences must be (time, batch, " +
                         std::to_string(input_size_) + "), they are " +
                         (padded.defined() ? eager::to_string(padded.sizes()) : "undefined"));
  const int64_t passes = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return state.defined() ? state
                         : eager::zeros({Dim(passes), padded.size(1), Dim(extent)}, padded.dtype());
}

RNN::RNN(int64_t input_size, int64_t hidden_size, RNNOptions o, Location here)
    : Recurrent("RNN", 1, input_size, hidden_size,
                {o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional}, 0, here),
      relu_(o.relu) {}

std::tuple<Tensor, Tensor> RNN::forward(const Tensor& input, const Tensor& h0, Location here) {
  const PlaceScope scope(here);
  const RecurrentOptions& o = options_;
  const auto [output, h] = (relu_ ? eager::rnn_relu : eager::rnn_tanh)(
      with_batch(input), state_or_zeros(h0, input, hidden_size_), parameter_list(), o.bias,
      o.num_layers, o.dropout, training(), o.bidirectional, o.batch_first, here);
  return {without_batch(output, input, o.batch_first ? 0 : 1), without_batch(h, input, 1)};
}

std::tuple<PackedSequence, Tensor> RNN::forward(const PackedSequence& input, const Tensor& h0,
                                                Location here) {
  const PlaceScope scope(here);
  const Tensor h = packed_state(h0, input, hidden_size_);
  const auto results = eager::decompositions::run_layers(
      packed_layers("RNN", relu_ ? Cell::rnn_relu : Cell::rnn_tanh, options_, training()),
      input.padded, {h, {}}, parameter_list(), input.lengths);
  return {PackedSequence{results[0], input.lengths}, results[1]};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, LSTMOptions o, Location here)
    : Recurrent("LSTM", 4, input_size, hidden_size,
                {o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional}, o.proj_size,
                here) {}

std::tuple<Tensor, Tensor, Tensor> LSTM::forward(const Tensor& input, const Tensor& h0,
                                                 const Tensor& c0, Location here) {
  const PlaceScope scope(here);
  const RecurrentOptions& o = options_;
  const auto [output, h, c] =
      eager::lstm(with_batch(input),
                  {state_or_zeros(h0, input, proj_size_ > 0 ? proj_size_ : hidden_size_),
                   state_or_zeros(c0, input, hidden_size_)},
                  parameter_list(), o.bias, o.num_layers, o.dropout, training(), o.bidirectional,
                  o.batch_first);
  return {without_batch(output, input, o.batch_first ? 0 : 1), without_batch(h, input, 1),
          without_batch(c, input, 1)};
}

std::tuple<PackedSequence, Tensor, Tensor> LSTM::forward(const PackedSequence& input,
                                                         const Tensor& h0, const Tensor& c0,
                                                         Location here) {
  const PlaceScope scope(here);
  const Tensor h = packed_state(h0, input, proj_size_ > 0 ? proj_size_ : hidden_size_);
  const Tensor c = packed_state(c0, input, hidden_size_);
  const auto results =
      eager::decompositions::run_layers(packed_layers("LSTM", Cell::lstm, options_, training()),
                                        input.padded, {h, c}, parameter_list(), input.lengths);
  return {PackedSequence{results[0], input.lengths}, results[1], results[2]};
}

GRU::GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options, Location here)
    : Recurrent("GRU", 3, input_size, hidden_size, options, 0, here) {}

std::tuple<Tensor, Tensor> GRU::forward(const Tensor& input, const Tensor& h0, Location here) {
  const PlaceScope scope(here);
  const RecurrentOptions& o = options_;
  const auto [output, h] =
      eager::gru(with_batch(input), state_or_zeros(h0, input, hidden_size_), parameter_list(),
                 o.bias, o.num_layers, o.dropout, training(), o.bidirectional, o.batch_first);
  return {without_batch(output, input, o.batch_first ? 0 : 1), without_batch(h, input, 1)};
}

std::tuple<PackedSequence, Tensor> GRU::forward(const PackedSequence& input, const Tensor& h0,
                                                Location here) {
  const PlaceScope scope(here);
  const Tensor h = packed_state(h0, input, hidden_size_);
  const auto results =
      eager::decompositions::run_layers(packed_layers("GRU", Cell::gru, options_, training()),
                                        input.padded, {h, {}}, parameter_list(), input.lengths);
  return {PackedSequence{results[0], input.lengths}, results[1]};
}

RecurrentCell::RecurrentCell(const char* class_name, int64_t gates, int64_t input_size,
                             int64_t hidden_size, bool bias, Location here)
    : hidden_size_(hidden_size) {
  internal::check_sizes(class_name, {{"input_size", input_size}, {"hidden_size", hidden_size}},
                        here);
  weight_ih = even({gates * hidden_size, input_size}, hidden_size);
  weight_hh = even({gates * hidden_size, hidden_size}, hidden_size);
  if (bias) {
    bias_ih = even({gates * hidden_size}, hidden_size);
    bias_hh = even({gates * hidden_size}, hidden_size);
  }
  set_names();
}

Tensor RecurrentCell::input_with_batch(const Tensor& input) const {
  return input.rank() == 1 ? input.unsqueeze(0) : input;
}
Tensor RecurrentCell::state_or_zeros(const Tensor& state, const Tensor& input) const {
  if (state.defined()) return input_with_batch(state);
  const Dim batch = input.rank() == 1 ? Dim(1) : input.size(0);
  return eager::zeros({batch, Dim(hidden_size_)}, input.dtype());
}

Tensor RNNCell::forward(const Tensor& input, const Tensor& h, Location here) {
  const PlaceScope scope(here);
  const Tensor next = (relu_ ? eager::rnn_relu_cell : eager::rnn_tanh_cell)(
      input_with_batch(input), state_or_zeros(h, input), weight_ih, weight_hh, bias_ih, bias_hh,
      here);
  return input.rank() == 1 ? next.squeeze(0) : next;
}

std::tuple<Tensor, Tensor> LSTMCell::forward(const Tensor& input, const Tensor& h, const Tensor& c,
                                             Location here) {
  const PlaceScope scope(here);
  const auto [h_next, c_next] = eager::lstm_cell(
      input_with_batch(input), {state_or_zeros(h, input), state_or_zeros(c, input)}, weight_ih,
      weight_hh, bias_ih, bias_hh);
  if (input.rank() != 1) return {h_next, c_next};
  return {h_next.squeeze(0), c_next.squeeze(0)};
}

Tensor GRUCell::forward(const Tensor& input, const Tensor& h, Location here) {
  const PlaceScope scope(here);
  const Tensor next = eager::gru_cell(input_with_batch(input), state_or_zeros(h, input), weight_ih,
                                      weight_hh, bias_ih, bias_hh);
  return input.rank() == 1 ? next.squeeze(0) : next;
}

}  // namespace taper::nn
