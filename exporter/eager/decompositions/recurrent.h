// Recurrent layers, written with scans. The operators run them, and the modules for packed
// sequences.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/exporter/eager/ops/recurrent.h"

namespace taper::eager::decompositions {

enum class Cell { rnn_tanh, rnn_relu, lstm, gru };

struct Layers {
  const char* name;  ///< for errors
  Cell cell;
  bool has_biases;
  int64_t count;
  double dropout;
  bool train, bidirectional, batch_first;
};

struct State {
  Tensor h, c;  ///< c: only in an LSTM
};

/// All layers: output, h and, for an LSTM, c. With `lengths`, i64 (batch), sequence b ends after
/// lengths[b] steps, 1 or more: then h and c are those after its last step, its output behind that
/// is zeros, and the second direction begins there.
std::vector<Tensor> run_layers(const Layers& layers, const Tensor& input, const State& state,
                               const std::vector<Tensor>& params, const Tensor& lengths = {});

}  // namespace taper::eager::decompositions
