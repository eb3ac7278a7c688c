// Derivatives of the scans of recurrent layers (formulas: kernels/portable/recurrent.h). The
// gradient of the weight is one product over all steps. Second derivatives use the scans written
// out step by step, so the number of steps must be known.
#include "taper/exporter/eager/ops/recurrent.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/differentiate.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

using Tensors = std::vector<Tensor>;

/// The states with which the steps begin.
Tensor states_before(const Tensor& first, const Tensor& states, bool reverse) {
  const Dim others = states.size(0) - Dim(1);
  const Tensor row = unsqueeze(first, 0);
  return reverse ? cat({narrow(states, 0, 1, others), row})
                 : cat({row, narrow(states, 0, 0, others)});
}

/// dW = dᵀ h over all steps: d (time, batch, gates · hidden), before (time, batch, hidden).
Tensor weight_gradient(const Tensor& d, const Tensor& before) {
  const Dim rows = d.size(0) * d.size(1);
  return mm(d.reshape({rows, d.size(2)}).t(), before.reshape({rows, before.size(2)}));
}

Tensor or_zeros(const Tensor& gradient, const Dims& sizes, DType dtype) {
  return gradient.defined() ? gradient : full(sizes, Scalar(0), dtype);
}

// ---- the scans, step by step ----

/// Calls body(t) for each step, from the first to the last, or backwards.
template <class Body>
void for_each_step(const Tensor& steps, bool from_end, const Body& body) {
  const int64_t time = steps.size(0).value();
  for (int64_t i = 0; i < time; ++i) body(from_end ? time - 1 - i : i);
}
Tensor joined(const Tensors& steps) { return stack(steps); }
Tensor part(const Tensor& gates, int64_t i, const Tensor& like) {
  const Dim hidden = like.size(-1);
  return narrow(gates, -1, Dim(i) * hidden, hidden);
}

/// {grad_output, output, weight_hh} -> {grad_gates, grad_hx}
Tensors rnn_steps_back(const Tensors& v, bool relu_, bool reverse) {
  Tensors d(static_cast<size_t>(v[0].size(0).value()));
  Tensor carry;
  for_each_step(v[0], !reverse, [&](int64_t t) {
    const Tensor dh = carry.defined() ? v[0][t] + carry : v[0][t], y = v[1][t];
    Tensor& gate = d[static_cast<size_t>(t)];
    gate = relu_ ? masked_fill(dh, le(y, Scalar(0)), 0) : dh * (1 - y * y);
    carry = mm(gate, v[2]);
  });
  return {joined(d), carry};
}

/// {gates, hx, cx, weight_hh} -> {output, cells, activations}
Tensors lstm_steps(const Tensors& v, bool reverse) {
  const size_t time = static_cast<size_t>(v[0].size(0).value());
  Tensors y(time), cells(time), activations(time);
  Tensor h = v[1], c = v[2];
  for_each_step(v[0], reverse, [&](int64_t t) {
    const size_t at = static_cast<size_t>(t);
    const Tensor x = v[0][t] + linear(h, v[3]);
    const Tensor i = sigmoid(part(x, 0, h)), f = sigmoid(part(x, 1, h)), g = tanh(part(x, 2, h)),
                 o = sigmoid(part(x, 3, h));
    cells[at] = c = f * c + i * g;
    y[at] = h = o * tanh(c);
    activations[at] = cat({i, f, g, o}, 1);
  });
  return {joined(y), joined(cells), joined(activations)};
}
/// {grad_output, grad_cells, cx, cells, activations, weight_hh} -> {grad_gates, grad_hx, grad_cx}
Tensors lstm_steps_back(const Tensors& v, bool reverse) {
  const int64_t time = v[0].size(0).value();
  Tensors d(static_cast<size_t>(time));
  Tensor carry, cell_carry;
  for_each_step(v[0], !reverse, [&](int64_t t) {
    const int64_t before = reverse ? t + 1 : t - 1;
    const Tensor old = before < 0 || before >= time ? v[2] : v[3][before];
    const Tensor a = v[4][t], squashed = tanh(v[3][t]);
    const Tensor i = part(a, 0, old), f = part(a, 1, old), g = part(a, 2, old), o = part(a, 3, old);
    const Tensor dh = carry.defined() ? v[0][t] + carry : v[0][t];
    Tensor dc = v[1][t] + dh * o * (1 - squashed * squashed);
    if (cell_carry.defined()) dc = dc + cell_carry;
    d[static_cast<size_t>(t)] = cat({dc * g * i * (1 - i), dc * old * f * (1 - f),
                                     dc * i * (1 - g * g), dh * squashed * o * (1 - o)},
                                    1);
    carry = mm(d[static_cast<size_t>(t)], v[5]);
    cell_carry = dc * f;
  });
  return {joined(d), carry, cell_carry};
}

/// {gates, hx, weight_hh, bias_hn or undefined} -> {output, activations}
Tensors gru_steps(const Tensors& v, bool reverse) {
  const size_t time = static_cast<size_t>(v[0].size(0).value());
  Tensors y(time), activations(time);
  Tensor h = v[1];
  for_each_step(v[0], reverse, [&](int64_t t) {
    const Tensor x = v[0][t], product = linear(h, v[2]);
    const Tensor r = sigmoid(part(x, 0, h) + part(product, 0, h)),
                 z = sigmoid(part(x, 1, h) + part(product, 1, h));
    Tensor q = part(product, 2, h);
    if (v[3].defined()) q = q + v[3];
    const Tensor n = tanh(part(x, 2, h) + r * q);
    activations[static_cast<size_t>(t)] = cat({r, z, n, q}, 1);
    y[static_cast<size_t>(t)] = h = (1 - z) * n + z * h;
  });
  return {joined(y), joined(activations)};
}
/// {grad_output, hx, output, activations, weight_hh} -> {grad_gates, grad_hidden_gates, grad_hx}
Tensors gru_steps_back(const Tensors& v, bool reverse) {
  const int64_t time = v[0].size(0).value();
  Tensors d(static_cast<size_t>(time)), hidden(static_cast<size_t>(time));
  Tensor carry;
  for_each_step(v[0], !reverse, [&](int64_t t) {
    const int64_t before = reverse ? t + 1 : t - 1;
    const Tensor old = before < 0 || before >= time ? v[1] : v[2][before], a = v[3][t];
    const Tensor r = part(a, 0, old), z = part(a, 1, old), n = part(a, 2, old), q = part(a, 3, old);
    const Tensor dh = carry.defined() ? v[0][t] + carry : v[0][t];
    const Tensor dn = dh * (1 - z) * (1 - n * n), dr = dn * q * r * (1 - r),
                 dz = dh * (old - n) * z * (1 - z);
    d[static_cast<size_t>(t)] = cat({dr, dz, dn}, 1);
    hidden[static_cast<size_t>(t)] = cat({dr, dz, dn * r}, 1);
    carry = dh * z + mm(hidden[static_cast<size_t>(t)], v[4]);
  });
  return {joined(d), joined(hidden), carry};
}

}  // namespace

TAPER_DERIVATIVE(taper_rnn_scan, "hx", "weight_hh", "result") {
  const bool relu = saved.boolean<"relu">(), reverse = saved.boolean<"reverse">();
  const Tensor w = saved.tensor<"weight_hh">(), y = saved.result();
  const auto [d, d_hx] = call<ops::taper_rnn_scan_backward>(dy, y, w, relu, reverse);
  Tensor dw;
  if (saved.needs<"weight_hh">())
    dw = weight_gradient(d, states_before(saved.tensor<"hx">(), y, reverse));
  return {d, d_hx, dw};
}

TAPER_DERIVATIVE(taper_rnn_scan_backward, "grad_output", "output", "weight_hh") {
  const bool relu = saved.boolean<"relu">(), reverse = saved.boolean<"reverse">();
  return differentiate(
      [=](const Tensors& v) { return rnn_steps_back(v, relu, reverse); },
      {saved.tensor<"grad_output">(), saved.tensor<"output">(), saved.tensor<"weight_hh">()},
      {saved.needs<"grad_output">(), saved.needs<"output">(), saved.needs<"weight_hh">()}, dys);
}

TAPER_DERIVATIVE(taper_lstm_scan, "gates", "hx", "cx", "weight_hh", "result0", "result1",
                 "result2") {
  const bool reverse = saved.boolean<"reverse">();
  const Tensor hx = saved.tensor<"hx">(), cx = saved.tensor<"cx">(),
               w = saved.tensor<"weight_hh">(), y = saved.result(0), cells = saved.result(1);
  if (dys[2].defined())  // only second derivatives have a gradient for the activations
    return differentiate([=](const Tensors& v) { return lstm_steps(v, reverse); },
                         {saved.tensor<"gates">(), hx, cx, w},
                         {saved.needs<"gates">(), saved.needs<"hx">(), saved.needs<"cx">(),
                          saved.needs<"weight_hh">()},
                         dys);
  const auto [d, d_hx, d_cx] = call<ops::taper_lstm_scan_backward>(
      or_zeros(dy, y.sizes(), y.dtype()), or_zeros(dys[1], y.sizes(), y.dtype()), cx, cells,
      saved.result(2), w, reverse);
  Tensor dw;
  if (saved.needs<"weight_hh">()) dw = weight_gradient(d, states_before(hx, y, reverse));
  return {d, d_hx, d_cx, dw};
}

TAPER_DERIVATIVE(taper_lstm_scan_backward, "grad_output", "grad_cells", "cx", "cells",
                 "activations", "weight_hh") {
  const bool reverse = saved.boolean<"reverse">();
  return differentiate(
      [=](const Tensors& v) { return lstm_steps_back(v, reverse); },
      {saved.tensor<"grad_output">(), saved.tensor<"grad_cells">(), saved.tensor<"cx">(),
       saved.tensor<"cells">(), saved.tensor<"activations">(), saved.tensor<"weight_hh">()},
      {saved.needs<"grad_output">(), saved.needs<"grad_cells">(), saved.needs<"cx">(),
       saved.needs<"cells">(), saved.needs<"activations">(), saved.needs<"weight_hh">()},
      dys);
}

TAPER_DERIVATIVE(taper_gru_scan, "gates", "hx", "weight_hh", "bias_hn", "result0", "result1") {
  const bool reverse = saved.boolean<"reverse">();
  const Tensor hx = saved.tensor<"hx">(), w = saved.tensor<"weight_hh">(), y = saved.result(0);
  if (dys[1].defined())  // only second derivatives have a gradient for the activations
    return differentiate([=](const Tensors& v) { return gru_steps(v, reverse); },
                         {saved.tensor<"gates">(), hx, w, saved.tensor<"bias_hn">()},
                         {saved.needs<"gates">(), saved.needs<"hx">(), saved.needs<"weight_hh">(),
                          saved.needs<"bias_hn">()},
                         dys);
  const auto [d, d_hidden, d_hx] = call<ops::taper_gru_scan_backward>(
      or_zeros(dy, y.sizes(), y.dtype()), hx, y, saved.result(1), w, reverse);
  Tensor dw, db;
  if (saved.needs<"weight_hh">()) dw = weight_gradient(d_hidden, states_before(hx, y, reverse));
  if (saved.needs<"bias_hn">()) {
    const Dim hidden = hx.size(1);
    db = sum(narrow(d_hidden, 2, hidden * Dim(2), hidden), {0, 1});
  }
  return {d, d_hx, dw, db};
}

TAPER_DERIVATIVE(taper_gru_scan_backward, "grad_output", "hx", "output", "activations",
                 "weight_hh") {
  const bool reverse = saved.boolean<"reverse">();
  return differentiate(
      [=](const Tensors& v) { return gru_steps_back(v, reverse); },
      {saved.tensor<"grad_output">(), saved.tensor<"hx">(), saved.tensor<"output">(),
       saved.tensor<"activations">(), saved.tensor<"weight_hh">()},
      {saved.needs<"grad_output">(), saved.needs<"hx">(), saved.needs<"output">(),
       saved.needs<"activations">(), saved.needs<"weight_hh">()},
      dys);
}

}  // namespace taper::eager::derivatives
