// Rules of recurrent layers, and of scans, from which layers are made: a scan is one layer in one
// direction. Extents: time, batch, hidden. In each step, `gates` holds `count` parts of hidden
// elements.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// (time, batch, count · hidden), with at least one step.
template <class D>
bool check_steps(Facts<D>& facts, const TensorType<D>& steps, const TensorType<D>& state,
                 int count) {
  return facts.require(steps.rank == 3,
                       TAPER_TEXT("the steps must be (time, batch, features), they have {} "
                                  "dimensions"),
                       steps.rank) &&
         facts.require(steps.dtype == state.dtype,
                       TAPER_TEXT("all arguments must have one dtype")) &&
         facts.at_least(steps[0], D(1), TAPER_TEXT("got {} steps, needs at least {}")) &&
         facts.equal(steps[1], state[0],
                     TAPER_TEXT("the steps have batch size {}, the state {}")) &&
         facts.equal(steps[2], state[1] * D(count),
                     TAPER_TEXT("the steps have {} features, the state asks for {}"));
}

/// A state (batch, hidden) of a floating dtype.
template <class D>
bool check_state(Facts<D>& facts, const TensorType<D>& state) {
  return facts.require(state.rank == 2,
                       TAPER_TEXT("a state must be (batch, hidden), it has {} dimensions"),
                       state.rank) &&
         facts.require(is_floating(state.dtype), TAPER_TEXT("a state must have a floating dtype"));
}

/// weight_hh (count · hidden, hidden).
template <class D>
bool check_recurrent_weight(Facts<D>& facts, const TensorType<D>& weight, const D& hidden,
                            DType dtype, int count) {
  return facts.require(weight.rank == 2,
                       TAPER_TEXT("weight_hh must be a matrix, it has {} dimensions"),
                       weight.rank) &&
         facts.require(weight.dtype == dtype, TAPER_TEXT("all arguments must have one dtype")) &&
         facts.equal(weight[0], hidden * D(count), TAPER_TEXT("weight_hh has {} rows, not {}")) &&
         facts.equal(weight[1], hidden, TAPER_TEXT("weight_hh has {} columns, not {}"));
}

template <class D>
bool check_scan(Facts<D>& facts, const TensorType<D>& gates, const TensorType<D>& hx,
                const TensorType<D>& weight_hh, int count) {
  return check_state(facts, hx) && check_steps(facts, gates, hx, count) &&
         check_recurrent_weight(facts, weight_hh, hx[1], hx.dtype, count);
}

/// A result (time, batch, count · hidden).
template <class D>
void make_steps(TensorType<D>& t, const TensorType<D>& steps, const D& hidden, int count) {
  t.dtype = steps.dtype, t.rank = 3;
  t[0] = steps[0], t[1] = steps[1], t[2] = hidden * D(count);
}
template <class D>
void make_state(TensorType<D>& t, const TensorType<D>& steps, const D& hidden) {
  t.dtype = steps.dtype, t.rank = 2;
  t[0] = steps[1], t[1] = hidden;
}
/// The type of the state for the steps `output` (time, batch, hidden).
template <class D>
bool state_of(Facts<D>& facts, const TensorType<D>& output, TensorType<D>& state) {
  if (!facts.require(output.rank == 3,
                     TAPER_TEXT("output must be (time, batch, hidden), it has {} dimensions"),
                     output.rank))
    return false;
  make_state(state, output, output[2]);
  return true;
}

/// Layers of cells: (time, batch, features), or with batch_first (batch, time, features), and
/// states (layers · directions, batch, hidden).
template <class D>
bool layers(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& hx, int64_t count,
            bool bidirectional, TensorType<D>& output, TensorType<D>& h) {
  const int64_t directions = bidirectional ? 2 : 1;
  if (!facts.require(input.rank == 3,
                     TAPER_TEXT("input must have 3 dimensions (time, batch, features), it has {}"),
                     input.rank) ||
      !facts.require(hx.rank == 3, TAPER_TEXT("a state must have 3 dimensions, it has {}"),
                     hx.rank) ||
      !facts.require(count >= 1, TAPER_TEXT("num_layers must be at least 1")) ||
      !facts.equal(hx[0], D(count * directions),
                   TAPER_TEXT("a state is of {} layers and directions, there are {}")))
    return false;
  output.like(input);
  output[2] = hx[2] * D(directions);
  h.like(hx);
  return true;
}

/// Cells whose state is h alone.
struct LayersRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& hx,
                    const TypeList<D>&, bool, int64_t num_layers, double, bool, bool bidirectional,
                    bool, TensorType<D>& output, TensorType<D>& h) {
    return layers(facts, input, hx, num_layers, bidirectional, output, h);
  }
};

}  // namespace internal

template <>
struct Rule<ops::taper_rnn_scan> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& gates, const TensorType<D>& hx,
                    const TensorType<D>& weight_hh, bool, bool, TensorType<D>& output) {
    if (!internal::check_scan(facts, gates, hx, weight_hh, 1)) return false;
    internal::make_steps(output, gates, hx[1], 1);
    return true;
  }
};

template <>
struct Rule<ops::taper_rnn_scan_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& output,
                    const TensorType<D>& weight_hh, bool, bool, TensorType<D>& grad_gates,
                    TensorType<D>& grad_hx) {
    if (!internal::state_of(facts, output, grad_hx) ||
        !internal::check_scan(facts, output, grad_hx, weight_hh, 1) ||
        !internal::same_sizes(facts, grad_output, output,
                              TAPER_TEXT("grad_output has {} dimensions, output {}"),
                              TAPER_TEXT("grad_output has extent {}, output {}")) ||
        !internal::check_steps(facts, grad_output, grad_hx, 1))
      return false;
    grad_gates.like(output);
    return true;
  }
};

template <>
struct Rule<ops::taper_lstm_scan> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& gates, const TensorType<D>& hx,
                    const TensorType<D>& cx, const TensorType<D>& weight_hh, bool,
                    TensorType<D>& output, TensorType<D>& cells, TensorType<D>& activations) {
    if (!internal::check_scan(facts, gates, hx, weight_hh, 4) ||
        !facts.require(cx.dtype == hx.dtype, TAPER_TEXT("all arguments must have one dtype")) ||
        !internal::same_sizes(facts, cx, hx, TAPER_TEXT("cx has {} dimensions, hx {}"),
                              TAPER_TEXT("cx has extent {}, hx {}")))
      return false;
    internal::make_steps(output, gates, hx[1], 1);
    internal::make_steps(cells, gates, hx[1], 1);
    internal::make_steps(activations, gates, hx[1], 4);
    return true;
  }
};

template <>
struct Rule<ops::taper_lstm_scan_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output,
                    const TensorType<D>& grad_cells, const TensorType<D>& cx,
                    const TensorType<D>& cells, const TensorType<D>& activations,
                    const TensorType<D>& weight_hh, bool, TensorType<D>& grad_gates,
                    TensorType<D>& grad_hx, TensorType<D>& grad_cx) {
    if (!internal::check_scan(facts, activations, cx, weight_hh, 4) ||
        !internal::check_steps(facts, cells, cx, 1) ||
        !facts.equal(cells[0], activations[0], TAPER_TEXT("cells have {} steps, not {}")))
      return false;
    for (const TensorType<D>* grad : {&grad_output, &grad_cells})
      if (!internal::same_sizes(facts, *grad, cells,
                                TAPER_TEXT("a gradient has {} dimensions, cells {}"),
                                TAPER_TEXT("a gradient has extent {}, cells {}")) ||
          !facts.require(grad->dtype == cells.dtype,
                         TAPER_TEXT("all arguments must have one dtype")))
        return false;
    grad_gates.like(activations);
    grad_hx.like(cx), grad_cx.like(cx);
    return true;
  }
};

template <>
struct Rule<ops::taper_gru_scan> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& gates, const TensorType<D>& hx,
                    const TensorType<D>& weight_hh, const TensorType<D>* bias_hn, bool,
                    TensorType<D>& output, TensorType<D>& activations) {
    if (!internal::check_scan(facts, gates, hx, weight_hh, 3) ||
        !internal::optional_vector(facts, bias_hn, hx[1], hx.dtype,
                                   TAPER_TEXT("bias_hn must have 1 dimension, it has {}"),
                                   TAPER_TEXT("bias_hn has {} elements, hidden is {}"),
                                   TAPER_TEXT("all arguments must have one dtype")))
      return false;
    internal::make_steps(output, gates, hx[1], 1);
    internal::make_steps(activations, gates, hx[1], 4);
    return true;
  }
};

template <>
struct Rule<ops::taper_gru_scan_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& hx,
                    const TensorType<D>& output, const TensorType<D>& activations,
                    const TensorType<D>& weight_hh, bool, TensorType<D>& grad_gates,
                    TensorType<D>& grad_hidden_gates, TensorType<D>& grad_hx) {
    if (!internal::check_state(facts, hx) ||
        !internal::check_recurrent_weight(facts, weight_hh, hx[1], hx.dtype, 3) ||
        !internal::check_steps(facts, output, hx, 1) ||
        !internal::check_steps(facts, activations, hx, 4) ||
        !internal::check_steps(facts, grad_output, hx, 1) ||
        !facts.equal(activations[0], output[0],
                     TAPER_TEXT("activations have {} steps, output {}")) ||
        !facts.equal(grad_output[0], output[0], TAPER_TEXT("grad_output has {} steps, output {}")))
      return false;
    internal::make_steps(grad_gates, output, hx[1], 3);
    internal::make_steps(grad_hidden_gates, output, hx[1], 3);
    grad_hx.like(hx);
    return true;
  }
};

template <>
struct Rule<ops::lstm_input> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TypeList<D>& hx,
                    const TypeList<D>&, bool, int64_t num_layers, double, bool, bool bidirectional,
                    bool, TensorType<D>& output, TensorType<D>& h, TensorType<D>& c) {
    if (!facts.require(hx.count == 2, TAPER_TEXT("hx must be {h, c}")) ||
        !internal::layers(facts, input, hx[0], num_layers, bidirectional, output, h))
      return false;
    c.like(hx[1]);
    return true;
  }
};
template <>
struct Rule<ops::gru_input> : internal::LayersRule {};
template <>
struct Rule<ops::rnn_tanh_input> : internal::LayersRule {};
template <>
struct Rule<ops::rnn_relu_input> : internal::LayersRule {};

}  // namespace taper
