// quantize_per_tensor of f32 to i8, and back: the ends of an integer network. The elements may lie
// at any strides, because images come with their channels first and go on with them last.
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/walk.h"
#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/shapes/quantized.h"

namespace taper::quantized {
namespace {

template <class T>
using Anywhere = View<const T, Strides::any>;

constexpr index_t block = 1024;  // elements that are computed at a time

/// The input as runs of elements. A run lies along one dimension: the one whose elements are
/// neighbours in the input, if there is any.
struct Runs {
  portable::Walk walk;
  int32_t dim = 0;    ///< of the walk
  index_t inner = 1;  ///< how far the results of neighbours in a run lie from each other
  index_t count = 1;

  explicit Runs(const Shape& shape) : walk(portable::Walk::of(shape)) {
    for (int d = 0; d < walk.rank; ++d)
      if (walk.strides[d] == 1 || d == 0) dim = d;
    if (walk.strides[dim] != 1) dim = walk.rank - 1;
    for (int d = 0; d < walk.rank; ++d) {
      if (d != dim) count *= walk.sizes[d];
      if (d > dim) inner *= walk.sizes[d];
    }
  }
  Runs() = default;
  index_t length() const { return walk.sizes[dim]; }
  index_t step() const { return walk.strides[dim]; }
  /// Where run i begins in the input and in the result.
  void begin(index_t i, index_t& in, index_t& out) const {
    in = 0, out = i % inner + i / inner * inner * length();
    for (int d = walk.rank - 1; d >= 0; --d) {
      if (d == dim) continue;
      in += i % walk.sizes[d] * walk.strides[d];
      i /= walk.sizes[d];
    }
  }
};

/// Calls loop(n, x, y) for blocks of the runs. Elements that are no neighbours are copied before
/// it, and results that are none behind it.
template <class In, class Out, class Loop>
void for_each_block(const Threads* threads, const Runs& runs, const In* x, Out* y,
                    const Loop& loop) {
  constexpr index_t grain = 16 * block;
  const index_t parts = (runs.length() + grain - 1) / grain,
                at_once = runs.length() > 0 && runs.length() < grain ? grain / runs.length() : 1,
                groups = (runs.count + at_once - 1) / at_once;
  parallel_for(threads, groups * parts, [&](index_t task) {
    In given[block];
    Out made[block];
    const index_t first = task / parts * at_once,
                  last = first + at_once < runs.count ? first + at_once : runs.count,
                  begin = task % parts * grain,
                  end = begin + grain < runs.length() ? begin + grain : runs.length();
    for (index_t run = first; run < last; ++run) {
      index_t in, out;
      runs.begin(run, in, out);
      for (index_t k = begin; k < end; k += block) {
        const index_t n = end - k < block ? end - k : block;
        const In* from = x + in + k * runs.step();
        if (runs.step() != 1) {
          for (index_t i = 0; i < n; ++i) given[i] = from[i * runs.step()];
          from = given;
        }
        Out* to = y + out + k * runs.inner;
        loop(n, from, runs.inner == 1 ? to : made);
        if (runs.inner != 1)
          for (index_t i = 0; i < n; ++i) to[i * runs.inner] = made[i];
      }
    }
  });
}

/// Quantizes three planes whose pixels lie together in the result: `runs.inner` is 3, and elements
/// of a run are neighbours.
template <const ByteLoops& loops, class Loop>
void for_each_pixel(const Threads* threads, const Runs& runs, const float* x, int8_t* y,
                    const Loop& loop) {
  constexpr index_t grain = 8 * block;
  const index_t parts = (runs.length() + grain - 1) / grain;
  parallel_for(threads, runs.count / 3 * parts, [&](index_t task) {
    int8_t made[3][block];
    const int8_t* const planes[3] = {made[0], made[1], made[2]};
    index_t in[3], out[3];
    for (index_t c = 0; c < 3; ++c) runs.begin(task / parts * 3 + c, in[c], out[c]);
    const index_t begin = task % parts * grain,
                  end = begin + grain < runs.length() ? begin + grain : runs.length();
    for (index_t k = begin; k < end; k += block) {
      const index_t n = end - k < block ? end - k : block;
      for (index_t c = 0; c < 3; ++c) loop(n, x + in[c] + k, made[c]);
      loops.interleave(n, planes, y + out[0] + 3 * k);
    }
  });
}

// The loops compute in i32 and f32. Both hold what these numbers allow.
Error require_small(Context& context, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  constexpr int64_t most = 1 << 23;
  if (zero_point >= -most && zero_point <= most && quant_min >= -128 && quant_max <= 127 &&
      quant_min <= quant_max)
    return Error::ok;
  return context.fail(Error::invalid_argument,
                      TAPER_TEXT("zero_point {} or the range {}..{} is not for i8"), zero_point,
                      quant_min, quant_max);
}

Error prepare_quantize(Context& context, Runs& plan, Anywhere<float> input, double,
                       int64_t zero_point, int64_t quant_min, int64_t quant_max, DType,
                       View<int8_t>) {
  TAPER_TRY(require_small(context, zero_point, quant_min, quant_max));
  plan = Runs(input.shape());
  return Error::ok;
}
template <const ByteLoops& loops>
Error quantize(Context& context, const Runs& plan, Anywhere<float> input, double scale,
               int64_t zero_point, int64_t quant_min, int64_t quant_max, DType, View<int8_t> out) {
  const Rounding rounding(zero_point, quant_min, quant_max);
  const auto inverse = static_cast<float>(1 / scale);
  const auto loop = [&](index_t n, const float* x, int8_t* y) {
    loops.quantize(n, x, inverse, rounding, y);
  };
  if (plan.inner == 3 && plan.step() == 1)
    for_each_pixel<loops>(context.threads, plan, input.data(), out.data(), loop);
  else
    for_each_block(context.threads, plan, input.data(), out.data(), loop);
  return Error::ok;
}

Error prepare_dequantize(Context& context, Runs& plan, Anywhere<int8_t> input, double,
                         int64_t zero_point, int64_t quant_min, int64_t quant_max, DType,
                         Maybe<DType>, View<float>) {
  TAPER_TRY(require_small(context, zero_point, quant_min, quant_max));
  plan = Runs(input.shape());
  return Error::ok;
}
template <const ByteLoops& loops>
Error dequantize(Context& context, const Runs& plan, Anywhere<int8_t> input, double scale,
                 int64_t zero_point, int64_t, int64_t, DType, Maybe<DType>, View<float> out) {
  for_each_block(
      context.threads, plan, input.data(), out.data(), [&](index_t n, const int8_t* x, float* y) {
        loops.dequantize(n, x, static_cast<int32_t>(zero_point), static_cast<float>(scale), y);
      });
  return Error::ok;
}

}  // namespace

#define TAPER_QUANTIZE(level, needs)                                                             \
  TAPER_RECORD(quantized_decomposed_quantize_per_tensor,                                         \
               quantized_decomposed_quantize_per_tensor_i8_##level, needs, {}, prepare_quantize, \
               quantize<byte_loops_##level>)                                                     \
  TAPER_RECORD(quantized_decomposed_dequantize_per_tensor,                                       \
               quantized_decomposed_dequantize_per_tensor_i8_##level, needs, {},                 \
               prepare_dequantize, dequantize<byte_loops_##level>)
#if TAPER_X86_LEVELS
TAPER_QUANTIZE(avx2, CpuFeature::avx2)
TAPER_QUANTIZE(avx512, with_implied(CpuFeature::avx512))
#else
TAPER_QUANTIZE(plain, {})
#endif

}  // namespace taper::quantized
