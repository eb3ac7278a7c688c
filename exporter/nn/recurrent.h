// Recurrent layers and their cells. The parameters have PyTorch's names: weight_ih_l0,
// weight_hh_l0, bias_ih_l0, bias_hh_l0, with _l1 in the next layer and _reverse in the other
// direction. Those of cells are weight_ih, weight_hh, bias_ih, bias_hh. Initial values: uniform in
// ±1/√hidden_size.
#pragma once
#include <string>
#include <tuple>
#include <vector>

#include "taper/exporter/nn/module.h"
#include "taper/exporter/nn/packed_sequence.h"

namespace taper::nn {

struct RecurrentOptions {
  int64_t num_layers = 1;  ///< each takes the outputs of the one before
  bool bias = true;
  bool batch_first = false;  ///< inputs and outputs are (batch, time, …), not (time, batch, …)
  double dropout = 0;        ///< of the outputs of all layers but the last, while training
  bool bidirectional = false;  ///< a second direction, whose outputs stand behind the first one's
};

/// The common part of RNN, LSTM and GRU. With D = 1 or 2 directions and H = hidden_size:
///   input   (time, batch, in), or (batch, time, in) with batch_first, or (time, in)
///   states  (layers · D, batch, H), or (layers · D, H) for an input (time, in); absent: zeros
///   output  the last layer's, (time, batch, D · H) or in the order of the input
class Recurrent : public Module {
 public:
  void visit_members(Members& members) override;
  /// The parameters in the order of eager::lstm: layer by layer, direction by direction.
  const std::vector<Parameter>& weights() const { return weights_; }

 protected:
  Recurrent(const char* class_name, int64_t gates, int64_t input_size, int64_t hidden_size,
            RecurrentOptions options, int64_t proj_size, Location here);

  /// The input with a batch, and the state given for it, or zeros of `extent` elements.
  Tensor with_batch(const Tensor& input) const;
  Tensor state_or_zeros(const Tensor& state, const Tensor& input, int64_t extent) const;
  std::vector<Tensor> parameter_list() const { return {weights_.begin(), weights_.end()}; }

  /// A state for the first step of packed sequences; absent: zeros.
  Tensor packed_state(const Tensor& state, const PackedSequence& input, int64_t extent) const;

  const char* class_name_;
  int64_t input_size_, hidden_size_, proj_size_;
  RecurrentOptions options_;

 private:
  std::vector<Parameter> weights_;
  std::vector<std::string> names_;
};

struct RNNOptions {
  int64_t num_layers = 1;
  bool relu = false;  ///< instead of tanh
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman, "Finding structure in time", 1990):
/// `auto [output, h] = rnn(x, h0)`.
class RNN : public Recurrent {
 public:
  RNN(int64_t input_size, int64_t hidden_size, RNNOptions options = {},
      Location here = Location::current());
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& h0 = {},
                                     Location here = Location::current());
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& h0 = {},
                                        Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h0, here);
  }
  /// Sequences of different lengths: outputs for their steps, and h after the last step of each.
  std::tuple<PackedSequence, Tensor> forward(const PackedSequence& input, const Tensor& h0 = {},
                                             Location here = Location::current());
  std::tuple<PackedSequence, Tensor> operator()(const PackedSequence& input, const Tensor& h0 = {},
                                                Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h0, here);
  }

 private:
  bool relu_;
};

struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  int64_t proj_size = 0;  ///< not 0: outputs and h are weight_hr h, of this many elements
};

/// Hochreiter and Schmidhuber, "Long short-term memory", 1997: `auto [output, h, c] = lstm(x, h0,
/// c0)`. The formulas stand in kernels/portable/recurrent.h.
class LSTM : public Recurrent {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, LSTMOptions options = {},
       Location here = Location::current());
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& input, const Tensor& h0 = {},
                                             const Tensor& c0 = {},
                                             Location here = Location::current());
  std::tuple<Tensor, Tensor, Tensor> operator()(const Tensor& input, const Tensor& h0 = {},
                                                const Tensor& c0 = {},
                                                Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h0, c0, here);
  }
  /// Sequences of different lengths: outputs for their steps, and h and c after the last step of
  /// each.
  std::tuple<PackedSequence, Tensor, Tensor> forward(const PackedSequence& input,
                                                     const Tensor& h0 = {}, const Tensor& c0 = {},
                                                     Location here = Location::current());
  std::tuple<PackedSequence, Tensor, Tensor> operator()(const PackedSequence& input,
                                                        const Tensor& h0 = {},
                                                        const Tensor& c0 = {},
                                                        Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h0, c0, here);
  }
};

/// Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014:
/// `auto [output, h] = gru(x, h0)`.
class GRU : public Recurrent {
 public:
  GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {},
      Location here = Location::current());
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& h0 = {},
                                     Location here = Location::current());
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& h0 = {},
                                        Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h0, here);
  }
  /// Sequences of different lengths: outputs for their steps, and h after the last step of each.
  std::tuple<PackedSequence, Tensor> forward(const PackedSequence& input, const Tensor& h0 = {},
                                             Location here = Location::current());
  std::tuple<PackedSequence, Tensor> operator()(const PackedSequence& input, const Tensor& h0 = {},
                                                Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h0, here);
  }
};

/// The common part of the cells: one step of one layer. input (batch, in) or (in), states (batch,
/// H) or (H), zeros if absent.
class RecurrentCell : public Module {
 public:
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;  ///< the biases: undefined without
  void visit_members(Members& members) override {
    members.all("weight_ih, weight_hh, bias_ih, bias_hh", weight_ih, weight_hh, bias_ih, bias_hh);
  }

 protected:
  RecurrentCell(const char* class_name, int64_t gates, int64_t input_size, int64_t hidden_size,
                bool bias, Location here);
  /// (batch, …): a vector becomes a batch of one; an absent state zeros.
  Tensor input_with_batch(const Tensor& input) const;
  Tensor state_or_zeros(const Tensor& state, const Tensor& input) const;

  int64_t hidden_size_;
};

class RNNCell : public RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, bool bias = true, bool relu = false,
          Location here = Location::current())
      : RecurrentCell("RNNCell", 1, input_size, hidden_size, bias, here), relu_(relu) {}
  Tensor forward(const Tensor& input, const Tensor& h = {}, Location here = Location::current());
  Tensor operator()(const Tensor& input, const Tensor& h = {},
                    Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h, here);
  }

 private:
  bool relu_;
};

/// Returns h and c.
class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, bool bias = true,
           Location here = Location::current())
      : RecurrentCell("LSTMCell", 4, input_size, hidden_size, bias, here) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& h = {},
                                     const Tensor& c = {}, Location here = Location::current());
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& h = {},
                                        const Tensor& c = {}, Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h, c, here);
  }
};

class GRUCell : public RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, bool bias = true,
          Location here = Location::current())
      : RecurrentCell("GRUCell", 3, input_size, hidden_size, bias, here) {}
  Tensor forward(const Tensor& input, const Tensor& h = {}, Location here = Location::current());
  Tensor operator()(const Tensor& input, const Tensor& h = {},
                    Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, h, here);
  }
};

}  // namespace taper::nn
