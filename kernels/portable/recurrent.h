// One layer of a recurrent network in one direction: a scan over the steps, forward and backward.
// h, c: the state before a step. x: the input's part of the gates. W: weight_hh.
//
//   rnn   h' = f(x + h Wᵀ), f = tanh or relu
//   lstm  (i, f, g, o) = (σ, σ, tanh, σ)(x + h Wᵀ),  c' = f c + i g,  h' = o tanh(c')
//         (Hochreiter and Schmidhuber, "Long short-term memory", 1997; Gers et al., 2000)
//   gru   (r, z) = σ(x + h Wᵀ),  q = h W_nᵀ + b_hn,  n = tanh(x_n + r q),  h' = (1 - z) n + z h
//         (Cho et al., "Learning phrase representations …", 2014, with the reset gate after the
//         product, as cuDNN and PyTorch have it)
//
// The functions are templates over `P`, which says how to compute a matrix product:
//   T                               the element type
//   Plan, plan(context, …, m, n, k) the plan of a product; `plan` returns the scratch it needs, in
//                                   bytes
//   run(context, plan, product)     computes a portable::Product<T>
//   steps_worth_a_copy              from so many steps on, Wᵀ is copied to the scratch first;
//                                   0: never
//   transpose(…)                    makes this copy
#pragma once
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/product.h"
#include "taper/kernels/shapes/recurrent.h"

namespace taper::portable::recurrent {

struct Sizes {
  index_t time, batch, hidden;
  index_t state() const { return batch * hidden; }
};
template <class T>
Sizes sizes_of(View<const T> steps, View<const T> weight_hh) {
  return {steps.size(0), steps.size(1), weight_hh.size(1)};
}

/// Up to two products of a step, and where in the scratch other data lies.
template <class P>
struct Plan {
  typename P::Plan product[2];
  uint64_t weight_at, rest_at;
};

constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Whether Wᵀ is copied to the scratch.
template <class P>
constexpr bool copies_weight(const Sizes& s) {
  return P::steps_worth_a_copy > 0 && s.time >= P::steps_worth_a_copy;
}

/// Plans products with `columns[i]` columns and depth `depth`. Also asks for scratch for a copied
/// weight of `weight` elements and for `rest` more elements.
template <class P>
Error make_plan(Context& context, Plan<P>& plan, index_t rows, Span<const index_t> columns,
                index_t depth, index_t weight, index_t rest) {
  size_t bytes = 0;
  for (index_t i = 0; i < columns.size(); ++i) {
    const size_t needed = P::plan(context, plan.product[i], rows, columns[i], depth);
    if (needed > bytes) bytes = needed;
  }
  plan.weight_at = aligned(bytes);
  plan.rest_at = plan.weight_at + aligned(static_cast<size_t>(weight) * sizeof(typename P::T));
  context.need_scratch(plan.rest_at + static_cast<size_t>(rest) * sizeof(typename P::T) +
                       64);  // a gap, as behind every buffer
  return Error::ok;
}

/// Calls body(t, before) for each step in the layer's direction. The step begins with the state of
/// step `before`; the first step has -1.
template <class Body>
void for_each_step(index_t time, bool reverse, const Body& body) {
  for (index_t i = 0; i < time; ++i)
    reverse ? body(time - 1 - i, i == 0 ? -1 : time - i) : body(i, i - 1);
}
/// The same, from the last step to the first.
template <class Body>
void for_each_step_back(index_t time, bool reverse, const Body& body) {
  for (index_t i = time - 1; i >= 0; --i)
    reverse ? body(time - 1 - i, i == 0 ? -1 : time - i) : body(i, i - 1);
}

/// Calls body(example) for every example, with about 2048 elements in a task.
template <class Body>
void for_each_example(const Context& context, const Sizes& s, const Body& body) {
  const index_t chunk = s.hidden < 2048 ? 2048 / (s.hidden > 0 ? s.hidden : 1) : 1;
  parallel_for(context.threads, pieces(s.batch, chunk), [&](index_t task) {
    for (index_t b = task * chunk; b < s.batch && b < (task + 1) * chunk; ++b) body(b);
  });
}

/// Wᵀ, as the products of each step read it.
template <class P>
Matrix<const typename P::T> transposed_weight(const Context& context, const Plan<P>& plan,
                                              const Sizes& s, View<const typename P::T> weight) {
  using T = typename P::T;
  const index_t rows = weight.size(0), columns = weight.size(1);
  if constexpr (P::steps_worth_a_copy > 0) {
    if (copies_weight<P>(s)) {
      T* copy = reinterpret_cast<T*>(static_cast<std::byte*>(context.scratch) + plan.weight_at);
      P::transpose(context, weight.data(), rows, columns, copy);
      return {copy, rows, 1};
    }
  }
  return {weight.data(), 1, columns};
}

/// out (batch, count) = h Wᵀ + addend, with the rows of W from `first` on.
template <class T>
Product<T> hidden_part(const Sizes& s, const T* h, Matrix<const T> transposed, index_t first,
                       index_t count, Matrix<const T> addend, Matrix<T> out) {
  return {s.batch,
          count,
          s.hidden,
          {h, s.hidden, 1},
          {transposed.at(0, first), transposed.row, transposed.column},
          addend,
          out};
}
/// out (batch, hidden) = d (batch, count) W + addend.
template <class T>
Product<T> carried_back(const Sizes& s, const T* d, View<const T> weight, const T* addend, T* out) {
  const index_t count = weight.size(0), h = s.hidden;
  return {s.batch, h, count, {d, count, 1}, {weight.data(), h, 1}, {addend, h, 1}, {out, h, 1}};
}

template <class T>
void fill_zero(View<T> v) {
  for (index_t i = 0; i < v.numel(); ++i) v.data()[i] = 0;
}

// ---- rnn ----

template <class P, class T = typename P::T>
Error prepare_rnn(Context& context, Plan<P>& plan, View<const T> gates, View<const T>,
                  View<const T> weight, bool, bool, View<T>) {
  const Sizes s = sizes_of(gates, weight);
  const index_t columns[] = {s.hidden};
  return make_plan<P>(context, plan, s.batch, columns, s.hidden,
                      copies_weight<P>(s) ? weight.numel() : 0, 0);
}
template <class P, class T = typename P::T>
Error rnn(Context& context, const Plan<P>& plan, View<const T> gates, View<const T> hx,
          View<const T> weight, bool relu, bool reverse, View<T> output) {
  const Sizes s = sizes_of(gates, weight);
  const Matrix<const T> w = transposed_weight<P>(context, plan, s, weight);
  for_each_step(s.time, reverse, [&](index_t t, index_t before) {
    const T* h = before < 0 ? hx.data() : output.data() + before * s.state();
    T* y = output.data() + t * s.state();
    P::run(context, plan.product[0],
           hidden_part<T>(s, h, w, 0, s.hidden, {gates.data() + t * s.state(), s.hidden, 1},
                          {y, s.hidden, 1}));
    for_each_example(context, s, [&](index_t b) {
      T* row = y + b * s.hidden;
      if (relu)
        for_each_element(s.hidden, [=](index_t k) { row[k] = row[k] < 0 ? T(0) : row[k]; });
      else
        for_each_element(s.hidden, [=](index_t k) { row[k] = math::tanh(row[k]); });
    });
  });
  return Error::ok;
}

template <class P, class T = typename P::T>
Error prepare_rnn_backward(Context& context, Plan<P>& plan, View<const T> grad_output,
                           View<const T>, View<const T> weight, bool, bool, View<T>, View<T>) {
  const Sizes s = sizes_of(grad_output, weight);
  const index_t columns[] = {s.hidden};
  return make_plan<P>(context, plan, s.batch, columns, weight.size(0), 0, 0);
}
template <class P, class T = typename P::T>
Error rnn_backward(Context& context, const Plan<P>& plan, View<const T> grad_output,
                   View<const T> output, View<const T> weight, bool relu, bool reverse,
                   View<T> grad_gates, View<T> grad_hx) {
  const Sizes s = sizes_of(grad_output, weight);
  fill_zero(grad_hx);  // the gradient that comes from the next step
  for_each_step_back(s.time, reverse, [&](index_t t, index_t) {
    T* d = grad_gates.data() + t * s.state();
    for_each_example(context, s, [&](index_t b) {
      const index_t at = t * s.state() + b * s.hidden;
      const T *dy = grad_output.data() + at, *y = output.data() + at,
              *carry = grad_hx.data() + b * s.hidden;
      T* to = d + b * s.hidden;
      if (relu)
        for_each_element(s.hidden, [=](index_t k) { to[k] = y[k] <= 0 ? T(0) : dy[k] + carry[k]; });
      else
        for_each_element(s.hidden,
                         [=](index_t k) { to[k] = (dy[k] + carry[k]) * (1 - y[k] * y[k]); });
    });
    P::run(context, plan.product[0], carried_back<T>(s, d, weight, nullptr, grad_hx.data()));
  });
  return Error::ok;
}

// ---- lstm ----

template <class P, class T = typename P::T>
Error prepare_lstm(Context& context, Plan<P>& plan, View<const T> gates, View<const T>,
                   View<const T>, View<const T> weight, bool, View<T>, View<T>, View<T>) {
  const Sizes s = sizes_of(gates, weight);
  const index_t columns[] = {4 * s.hidden};
  return make_plan<P>(context, plan, s.batch, columns, s.hidden,
                      copies_weight<P>(s) ? weight.numel() : 0, 0);
}
template <class P, class T = typename P::T>
Error lstm(Context& context, const Plan<P>& plan, View<const T> gates, View<const T> hx,
           View<const T> cx, View<const T> weight, bool reverse, View<T> output, View<T> cells,
           View<T> activations) {
  const Sizes s = sizes_of(gates, weight);
  const Matrix<const T> w = transposed_weight<P>(context, plan, s, weight);
  const index_t n = s.hidden, width = 4 * n;
  for_each_step(s.time, reverse, [&](index_t t, index_t before) {
    const T* h = before < 0 ? hx.data() : output.data() + before * s.state();
    const T* c = before < 0 ? cx.data() : cells.data() + before * s.state();
    T* a = activations.data() + t * s.batch * width;
    P::run(context, plan.product[0],
           hidden_part<T>(s, h, w, 0, width, {gates.data() + t * s.batch * width, width, 1},
                          {a, width, 1}));
    for_each_example(context, s, [&](index_t b) {
      T *i = a + b * width, *f = i + n, *g = f + n, *o = g + n;
      const T* old = c + b * n;
      T *cell = cells.data() + t * s.state() + b * n, *y = output.data() + t * s.state() + b * n;
      for_each_element(n, [=](index_t k) {
        i[k] = math::sigmoid(i[k]), f[k] = math::sigmoid(f[k]);
        g[k] = math::tanh(g[k]), o[k] = math::sigmoid(o[k]);
        cell[k] = f[k] * old[k] + i[k] * g[k];
        y[k] = o[k] * math::tanh(cell[k]);
      });
    });
  });
  return Error::ok;
}

template <class P, class T = typename P::T>
Error prepare_lstm_backward(Context& context, Plan<P>& plan, View<const T> grad_output,
                            View<const T>, View<const T>, View<const T>, View<const T>,
                            View<const T> weight, bool, View<T>, View<T>, View<T>) {
  const Sizes s = sizes_of(grad_output, weight);
  const index_t columns[] = {s.hidden};
  return make_plan<P>(context, plan, s.batch, columns, weight.size(0), 0, 0);
}
template <class P, class T = typename P::T>
Error lstm_backward(Context& context, const Plan<P>& plan, View<const T> grad_output,
                    View<const T> grad_cells, View<const T> cx, View<const T> cells,
                    View<const T> activations, View<const T> weight, bool reverse,
                    View<T> grad_gates, View<T> grad_hx, View<T> grad_cx) {
  const Sizes s = sizes_of(grad_output, weight);
  const index_t n = s.hidden, width = 4 * n;
  fill_zero(grad_hx), fill_zero(grad_cx);  // the gradients that come from the next step
  for_each_step_back(s.time, reverse, [&](index_t t, index_t before) {
    const T* c = before < 0 ? cx.data() : cells.data() + before * s.state();
    T* d = grad_gates.data() + t * s.batch * width;
    for_each_example(context, s, [&](index_t b) {
      const index_t at = t * s.state() + b * n;
      const T *dy = grad_output.data() + at, *dcell = grad_cells.data() + at,
              *cell = cells.data() + at, *old = c + b * n, *dh = grad_hx.data() + b * n;
      const T *i = activations.data() + (t * s.batch + b) * width, *f = i + n, *g = f + n,
              *o = g + n;
      T *di = d + b * width, *df = di + n, *dg = df + n, *d_o = dg + n;
      T* dc = grad_cx.data() + b * n;
      for_each_element(n, [=](index_t k) {
        const T squashed = math::tanh(cell[k]), from_output = dy[k] + dh[k];
        const T from_cell = dcell[k] + dc[k] + from_output * o[k] * (1 - squashed * squashed);
        di[k] = from_cell * g[k] * i[k] * (1 - i[k]);
        df[k] = from_cell * old[k] * f[k] * (1 - f[k]);
        dg[k] = from_cell * i[k] * (1 - g[k] * g[k]);
        d_o[k] = from_output * squashed * o[k] * (1 - o[k]);
        dc[k] = from_cell * f[k];
      });
    });
    P::run(context, plan.product[0], carried_back<T>(s, d, weight, nullptr, grad_hx.data()));
  });
  return Error::ok;
}

// ---- gru ----

template <class P, class T = typename P::T>
Error prepare_gru(Context& context, Plan<P>& plan, View<const T> gates, View<const T>,
                  View<const T> weight, Maybe<View<const T>>, bool, View<T>, View<T>) {
  const Sizes s = sizes_of(gates, weight);
  const index_t columns[] = {2 * s.hidden, s.hidden};
  return make_plan<P>(context, plan, s.batch, columns, s.hidden,
                      copies_weight<P>(s) ? weight.numel() : 0, 0);
}
template <class P, class T = typename P::T>
Error gru(Context& context, const Plan<P>& plan, View<const T> gates, View<const T> hx,
          View<const T> weight, Maybe<View<const T>> bias_hn, bool reverse, View<T> output,
          View<T> activations) {
  const Sizes s = sizes_of(gates, weight);
  const Matrix<const T> w = transposed_weight<P>(context, plan, s, weight);
  const index_t n = s.hidden, width = 4 * n;
  for_each_step(s.time, reverse, [&](index_t t, index_t before) {
    const T* h = before < 0 ? hx.data() : output.data() + before * s.state();
    const T* x = gates.data() + t * s.batch * 3 * n;
    T* a = activations.data() + t * s.batch * width;
    P::run(context, plan.product[0],
           hidden_part<T>(s, h, w, 0, 2 * n, {x, 3 * n, 1}, {a, width, 1}));
    P::run(context, plan.product[1],
           hidden_part<T>(s, h, w, 2 * n, n, {bias_hn ? bias_hn->data() : nullptr, 0, 1},
                          {a + 3 * n, width, 1}));
    for_each_example(context, s, [&](index_t b) {
      T *r = a + b * width, *z = r + n, *m = z + n, *q = m + n;
      const T *x_n = x + b * 3 * n + 2 * n, *old = h + b * n;
      T* y = output.data() + t * s.state() + b * n;
      for_each_element(n, [=](index_t k) {
        r[k] = math::sigmoid(r[k]), z[k] = math::sigmoid(z[k]);
        m[k] = math::tanh(x_n[k] + r[k] * q[k]);
        y[k] = (1 - z[k]) * m[k] + z[k] * old[k];
      });
    });
  });
  return Error::ok;
}

template <class P, class T = typename P::T>
Error prepare_gru_backward(Context& context, Plan<P>& plan, View<const T> grad_output,
                           View<const T>, View<const T>, View<const T>, View<const T> weight, bool,
                           View<T>, View<T>, View<T>) {
  const Sizes s = sizes_of(grad_output, weight);
  const index_t columns[] = {s.hidden};
  return make_plan<P>(context, plan, s.batch, columns, weight.size(0), 0, s.state());
}
template <class P, class T = typename P::T>
Error gru_backward(Context& context, const Plan<P>& plan, View<const T> grad_output,
                   View<const T> hx, View<const T> output, View<const T> activations,
                   View<const T> weight, bool reverse, View<T> grad_gates,
                   View<T> grad_hidden_gates, View<T> grad_hx) {
  const Sizes s = sizes_of(grad_output, weight);
  const index_t n = s.hidden;
  T* direct = reinterpret_cast<T*>(static_cast<std::byte*>(context.scratch) + plan.rest_at);
  fill_zero(grad_hx);  // the gradient that comes from the next step
  for_each_step_back(s.time, reverse, [&](index_t t, index_t before) {
    const T* h = before < 0 ? hx.data() : output.data() + before * s.state();
    T* d = grad_hidden_gates.data() + t * s.batch * 3 * n;
    for_each_example(context, s, [&](index_t b) {
      const T *dy = grad_output.data() + t * s.state() + b * n, *old = h + b * n,
              *carry = grad_hx.data() + b * n;
      const T *r = activations.data() + (t * s.batch + b) * 4 * n, *z = r + n, *m = z + n,
              *q = m + n;
      T *hr = d + b * 3 * n, *hz = hr + n, *hn = hz + n;
      T *dr = grad_gates.data() + (t * s.batch + b) * 3 * n, *dz = dr + n, *dn = dz + n;
      T* kept = direct + b * n;
      for_each_element(n, [=](index_t k) {
        const T dh = dy[k] + carry[k], before_tanh = dh * (1 - z[k]) * (1 - m[k] * m[k]);
        dn[k] = before_tanh, hn[k] = before_tanh * r[k];
        dr[k] = hr[k] = before_tanh * q[k] * r[k] * (1 - r[k]);
        dz[k] = hz[k] = dh * (old[k] - m[k]) * z[k] * (1 - z[k]);
        kept[k] = dh * z[k];
      });
    });
    P::run(context, plan.product[0], carried_back<T>(s, d, weight, direct, grad_hx.data()));
  });
  return Error::ok;
}

}  // namespace taper::portable::recurrent
