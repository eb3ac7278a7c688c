// Recurrent layers. `params` lists the weights of each layer and, within it, of each direction:
// weight_ih, weight_hh; with `has_biases` also bias_ih, bias_hh; for an LSTM with projection also
// weight_hr. The rows of a weight hold the gates one after the other: i, f, g, o for lstm; r, z, n
// for gru. All tensors have one floating dtype. Errors: sizes or a number of params that do not fit
// each other.
#pragma once
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Several layers of LSTM cells (formulas: kernels/portable/recurrent.h).
///   input      (time, batch, in), or (batch, time, in) with `batch_first`
///   hx         {h, c}, each (layers · directions, batch, hidden). With a projection, h has as many
///              elements as an output: the rows of weight_hr
///   dropout    of the outputs of all layers but the last, while `train`
/// Results: the outputs of the last layer, with both directions side by side; h and c after the
/// last step.
inline std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const std::vector<Tensor>& hx,
                                               const std::vector<Tensor>& params, bool has_biases,
                                               int64_t num_layers, double dropout, bool train,
                                               bool bidirectional, bool batch_first,
                                               Location here = Location::current()) {
  return call<ops::lstm_input>(here, input, hx, params, has_biases, num_layers, dropout, train,
                               bidirectional, batch_first);
}
/// The same with GRU cells; hx is h alone. Results: outputs, h after the last step.
inline std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx,
                                      const std::vector<Tensor>& params, bool has_biases,
                                      int64_t num_layers, double dropout, bool train,
                                      bool bidirectional, bool batch_first,
                                      Location here = Location::current()) {
  return call<ops::gru_input>(here, input, hx, params, has_biases, num_layers, dropout, train,
                              bidirectional, batch_first);
}
/// The same with cells h' = tanh(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh).
inline std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx,
                                           const std::vector<Tensor>& params, bool has_biases,
                                           int64_t num_layers, double dropout, bool train,
                                           bool bidirectional, bool batch_first,
                                           Location here = Location::current()) {
  return call<ops::rnn_tanh_input>(here, input, hx, params, has_biases, num_layers, dropout, train,
                                   bidirectional, batch_first);
}
/// The same with relu instead of tanh.
inline std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx,
                                           const std::vector<Tensor>& params, bool has_biases,
                                           int64_t num_layers, double dropout, bool train,
                                           bool bidirectional, bool batch_first,
                                           Location here = Location::current()) {
  return call<ops::rnn_relu_input>(here, input, hx, params, has_biases, num_layers, dropout, train,
                                   bidirectional, batch_first);
}

/// One step: input (batch, in), hx {h, c} of (batch, hidden) -> h, c.
inline std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, const std::vector<Tensor>& hx,
                                            const Tensor& w_ih, const Tensor& w_hh,
                                            const Tensor& b_ih = {}, const Tensor& b_hh = {},
                                            Location here = Location::current()) {
  return call<ops::lstm_cell>(here, input, hx, w_ih, w_hh, b_ih, b_hh);
}
/// One step: input (batch, in), hx (batch, hidden) -> h.
inline Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                       const Tensor& w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {},
                       Location here = Location::current()) {
  return call<ops::gru_cell>(here, input, hx, w_ih, w_hh, b_ih, b_hh);
}
/// The same with h' = tanh(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh).
inline Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                            const Tensor& w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {},
                            Location here = Location::current()) {
  return call<ops::rnn_tanh_cell>(here, input, hx, w_ih, w_hh, b_ih, b_hh);
}
/// The same with relu instead of tanh.
inline Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                            const Tensor& w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {},
                            Location here = Location::current()) {
  return call<ops::rnn_relu_cell>(here, input, hx, w_ih, w_hh, b_ih, b_hh);
}

// ---- one layer in one direction ---- `gates` (time, batch, gates · hidden) is the part of the
// gates that comes from the input, with its bias. `reverse` begins with the last step.
// Differentiable any number of times.

/// output (time, batch, hidden)
inline Tensor rnn_scan(const Tensor& gates, const Tensor& hx, const Tensor& weight_hh, bool relu,
                       bool reverse, Location here = Location::current()) {
  return call<ops::taper_rnn_scan>(here, gates, hx, weight_hh, relu, reverse);
}
/// output and cells (time, batch, hidden), activations (time, batch, 4 · hidden)
inline std::tuple<Tensor, Tensor, Tensor> lstm_scan(const Tensor& gates, const Tensor& hx,
                                                    const Tensor& cx, const Tensor& weight_hh,
                                                    bool reverse,
                                                    Location here = Location::current()) {
  return call<ops::taper_lstm_scan>(here, gates, hx, cx, weight_hh, reverse);
}
/// output (time, batch, hidden), activations (time, batch, 4 · hidden). `bias_hn` may be undefined.
inline std::tuple<Tensor, Tensor> gru_scan(const Tensor& gates, const Tensor& hx,
                                           const Tensor& weight_hh, const Tensor& bias_hn,
                                           bool reverse, Location here = Location::current()) {
  return call<ops::taper_gru_scan>(here, gates, hx, weight_hh, bias_hn, reverse);
}

}  // namespace taper::eager
