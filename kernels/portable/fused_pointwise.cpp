// taper::pointwise: a chain of pointwise operators, block by block, so that what lies between them
// stays in registers of 256 elements instead of tensors. Each step is the loop of the operator's
// own kernel, so that every bit is the same.
#include "taper/kernels/pointwise_program.h"
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

constexpr index_t block = block_size<float>;

template <class F, class... E>
void step(const F& f, index_t n, const void* const* in, float* out) {
  internal::block<F, float, E...>(&f, n, in, out);
}

/// One instruction over n elements. `parameter`: the last operand of those that take a number.
void run_step(PointwiseOp op, double parameter, index_t n, const void* const* in, float* out) {
  switch (op) {
    case PointwiseOp::add:
      return step<Add<float>, float, float>(Add<float>(1), n, in, out);
    case PointwiseOp::sub:
      return step<Sub<float>, float, float>(Sub<float>(1), n, in, out);
    case PointwiseOp::mul:
      return step<Mul<float>, float, float>({}, n, in, out);
    case PointwiseOp::div:
      return step<Div<float>, float, float>({}, n, in, out);
    case PointwiseOp::maximum:
      return step<Maximum<float>, float, float>({}, n, in, out);
    case PointwiseOp::minimum:
      return step<Minimum<float>, float, float>({}, n, in, out);
    case PointwiseOp::neg:
      return step<Neg<float>, float>({}, n, in, out);
    case PointwiseOp::abs:
      return step<Abs<float>, float>({}, n, in, out);
    case PointwiseOp::relu:
      return step<Relu<float>, float>({}, n, in, out);
    case PointwiseOp::sqrt:
      return step<Sqrt<float>, float>({}, n, in, out);
    case PointwiseOp::rsqrt:
      return step<Rsqrt<float>, float>({}, n, in, out);
    case PointwiseOp::reciprocal:
      return step<Reciprocal<float>, float>({}, n, in, out);
    case PointwiseOp::exp:
      return step<Exp<float>, float>({}, n, in, out);
    case PointwiseOp::log:
      return step<Log<float>, float>({}, n, in, out);
    case PointwiseOp::sin:
      return step<Sin<float>, float>({}, n, in, out);
    case PointwiseOp::cos:
      return step<Cos<float>, float>({}, n, in, out);
    case PointwiseOp::tanh:
      return step<Tanh<float>, float>({}, n, in, out);
    case PointwiseOp::sigmoid:
      return step<Sigmoid<float>, float>({}, n, in, out);
    case PointwiseOp::erf:
      return step<Erf<float>, float>({}, n, in, out);
    case PointwiseOp::gelu:
      return step<Gelu<float>, float>(Gelu<float>("none"), n, in, out);
    case PointwiseOp::gelu_tanh:
      return step<Gelu<float>, float>(Gelu<float>("tanh"), n, in, out);
    case PointwiseOp::silu:
      return step<Silu<float>, float>({}, n, in, out);
    case PointwiseOp::threshold_backward:
      return step<ThresholdBackward<float>, float, float>(ThresholdBackward<float>(parameter), n,
                                                          in, out);
    case PointwiseOp::sigmoid_backward:
      return step<SigmoidBackward<float>, float, float>({}, n, in, out);
    case PointwiseOp::tanh_backward:
      return step<TanhBackward<float>, float, float>({}, n, in, out);
    case PointwiseOp::gelu_backward:
      return step<GeluBackward<float>, float, float>(GeluBackward<float>("none"), n, in, out);
    case PointwiseOp::gelu_tanh_backward:
      return step<GeluBackward<float>, float, float>(GeluBackward<float>("tanh"), n, in, out);
    case PointwiseOp::pow:
      return step<PowScalar<float>, float>(PowScalar<float>(parameter), n, in, out);
  }
}

/// The result may lie on any input: each block is read before it is written.
struct InPlace {
  static constexpr uint32_t overwrites = 1;
};

Error prepare(Context&, InPlace&, ViewList<const float>, Span<const int64_t>, Span<const double>,
              View<float>) {
  return Error::ok;
}

Error run(Context& context, const InPlace&, ViewList<const float> inputs,
          Span<const int64_t> program, Span<const double> constants, View<float> out) {
  const index_t count = out.numel(), steps = program.size() / pointwise_width;
  parallel_for(context.threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    float registers[pointwise_max_registers][block], numbers[3][block];
    const index_t begin = task * pointwise_grain,
                  end = begin + pointwise_grain < count ? begin + pointwise_grain : count;
    for (index_t at = begin; at < end; at += block) {
      const index_t n = end - at < block ? end - at : block;
      for (index_t i = 0; i < steps; ++i) {
        const PointwiseInstruction step = pointwise_instruction(program, i);
        const void* in[3];
        double parameter = 0;
        for (int k = 0; k < operand_count(step.op); ++k) {
          const int64_t v = step.operands[k];
          if (v >= inputs.count) {
            in[k] = registers[v - inputs.count];
          } else if (v >= 0 && inputs[v].rank() > 0) {
            in[k] = inputs[v].data() + at;
          } else {
            parameter = v < 0 ? constants[-v - 1] : *inputs[v].data();
            for (index_t j = 0; j < n; ++j) numbers[k][j] = static_cast<float>(parameter);
            in[k] = numbers[k];
          }
        }
        run_step(step.op, parameter, n, in,
                 i + 1 == steps ? out.data() + at : registers[step.destination]);
      }
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_pointwise, f32, prepare, run)

}  // namespace taper::portable
