// The loops of running sums and similar operators, over `Loops` (elements.h).
#pragma once
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/small_rows.h"
#include "taper/kernels/portable/walked_lines.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {

template <class T>
struct RunningSum {
  static constexpr T start = T(0);
  static T next(T a, T x) { return wrapping_add(a, x); }
};
/// Running sums of the lines of a strip: y[k] = x[0] + … + x[k]. Floats are summed in double.
template <template <class> class Running, class T>
class Sums {
  using Accumulator = std::conditional_t<std::is_same_v<T, float>, double, T>;
  using Step = Running<Accumulator>;

 public:
  Sums() {
    for (Accumulator& sum : sums_) sum = Step::start;
  }
  /// Takes the next n elements of a strip with a single line.
  void line(const T* x, index_t n, index_t, T* y, index_t) {
    Accumulator sum = sums_[0];
    index_t i = 0;
    if constexpr (std::is_same_v<Step, RunningSum<double>> && std::is_same_v<T, float>)
      for (; i + 4 <= n; i += 4) {  // only one addition in four depends on the one before
        const double a = x[i], ab = a + x[i + 1], c = x[i + 2], cd = c + x[i + 3];
        y[i] = static_cast<float>(sum + a), y[i + 1] = static_cast<float>(sum + ab);
        y[i + 2] = static_cast<float>(sum + (ab + c));
        sum += ab + cd;
        y[i + 3] = static_cast<float>(sum);
      }
    for (; i < n; ++i)
      sum = Step::next(sum, static_cast<Accumulator>(x[i])), y[i] = static_cast<T>(sum);
    sums_[0] = sum;
  }
  /// Takes the next element of each of n lines.
  void row(const T* x, index_t n, index_t, T* y, index_t) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t k = 0; k < n; ++k) {
      sums_[k] = Step::next(sums_[k], static_cast<Accumulator>(x[k]));
      y[k] = static_cast<T>(sums_[k]);
    }
  }

 private:
  Accumulator sums_[strip_width];
};

template <class State, class T>
void next_of_line(State& state, const T* x, index_t n, index_t first, T* y, index_t to) {
  state.line(x, n, first, y, to);
}
template <class State, class T>
void next_of_lines(State& state, const T* x, index_t n, index_t position, T* y, index_t to) {
  state.row(x, n, position, y, to);
}

/// Makes a State from `given` for each strip, and shows it the elements of the strip in order.
template <class Loops, class State, class T, class E, class... Given>
void scan(const Context& context, const WalkedLines& plan, AnyView<const E> self, View<E> out,
          Given... given) {
  const DType computes = internal::computed_dtype<E>(*self.ref);
  const Source source = source_of<Loops>(*self.ref, plan.walk, computes);
  const Store store = Loops::storer(computes, out.dtype());
  const index_t extent = plan.lines.extent, step = plan.lines.inner,
                width = step < strip_width ? step : strip_width;
  parallel_ranges(
      context.threads, plan.strips(), extent * width, [&](index_t number, index_t last) {
        BlockReader<T> reader(source);
        BlockWriter<T> writer(*out.ref, computes, store);
        for (; number < last; ++number) {
          const Strip strip(plan, number);
          State state(given...);
          const index_t block = step == 1 ? strip_width : 1;
          for (index_t i = 0; i < extent; i += block) {
            const index_t at = strip.first + i * step, n = step > 1             ? strip.width
                                                           : extent - i < block ? extent - i
                                                                                : block;
            const T* const x = reader.read(at, n);
            T* const y = writer.place(at);
            if (step == 1)
              Loops::template call<&next_of_line<State, T>>(state, x, n, i, y, at);
            else
              Loops::template call<&next_of_lines<State, T>>(state, x, n, i, y, at);
            writer.store(at, n);
          }
        }
      });
}

template <class Loops, template <class> class Running, class E, class... P>
struct Scan {
  static Error prepare(Context&, WalkedLines& plan, AnyView<const E> self, int64_t dim, P...,
                       View<E>) {
    plan = WalkedLines::along(self.shape(), dim);
    return Error::ok;
  }
  static Error run(Context& context, const WalkedLines& plan, AnyView<const E> self, int64_t, P...,
                   View<E> out) {
    scan<Loops, Sums<Running, Compute<E>>, Compute<E>>(context, plan, self, out);
    return Error::ok;
  }
};

}  // namespace taper::portable
