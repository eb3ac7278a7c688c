// The first position of a largest or smallest element of each line, and that element.
//
// A line is searched in pieces of a fixed length, so that threads share long ones; of equal
// elements the first stays, so the cut changes nothing.
#include <cstring>

#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/screening.h"
#include "taper/kernels/portable/walked_lines.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

constexpr index_t piece_length = 4096;

template <class T>
struct Extreme {
  T value;
  index_t at;
};

/// The first place in x[0, screened) that no other is before.
template <class Order, class T>
int place_of_extreme(const T* x) {
  using Number = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  constexpr int lanes = 4;
  T best[lanes];
  TAPER_LANES
  for (int l = 0; l < lanes; ++l) best[l] = x[l];
  TAPER_UNROLLED
  for (int at = lanes; at < screened; at += lanes) {
    TAPER_LANES
    for (int l = 0; l < lanes; ++l)
      best[l] = Order::before(x[at + l], best[l]) ? x[at + l] : best[l];
  }
  T extreme = best[0];
  for (const T b : best) extreme = Order::before(b, extreme) ? b : extreme;
  Number place[lanes];
  for (Number& p : place) p = screened;
  TAPER_UNROLLED
  for (int at = screened - lanes; at >= 0; at -= lanes) {
    TAPER_LANES
    for (int l = 0; l < lanes; ++l)
      place[l] = Order::before(extreme, x[at + l]) ? place[l] : static_cast<Number>(at + l);
  }
  Number first = screened;
  for (const Number p : place) first = p < first ? p : first;
  return static_cast<int>(first);
}

/// x[0, n), which are the elements from `first` on of a line.
template <class Order, class T>
void search_block(const T* x, index_t first, index_t n, Extreme<T>& extreme) {
  Extreme<T> best = extreme;
  index_t i = 0;
  if constexpr (std::is_floating_point_v<T>)
    for (; i + screened <= n; i += screened) {
      if (!any_of([x, i, best](int l) { return Order::before(x[i + l], best.value); })) continue;
      const index_t place = i + place_of_extreme<Order>(x + i);
      best = {x[place], first + place};
    }
  for (; i < n; ++i)
    if (Order::before(x[i], best.value)) best = {x[i], first + i};
  extreme = best;
}

/// Elements [from, end) of the line that begins at element `line`.
template <class Order, class T>
Extreme<T> search_line(BlockReader<T>& reader, index_t line, index_t from, index_t end) {
  Extreme<T> best{Order::last, from};
  for (index_t i = from; i < end; i += strip_width) {
    const index_t n = end - i < strip_width ? end - i : strip_width;
    search_block<Order>(reader.read(line + i, n), i, n, best);
  }
  return best;
}

/// Elements [from, end) of each line of a strip.
template <class Order, class T>
void search_strip(BlockReader<T>& reader, const Strip& strip, index_t step, index_t from,
                  index_t end, Extreme<T>* best) {
  // numbers as wide as the values, for vectors of both
  using Row = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  T values[strip_width];
  Row rows[strip_width];
  for (index_t k = 0; k < strip.width; ++k) values[k] = Order::last, rows[k] = 0;
  for (index_t i = from; i < end; ++i) {
    const T* x = reader.read(strip.first + i * step, strip.width);
    const Row row = static_cast<Row>(i - from);
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t k = 0; k < strip.width; ++k) {
      const bool takes = Order::before(x[k], values[k]);
      values[k] = takes ? x[k] : values[k], rows[k] = takes ? row : rows[k];
    }
  }
  for (index_t k = 0; k < strip.width; ++k)
    best[k] = {values[k], from + static_cast<index_t>(rows[k])};
}

/// Room for what the pieces of each line find.
template <class T>
void need_pieces(Context& context, const Lines& lines) {
  if (const index_t parts = pieces(lines.extent, piece_length); parts > 1)
    context.need_scratch(static_cast<size_t>(lines.outer * lines.inner * parts) *
                         sizeof(Extreme<T>));
}

/// Calls emit(line, best, count) for the extremes of lines [line, line + count), count at most
/// strip_width.
template <class Order, class T, class Emit>
void search(const Context& context, const WalkedLines& plan, const Source& source,
            const Emit& emit) {
  const index_t extent = plan.lines.extent, step = plan.lines.inner,
                parts = pieces(extent, piece_length),
                length = extent < piece_length ? extent : piece_length,
                width = step < strip_width ? step : strip_width;
  if (step == 1 && parts == 1) {
    parallel_ranges(context.threads, plan.lines.outer, extent, [&](index_t line, index_t last) {
      BlockReader<T> reader(source);
      Extreme<T> best[strip_width];
      for (index_t count; line < last; line += count) {
        count = last - line < strip_width ? last - line : strip_width;
        for (index_t k = 0; k < count; ++k)
          best[k] = search_line<Order>(reader, (line + k) * extent, 0, extent);
        emit(line, best, count);
      }
    });
    return;
  }
  Extreme<T>* const found = static_cast<Extreme<T>*>(context.scratch);
  parallel_ranges(
      context.threads, plan.strips() * parts, length * width, [&](index_t item, index_t last) {
        BlockReader<T> reader(source);
        Extreme<T> best[strip_width];
        for (; item < last; ++item) {
          const Strip strip(plan, item / parts);
          const index_t part = item % parts, from = part * piece_length,
                        end = extent - from < piece_length ? extent : from + piece_length;
          if (step == 1)
            best[0] = search_line<Order>(reader, strip.first, from, end);
          else
            search_strip<Order>(reader, strip, step, from, end, best);
          if (parts == 1)
            emit(strip.line, best, strip.width);
          else
            for (index_t k = 0; k < strip.width; ++k)
              found[(strip.line + k) * parts + part] = best[k];
        }
      });
  if (parts == 1) return;
  for (index_t line = 0; line < plan.lines.outer * step; ++line) {
    Extreme<T> best = found[line * parts];
    for (index_t part = 1; part < parts; ++part)
      if (const Extreme<T>& other = found[line * parts + part];
          Order::before(other.value, best.value))
        best = other;
    emit(line, &best, 1);
  }
}

template <template <class> class Order, class E>
struct ArgExtreme {
  using T = Compute<E>;
  static Error prepare(Context& context, WalkedLines& plan, AnyView<const E> self,
                       Maybe<int64_t> dim, bool, View<int64_t>) {
    plan = dim ? WalkedLines::along(self.shape(), *dim) : WalkedLines::whole(self.shape());
    need_pieces<T>(context, plan.lines);
    return Error::ok;
  }
  static Error run(Context& context, const WalkedLines& plan, AnyView<const E> self, Maybe<int64_t>,
                   bool, View<int64_t> out) {
    const Source source(*self.ref, plan.walk, internal::computed_dtype<E>(*self.ref));
    search<Order<T>, T>(context, plan, source,
                        [=](index_t line, const Extreme<T>* best, index_t count) {
                          for (index_t k = 0; k < count; ++k) out.data()[line + k] = best[k].at;
                        });
    return Error::ok;
  }
};

template <template <class> class Order, class E>
struct WithIndices {
  using T = Compute<E>;
  static Error prepare(Context& context, WalkedLines& plan, AnyView<const E> self, int64_t dim,
                       bool, View<E>, View<int64_t>) {
    plan = WalkedLines::along(self.shape(), dim);
    need_pieces<T>(context, plan.lines);
    return Error::ok;
  }
  static Error run(Context& context, const WalkedLines& plan, AnyView<const E> self, int64_t, bool,
                   View<E> values, View<int64_t> indices) {
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source(*self.ref, plan.walk, computes);
    search<Order<T>, T>(
        context, plan, source, [=](index_t line, const Extreme<T>* best, index_t count) {
          BlockWriter<T> writer(*values.ref, computes, storer(computes, values.dtype()));
          T* const y = writer.place(line);
          for (index_t k = 0; k < count; ++k)
            y[k] = best[k].value, indices.data()[line + k] = best[k].at;
          writer.store(line, count);
        });
    return Error::ok;
  }
};

}  // namespace

TAPER_LINES_NUMERIC(argmax, ArgExtreme, Greater)
TAPER_LINES_NUMERIC(argmin, ArgExtreme, Less)
TAPER_LINES_NUMERIC(max_dim, WithIndices, Greater)
TAPER_LINES_NUMERIC(min_dim, WithIndices, Less)

}  // namespace taper::portable
