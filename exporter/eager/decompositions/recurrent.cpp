// Layers of recurrent cells. One matrix product computes the input's part of all steps; a scan
// computes the rest.
#include "taper/exporter/eager/decompositions/recurrent.h"

#include <optional>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

/// One layer in one direction.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh;
  Tensor w_hr;  ///< only in an LSTM with projection
};
/// What all steps leave; `cells` only in an LSTM.
struct Steps {
  Tensor output, cells;
};
/// Sequences of different lengths side by side.
struct Ends {
  Tensor last;      ///< i64 (1, batch, 1): the last step of each
  Tensor inside;    ///< bool (time, batch, 1): whether a step lies before the end
  Tensor mirrored;  ///< i64 (time, batch, 1): the step in the reversed sequence

  explicit Ends(const Tensor& lengths, Dim time) {
    const Tensor step = sub(cumsum(ones({time}, DType::i64), 0), 1).reshape({-1, 1, 1});
    const Tensor length = lengths.reshape({1, -1, 1});
    last = sub(length, 1);
    inside = lt(step, length);
    mirrored = where(inside, sub(last, step), step);
  }
  /// The elements of x (time, batch, features) at steps (some, batch, 1).
  static Tensor at(const Tensor& x, const Tensor& steps) {
    return gather(x, 0, expand(steps, {steps.size(0), x.size(1), x.size(2)}));
  }
};

/// b_ih + b_hh, or the one that is defined.
Tensor sum_of(const Tensor& b_ih, const Tensor& b_hh) {
  return !b_ih.defined() ? b_hh : !b_hh.defined() ? b_ih : add(b_ih, b_hh);
}

/// One layer in one direction, for x (time, batch, in).
Steps run_steps(Cell cell, const Tensor& x, const Weights& w, const State& state, bool reverse) {
  if (cell == Cell::gru) {
    // r multiplies b_hn, too, so b_hn is not part of the input's gates.
    Tensor bias = w.b_ih, bias_hn;
    if (w.b_hh.defined()) {
      const Dim hidden = w.w_hh.size(1), two = hidden * Dim(2);
      bias_hn = narrow(w.b_hh, 0, two, hidden);
      const Tensor others = narrow(w.b_hh, 0, 0, two);
      bias = sum_of(w.b_ih, constant_pad_nd(others, {Dim(0), hidden}));
    }
    return {std::get<0>(gru_scan(linear(x, w.w_ih, bias), state.h, w.w_hh, bias_hn, reverse)), {}};
  }
  Tensor gates = linear(x, w.w_ih, sum_of(w.b_ih, w.b_hh));
  if (cell != Cell::lstm)
    return {rnn_scan(gates, state.h, w.w_hh, cell == Cell::rnn_relu, reverse), {}};
  Tensor h = state.h, w_hh = w.w_hh;
  if (w.w_hr.defined()) {
    // With p = W_hr h, W_hh p = (W_hh W_hr) h. So the scan runs over the states before their
    // projection. The first step begins with a projected state, so this state's product is added to
    // the step's gates.
    const Tensor first = unsqueeze(
        add(select(gates, 0, reverse ? gates.size(0) - Dim(1) : Dim(0)), linear(state.h, w.w_hh)),
        0);
    const Dim others = gates.size(0) - Dim(1);
    gates = reverse ? cat({narrow(gates, 0, 0, others), first})
                    : cat({first, narrow(gates, 0, 1, others)});
    h = full_like(state.c, Scalar(0));
    w_hh = mm(w.w_hh, w.w_hr);
  }
  auto [output, cells, activations] = lstm_scan(gates, h, state.c, w_hh, reverse);
  if (w.w_hr.defined()) output = linear(output, w.w_hr);
  return {output, cells};
}

/// The outputs. Changes `state` to the state after the last step.
Tensor run_layer(Cell cell, const Tensor& x, const Weights& w, State& state, bool reverse) {
  const Steps steps = run_steps(cell, x, w, state, reverse);
  const Dim last = reverse ? Dim(0) : x.size(0) - Dim(1);
  state.h = select(steps.output, 0, last);
  if (steps.cells.defined()) state.c = select(steps.cells, 0, last);
  return steps.output;
}

/// The same for sequences of different lengths. The other direction begins at each end, so it runs
/// over reversed sequences. Outputs behind the ends are zeros.
Tensor run_packed_layer(Cell cell, const Tensor& x, const Weights& w, State& state, bool reverse,
                        const Ends& ends) {
  const Steps steps = run_steps(cell, reverse ? Ends::at(x, ends.mirrored) : x, w, state, false);
  state.h = squeeze(Ends::at(steps.output, ends.last), 0);
  if (steps.cells.defined()) state.c = squeeze(Ends::at(steps.cells, ends.last), 0);
  const Tensor output = reverse ? Ends::at(steps.output, ends.mirrored) : steps.output;
  return where(ends.inside, output, Scalar(0));
}

[[noreturn]] void refuse(const char* name, const std::string& what) {
  throw EagerError(std::string(name) + ": " + what);
}

template <const Operator& op>
Layers layers_of(const char* name, Cell cell, const Arguments<op>& a) {
  return {name,
          cell,
          a.template boolean<"has_biases">(),
          a.template integer<"num_layers">(),
          a.template real<"dropout">(),
          a.template boolean<"train">(),
          a.template boolean<"bidirectional">(),
          a.template boolean<"batch_first">()};
}

}  // namespace

Results run_layers(const Layers& l, const Tensor& input, const State& state,
                   const std::vector<Tensor>& params, const Tensor& lengths) {
  const int64_t directions = l.bidirectional ? 2 : 1, passes = l.count * directions;
  if (l.count < 1) refuse(l.name, "num_layers must be at least 1");
  if (input.rank() != 3)
    refuse(l.name, "input must have 3 dimensions (time, batch, features), it is " +
                       to_string(input.sizes()));
  for (const Tensor& s : {state.h, state.c})
    if (s.defined() && (s.rank() != 3 || !same(s.size(0), Dim(passes))))
      refuse(l.name, "a state must be (layers · directions = " + std::to_string(passes) +
                         ", batch, hidden), it is " + to_string(s.sizes()));
  const size_t plain = l.has_biases ? 4 : 2, given = params.size() / static_cast<size_t>(passes);
  const bool projected = l.cell == Cell::lstm && given == plain + 1;
  if (params.size() != static_cast<size_t>(passes) * (plain + (projected ? 1 : 0)))
    refuse(l.name, std::to_string(passes) + " layers and directions take " + std::to_string(plain) +
                       " parameters each, got " + std::to_string(params.size()) + " in all");

  Tensor x = l.batch_first ? transpose(input, 0, 1) : input;
  std::optional<Ends> ends;
  if (lengths.defined()) {
    ends.emplace(lengths, x.size(0));
    x = where(ends->inside, x, Scalar(0));  // behind the ends may lie anything
  }
  std::vector<Tensor> h, c;
  auto next = params.begin();
  for (int64_t layer = 0; layer < l.count; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      Weights w;
      w.w_ih = *next++, w.w_hh = *next++;
      if (l.has_biases) w.b_ih = *next++, w.b_hh = *next++;
      if (projected) w.w_hr = *next++;
      const Dim pass(layer * directions + direction);
      State s{select(state.h, 0, pass), state.c.defined() ? select(state.c, 0, pass) : Tensor()};
      outputs.push_back(ends ? run_packed_layer(l.cell, x, w, s, direction == 1, *ends)
                             : run_layer(l.cell, x, w, s, direction == 1));
      h.push_back(s.h);
      if (s.c.defined()) c.push_back(s.c);
    }
    x = directions == 1 ? outputs[0] : cat(outputs, 2);
    if (l.train && l.dropout > 0 && layer + 1 < l.count) x = call<ops::dropout>(x, l.dropout, true);
  }
  Results results{l.batch_first ? transpose(x, 0, 1) : x, stack(h)};
  if (!c.empty()) results.push_back(stack(c));
  return results;
}

namespace {

/// One step of a cell, as a scan of one step.
template <const Operator& op>
Results run_cell(const char* name, Cell cell, const Arguments<op>& a, const Tensor& h,
                 const Tensor& c) {
  const Tensor input = a.template tensor<"input">();
  if (input.rank() != 2)
    refuse(name, "input must be (batch, features), it is " + to_string(input.sizes()));
  State state{h, c};
  run_layer(cell, unsqueeze(input, 0),
            {a.template tensor<"w_ih">(),
             a.template tensor<"w_hh">(),
             a.template tensor<"b_ih">(),
             a.template tensor<"b_hh">(),
             {}},
            state, false);
  return cell == Cell::lstm ? Results{state.h, state.c} : Results{state.h};
}

/// Checks that hx is {h, c}.
std::vector<Tensor> pair_of_states(const char* name, const std::vector<Tensor>& hx) {
  if (hx.size() != 2)
    refuse(name, "hx must be {h, c}, it has " + std::to_string(hx.size()) + " tensors");
  return hx;
}

/// Dropout needs the random generator, which only the decomposition uses.
template <const Operator& op>
bool drops_out(const Boxed* arguments) {
  const Arguments<op> a(arguments);
  return a.template boolean<"train">() && a.template real<"dropout">() > 0;
}

}  // namespace

TAPER_DECOMPOSITION_AS(lstm_input, false, drops_out<ops::lstm_input>) {
  const std::vector<Tensor> hx = pair_of_states("lstm", a.tensors<"hx">());
  return run_layers(layers_of("lstm", Cell::lstm, a), a.tensor<"input">(), {hx[0], hx[1]},
                    a.tensors<"params">());
}
TAPER_DECOMPOSITION_AS(gru_input, false, drops_out<ops::gru_input>) {
  return run_layers(layers_of("gru", Cell::gru, a), a.tensor<"input">(), {a.tensor<"hx">(), {}},
                    a.tensors<"params">());
}
TAPER_DECOMPOSITION_AS(rnn_tanh_input, false, drops_out<ops::rnn_tanh_input>) {
  return run_layers(layers_of("rnn_tanh", Cell::rnn_tanh, a), a.tensor<"input">(),
                    {a.tensor<"hx">(), {}}, a.tensors<"params">());
}
TAPER_DECOMPOSITION_AS(rnn_relu_input, false, drops_out<ops::rnn_relu_input>) {
  return run_layers(layers_of("rnn_relu", Cell::rnn_relu, a), a.tensor<"input">(),
                    {a.tensor<"hx">(), {}}, a.tensors<"params">());
}
TAPER_DECOMPOSITION(lstm_cell) {
  const std::vector<Tensor> hx = pair_of_states("lstm_cell", a.tensors<"hx">());
  return run_cell("lstm_cell", Cell::lstm, a, hx[0], hx[1]);
}
TAPER_DECOMPOSITION(gru_cell) { return run_cell("gru_cell", Cell::gru, a, a.tensor<"hx">(), {}); }
TAPER_DECOMPOSITION(rnn_tanh_cell) {
  return run_cell("rnn_tanh_cell", Cell::rnn_tanh, a, a.tensor<"hx">(), {});
}
TAPER_DECOMPOSITION(rnn_relu_cell) {
  return run_cell("rnn_relu_cell", Cell::rnn_relu, a, a.tensor<"hx">(), {});
}

}  // namespace taper::eager::decompositions
