// Static 8-bit operators without products: sums, differences, tables, averages, resizing, softmax.
#include <cstring>

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/average.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/upsample_taps.h"
#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/shapes/integer.h"

namespace taper::quantized {
namespace {

using Bytes = View<const int8_t>;
using Ints = Span<const int64_t>;

constexpr index_t grain = 16384;  // elements of a task

// ---- two operands

/// The result as `rows` rows of `length` elements. In a row an operand is dense, or one element.
struct Broadcast {
  static constexpr uint32_t overwrites = 3;  // an element is read before it is written

  index_t rows = 1, length = 1;
  int rank = 0;                ///< of the rows
  index_t sizes[max_rank];     ///< of the rows, the innermost first
  index_t steps[2][max_rank];  ///< of an operand
  bool repeats[2] = {true, true};

  Broadcast() = default;
  Broadcast(const Shape& out, const Shape& a, const Shape& b) {
    const Shape* operands[] = {&a, &b};
    index_t elements[] = {1, 1};  // of an operand, in the dimensions so far
    bool joins = true;            // whether the next dimension may belong to the rows' elements
    for (int i = 1; i <= out.rank; ++i) {
      const index_t size = out.sizes[out.rank - i];
      index_t step[2];
      bool fits = joins;
      for (int o = 0; o < 2; ++o) {
        const Shape& s = *operands[o];
        const index_t own = i <= s.rank ? s.sizes[s.rank - i] : 1;
        step[o] = own == 1 ? 0 : elements[o];
        elements[o] *= own;
        fits = fits && (length == 1 || (step[o] == 0) == repeats[o]);
      }
      if (size == 1) continue;
      if (fits) {
        length *= size;
        for (int o = 0; o < 2; ++o) repeats[o] = step[o] == 0;
        continue;
      }
      joins = false;
      rows *= size, sizes[rank] = size;
      for (int o = 0; o < 2; ++o) steps[o][rank] = step[o];
      ++rank;
    }
  }
  /// The operand that is the same in neighbouring rows, which are short, while the other one goes
  /// on: a channel's factor in an image. -1: none.
  int same_in_rows() const {
    for (int o = 0; o < 2; ++o)
      if (rank > 0 && length <= most_short && steps[o][0] == 0 && !repeats[o] &&
          steps[1 - o][0] == length && !repeats[1 - o])
        return o;
    return -1;
  }
  static constexpr index_t most_short = 256;
  /// Where row r begins in an operand.
  index_t begin(int operand, index_t r) const {
    index_t at = 0;
    for (int d = 0; d < rank; ++d, r /= sizes[d - 1]) at += r % sizes[d] * steps[operand][d];
    return at;
  }
};

Error prepare_binary(Context&, Broadcast& plan, Bytes self, Bytes other, double, int64_t, double,
                     int64_t, double, int64_t, Ints, View<int8_t> out) {
  plan = Broadcast(out.shape(), self.shape(), other.shape());
  return Error::ok;
}
template <const ByteLoops& loops, BinaryLoop ByteLoops::*loop>
Error binary(Context& context, const Broadcast& plan, Bytes self, Bytes other, double self_scale,
             int64_t self_zero_point, double other_scale, int64_t other_zero_point,
             double output_scale, int64_t output_zero_point, Ints range, View<int8_t> out) {
  const BinaryNumbers numbers{
      {static_cast<float>(self_scale), static_cast<float>(other_scale)},
      {static_cast<int32_t>(self_zero_point), static_cast<int32_t>(other_zero_point)},
      static_cast<float>(1 / output_scale),
      {output_zero_point, range[0], range[1]}};
  if (out.numel() == 0) return Error::ok;
  const int same = plan.same_in_rows();
  const index_t parts = (plan.length + grain - 1) / grain,
                at_once = plan.length < grain ? grain / plan.length : 1,
                groups = (plan.rows + at_once - 1) / at_once;
  const int8_t* const operands[] = {self.data(), other.data()};
  parallel_for(context.threads, groups * parts, [&](index_t task) {
    const index_t from = task % parts * grain,
                  count = plan.length - from < grain ? plan.length - from : grain,
                  first = task / parts * at_once,
                  last = first + at_once < plan.rows ? first + at_once : plan.rows;
    int8_t copies[4 * Broadcast::most_short];  // of the row that stays the same
    const index_t most = same < 0 ? 1 : static_cast<index_t>(sizeof copies) / plan.length;
    for (index_t r = first, next; r < last; r = next) {
      const int8_t* x[2];
      for (int o = 0; o < 2; ++o)
        x[o] = operands[o] + plan.begin(o, r) + (plan.repeats[o] ? 0 : from);
      next = r + 1;
      if (same >= 0) {
        const index_t left = plan.sizes[0] - r % plan.sizes[0];
        next = r + (left < most ? left : most) < last ? r + (left < most ? left : most) : last;
        for (index_t i = 0; i < next - r; ++i)
          std::memcpy(copies + i * plan.length, x[same], static_cast<size_t>(plan.length));
        x[same] = copies;
      }
      (loops.*loop)(numbers, count * (next - r), x[0], plan.repeats[0], x[1], plan.repeats[1],
                    out.data() + r * plan.length + from);
    }
  });
  return Error::ok;
}

// ---- a table

struct InPlace {
  static constexpr uint32_t overwrites = 1;
};
Error prepare_lookup(Context&, InPlace&, Bytes, Bytes, View<int8_t>) { return Error::ok; }
void lookup_plain(index_t n, const int8_t* x, const int8_t* table, int8_t* y) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] = table[x[i] + 128];
}
template <void (*look_up)(index_t, const int8_t*, const int8_t*, int8_t*)>
Error lookup(Context& context, const InPlace&, Bytes self, Bytes table, View<int8_t> out) {
  const index_t count = self.numel();
  parallel_for(context.threads, (count + grain - 1) / grain, [&](index_t task) {
    int8_t of[256];  // which the stores cannot change
    std::memcpy(of, table.data(), sizeof of);
    const index_t begin = task * grain, n = count - begin < grain ? count - begin : grain;
    look_up(n, self.data() + begin, of, out.data() + begin);
  });
  return Error::ok;
}

// ---- averages

Error prepare_average(Context&, portable::Average& plan, Bytes self, Ints kernel_size, Ints stride,
                      Ints padding, bool, bool count_include_pad, Maybe<int64_t> divisor_override,
                      double, int64_t, double, int64_t, Ints, View<int8_t> out) {
  const auto image = [](Shape shape) {
    shape.rank = 3;  // (batch, height, width)
    return shape;
  };
  plan = {portable::windows_of(image(self.shape()), image(out.shape()), kernel_size, stride,
                               padding, {}, 2),
          count_include_pad, divisor_override ? *divisor_override : 0};
  return Error::ok;
}

/// The taps [begin, end) of a window that lie inside along dimension d.
struct Inside {
  index_t begin, end;
  Inside(const portable::Windows& w, int d, index_t o) : begin(w.tap(d, o, 0)) {
    end = begin + static_cast<index_t>(w.window[d].kernel);
    if (begin < 0) begin = 0;
    if (end > w.in[d]) end = w.in[d];
    if (end < begin) end = begin;
  }
  index_t count() const { return end - begin; }
};

template <const ByteLoops& loops>
Error average(Context& context, const portable::Average& plan, Bytes self, Ints, Ints, Ints, bool,
              bool, Maybe<int64_t>, double input_scale, int64_t input_zero_point,
              double output_scale, int64_t output_zero_point, Ints range, View<int8_t> out) {
  if (out.numel() == 0) return Error::ok;
  const portable::Windows& w = plan.windows;
  const index_t channels = self.size(3), row = w.in[2] * channels;
  const Rounding rounding(output_zero_point, range[0], range[1]);
  const double ratio = input_scale / output_scale;
  parallel_for(context.threads, w.planes * w.out[1], [&](index_t task) {
    const int8_t* image = self.data() + task / w.out[1] * w.in_plane() * channels;
    const index_t height = task % w.out[1];
    const portable::Divisors divisors(plan, 0, height);
    const Inside rows(w, 1, height);
    int8_t* y = out.data() + task * w.out[2] * channels;
    for (index_t o = 0; o < w.out[2]; ++o, y += channels) {
      const Inside columns(w, 2, o);
      const auto scale = static_cast<float>(ratio / static_cast<double>(divisors[o]));
      loops.average({image + rows.begin * row + columns.begin * channels, rows.count(),
                     columns.count(), row, channels, static_cast<int32_t>(input_zero_point), scale},
                    rounding, y);
    }
  });
  return Error::ok;
}

// ---- bilinear resizing

using portable::Axis;
using Pair = portable::Taps<float, 2>;

/// Images with their channels last.
struct Resizing {
  Axis height, width;
  bool align_corners;

  Pair tap(const Axis& axis, index_t stride, index_t i) const {
    return portable::taps_at<portable::Method::linear>(axis, axis.step<float>(align_corners),
                                                       align_corners, stride, i);
  }
};

Error prepare_bilinear(Context& context, Resizing& plan, Bytes self, Ints, bool align_corners,
                       Maybe<double> scales_h, Maybe<double> scales_w, double, int64_t, double,
                       int64_t, Ints, View<int8_t> out) {
  plan = {
      {self.size(1), out.size(1), scales_h}, {self.size(2), out.size(2), scales_w}, align_corners};
  if (out.numel() == 0) return Error::ok;  // then no size is bounded by the file
  context.need_scratch(static_cast<size_t>(plan.width.out) * sizeof(Pair));
  return Error::ok;
}
template <const ByteLoops& loops>
Error bilinear(Context& context, const Resizing& plan, Bytes self, Ints, bool, Maybe<double>,
               Maybe<double>, double input_scale, int64_t input_zero_point, double output_scale,
               int64_t output_zero_point, Ints range, View<int8_t> out) {
  if (out.numel() == 0) return Error::ok;
  const index_t channels = self.size(3), row = plan.width.in * channels;
  const Rounding rounding(output_zero_point, range[0], range[1]);
  auto* columns = static_cast<Pair*>(context.scratch);
  for (index_t i = 0; i < plan.width.out; ++i) columns[i] = plan.tap(plan.width, channels, i);
  parallel_for(context.threads, out.size(0) * plan.height.out, [&](index_t task) {
    const Pair rows = plan.tap(plan.height, row, task % plan.height.out);
    const int8_t* image = self.data() + task / plan.height.out * plan.height.in * row;
    int8_t* y = out.data() + task * plan.width.out * channels;
    for (index_t i = 0; i < plan.width.out; ++i, y += channels) {
      const Pair& c = columns[i];
      const int8_t *top = image + rows.at[0], *bottom = image + rows.at[1];
      loops.blend({{top + c.at[0], top + c.at[1], bottom + c.at[0], bottom + c.at[1]},
                   {c.weight[0], c.weight[1]},
                   {rows.weight[0], rows.weight[1]},
                   static_cast<int32_t>(input_zero_point),
                   static_cast<float>(input_scale),
                   static_cast<float>(1 / output_scale)},
                  channels, rounding, y);
    }
  });
  return Error::ok;
}

// ---- softmax

Error prepare_softmax(Context&, portable::Lines& plan, Bytes self, View<const int32_t>, int64_t dim,
                      double, int64_t, Ints, View<int8_t>) {
  plan = portable::lines_along(self.shape(), dim);
  return Error::ok;
}
bool is_falling(const int32_t* numbers, index_t count) {
  bool falls = count == 0 || numbers[count - 1] >= 0;
  for (index_t i = 1; i < count; ++i) falls = falls && numbers[i] <= numbers[i - 1];
  return falls;
}
template <const ByteLoops& loops>
Error softmax(Context& context, const portable::Lines& plan, Bytes self, View<const int32_t> table,
              int64_t, double output_scale, int64_t output_zero_point, Ints range,
              View<int8_t> out) {
  if (out.numel() == 0) return Error::ok;
  const Rounding rounding(output_zero_point, range[0], range[1]);
  const bool falls = is_falling(table.data(), table.numel());
  portable::parallel_lines(
      context.threads, plan.outer * plan.inner, plan.extent, [&](index_t line) {
        const index_t at = line / plan.inner * plan.extent * plan.inner + line % plan.inner;
        loops.softmax(
            {self.data() + at, plan.extent, plan.inner, table.data(), output_scale, falls},
            rounding, out.data() + at);
      });
  return Error::ok;
}

}  // namespace

TAPER_RECORD(taper_lookup_q8, taper_lookup_q8_i8, {}, {}, prepare_lookup, lookup<lookup_plain>)
#if TAPER_X86_LEVELS
TAPER_RECORD(taper_lookup_q8, taper_lookup_q8_i8_avx2, CpuFeature::avx2, {}, prepare_lookup,
             lookup<lookup_avx2>)
TAPER_RECORD(taper_lookup_q8, taper_lookup_q8_i8_avx512, with_implied(CpuFeature::avx512), {},
             prepare_lookup, lookup<lookup_avx512>)
#endif

#define TAPER_BYTE_OPERATORS(name, needs, loops)                                             \
  TAPER_RECORD(taper_add_q8, taper_add_q8_##name, needs, {}, prepare_binary,                 \
               binary<loops, &ByteLoops::add>)                                               \
  TAPER_RECORD(taper_sub_q8, taper_sub_q8_##name, needs, {}, prepare_binary,                 \
               binary<loops, &ByteLoops::sub>)                                               \
  TAPER_RECORD(taper_mul_q8, taper_mul_q8_##name, needs, {}, prepare_binary,                 \
               binary<loops, &ByteLoops::mul>)                                               \
  TAPER_RECORD(taper_avg_pool2d_q8, taper_avg_pool2d_q8_##name, needs, {}, prepare_average,  \
               average<loops>)                                                               \
  TAPER_RECORD(taper_upsample_bilinear2d_q8, taper_upsample_bilinear2d_q8_##name, needs, {}, \
               prepare_bilinear, bilinear<loops>)                                            \
  TAPER_RECORD(taper_softmax_q8, taper_softmax_q8_##name, needs, {}, prepare_softmax,        \
               softmax<loops>)
TAPER_BYTE_OPERATORS(i8, {}, byte_loops_plain)
#if TAPER_X86_LEVELS
TAPER_BYTE_OPERATORS(i8_avx2, CpuFeature::avx2, byte_loops_avx2)
TAPER_BYTE_OPERATORS(i8_avx512, with_implied(CpuFeature::avx512), byte_loops_avx512)
#endif

}  // namespace taper::quantized
