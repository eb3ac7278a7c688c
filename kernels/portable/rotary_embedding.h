// Rotary position embedding, over `Loops` (elements.h). rotary_embedding.cpp has the formula.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lines.h"

namespace taper::portable::rotary {

template <class T>
using Rows = View<T, Strides::rows>;

/// A row is the last dimension of x. The walks go over the other dimensions.
struct Plan {
  index_t rows, half;
  Walk x, cos, sin;
};

inline Walk walk_of_rows(Shape operand, Shape space) {
  --operand.rank, --space.rank;
  return Walk::broadcast(operand, space);
}

template <class T>
Error prepare(Context&, Plan& plan, Rows<const T> x, Rows<const T> cos, Rows<const T> sin, bool,
              View<T> out) {
  const Shape& shape = x.shape();
  plan.rows = 1, plan.half = shape.sizes[shape.rank - 1] / 2;
  for (int d = 0; d + 1 < shape.rank; ++d) plan.rows *= shape.sizes[d];
  plan.x = walk_of_rows(shape, out.shape());
  plan.cos = walk_of_rows(cos.shape(), out.shape());
  plan.sin = walk_of_rows(sin.shape(), out.shape());
  return Error::ok;
}

/// Halves a and b of x become -b and a.
template <class T>
void turn_halves(index_t half, const T* x, const T* cos, const T* sin, T* y) {
  for_each_element(half, [=](index_t i) { y[i] = x[i] * cos[i] + -x[half + i] * sin[i]; });
  for_each_element(half, [=](index_t i) {
    const index_t j = half + i;
    y[j] = x[j] * cos[j] + x[i] * sin[j];
  });
}
/// Neighbours a and b of x become -b and a.
template <class T>
void turn_neighbours(index_t half, const T* x, const T* cos, const T* sin, T* y) {
  for_each_element(half, [=](index_t i) {
    const index_t a = 2 * i, b = a + 1;
    y[a] = x[a] * cos[a] + -x[b] * sin[a];
    y[b] = x[b] * cos[b] + x[a] * sin[b];
  });
}

/// Rows [first, end).
template <class T, bool interleaved>
void turn_rows(const Plan& plan, index_t first, index_t end, const T* x, const T* cos, const T* sin,
               T* y) {
  Cursor at_x(plan.x, first), at_cos(plan.cos, first), at_sin(plan.sin, first);
  for (index_t row = first; row < end; ++row) {
    (interleaved ? turn_neighbours<T>
                 : turn_halves<T>)(plan.half, x + at_x.offset(), cos + at_cos.offset(),
                                   sin + at_sin.offset(), y + row * 2 * plan.half);
    at_x.advance(plan.x.rank - 1, 1);
    at_cos.advance(plan.cos.rank - 1, 1);
    at_sin.advance(plan.sin.rank - 1, 1);
  }
}

template <class Loops, class T>
Error run(Context& context, const Plan& plan, Rows<const T> x, Rows<const T> cos, Rows<const T> sin,
          bool interleaved, View<T> out) {
  parallel_ranges(context.threads, plan.rows, 2 * plan.half, [&](index_t first, index_t end) {
    const auto turn = [&](auto loop) {
      loop(plan, first, end, x.data(), cos.data(), sin.data(), out.data());
    };
    if (interleaved)
      turn([](auto&&... a) { Loops::template call<&turn_rows<T, true>>(a...); });
    else
      turn([](auto&&... a) { Loops::template call<&turn_rows<T, false>>(a...); });
  });
  return Error::ok;
}

}  // namespace taper::portable::rotary
