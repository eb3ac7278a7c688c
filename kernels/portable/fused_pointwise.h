// taper::pointwise computes a chain of pointwise operators block by block. Values between the
// operators are rows of 256 elements instead of tensors. Each step is the loop of the operator's
// own kernel at the same CPU level, so every bit is the same.
#pragma once
#include "taper/kernels/pointwise_program.h"
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

/// `Loops` is explained in elements.h. `M` says how formulas multiply and add (math.h).
namespace taper::portable::fused {

inline constexpr index_t block = block_size<float>;

template <class Loops, class F, class... E>
void step(const F& f, index_t n, const Rows* in, float* out) {
  Loops::template call<&internal::block<F, float, E...>>(static_cast<const void*>(&f), index_t{1},
                                                         n, in, static_cast<void*>(out));
}

/// hardtanh with its bounds as operands.
struct Between {
  float operator()(float x, float low, float high) const {
    return x < low ? low : x > high ? high : x;
  }
};

/// The arithmetic of residual blocks: a small part of what all operators take.
constexpr bool is_plain(PointwiseOp op) {
  return op == PointwiseOp::add || op == PointwiseOp::sub || op == PointwiseOp::mul ||
         op == PointwiseOp::relu || op == PointwiseOp::hardtanh;
}
constexpr bool is_plain(Span<const int64_t> program) {
  for (index_t i = 0; i < program.size() / pointwise_width; ++i)
    if (!is_plain(pointwise_instruction(program, i).op)) return false;
  return true;
}

/// How instructions multiply and add in a program that `is_plain`: they have no formulas.
struct PlainProgram {};

template <class Loops>
void run_plain_step(PointwiseOp op, index_t n, const Rows* in, float* out) {
  switch (op) {
    case PointwiseOp::add:
      return step<Loops, Add<float>, float, float>(Add<float>(1), n, in, out);
    case PointwiseOp::sub:
      return step<Loops, Sub<float>, float, float>(Sub<float>(1), n, in, out);
    case PointwiseOp::mul:
      return step<Loops, Mul<float>, float, float>({}, n, in, out);
    case PointwiseOp::relu:
      return step<Loops, Relu<float>, float>({}, n, in, out);
    case PointwiseOp::hardtanh:
      return step<Loops, Between, float, float, float>({}, n, in, out);
    default:
      break;
  }
}

/// Runs one instruction on n elements. `parameter` is the last operand of operators that take a
/// number.
template <class Loops, class M>
void run_step(PointwiseOp op, double parameter, index_t n, const Rows* in, float* out) {
  switch (op) {
    case PointwiseOp::add:
    case PointwiseOp::sub:
    case PointwiseOp::mul:
    case PointwiseOp::relu:
    case PointwiseOp::hardtanh:
      return run_plain_step<Loops>(op, n, in, out);
    case PointwiseOp::div:
      return step<Loops, Div<float>, float, float>({}, n, in, out);
    case PointwiseOp::maximum:
      return step<Loops, Maximum<float>, float, float>({}, n, in, out);
    case PointwiseOp::minimum:
      return step<Loops, Minimum<float>, float, float>({}, n, in, out);
    case PointwiseOp::neg:
      return step<Loops, Neg<float>, float>({}, n, in, out);
    case PointwiseOp::abs:
      return step<Loops, Abs<float>, float>({}, n, in, out);
    case PointwiseOp::sqrt:
      return step<Loops, Sqrt<float>, float>({}, n, in, out);
    case PointwiseOp::rsqrt:
      return step<Loops, Rsqrt<float>, float>({}, n, in, out);
    case PointwiseOp::reciprocal:
      return step<Loops, Reciprocal<float>, float>({}, n, in, out);
    case PointwiseOp::exp:
      return step<Loops, Exp<float, M>, float>({}, n, in, out);
    case PointwiseOp::log:
      return step<Loops, Log<float, M>, float>({}, n, in, out);
    case PointwiseOp::sin:
      return step<Loops, Sin<float, M>, float>({}, n, in, out);
    case PointwiseOp::cos:
      return step<Loops, Cos<float, M>, float>({}, n, in, out);
    case PointwiseOp::tanh:
      return step<Loops, Tanh<float, M>, float>({}, n, in, out);
    case PointwiseOp::sigmoid:
      return step<Loops, Sigmoid<float, M>, float>({}, n, in, out);
    case PointwiseOp::erf:
      return step<Loops, Erf<float, M>, float>({}, n, in, out);
    case PointwiseOp::gelu:
      return step<Loops, Gelu<float, M>, float>(Gelu<float, M>("none"), n, in, out);
    case PointwiseOp::gelu_tanh:
      return step<Loops, Gelu<float, M>, float>(Gelu<float, M>("tanh"), n, in, out);
    case PointwiseOp::silu:
      return step<Loops, Silu<float, M>, float>({}, n, in, out);
    case PointwiseOp::threshold_backward:
      return step<Loops, ThresholdBackward<float>, float, float>(
          ThresholdBackward<float>(parameter), n, in, out);
    case PointwiseOp::sigmoid_backward:
      return step<Loops, SigmoidBackward<float>, float, float>({}, n, in, out);
    case PointwiseOp::tanh_backward:
      return step<Loops, TanhBackward<float>, float, float>({}, n, in, out);
    case PointwiseOp::gelu_backward:
      return step<Loops, GeluBackward<float, M>, float, float>(GeluBackward<float, M>("none"), n,
                                                               in, out);
    case PointwiseOp::gelu_tanh_backward:
      return step<Loops, GeluBackward<float, M>, float, float>(GeluBackward<float, M>("tanh"), n,
                                                               in, out);
    case PointwiseOp::leaky_relu:
      return step<Loops, LeakyRelu<float>, float>(LeakyRelu<float>(parameter), n, in, out);
    case PointwiseOp::hardswish:
      return step<Loops, Hardswish<float>, float>({}, n, in, out);
    case PointwiseOp::hardsigmoid:
      return step<Loops, Hardsigmoid<float>, float>({}, n, in, out);
    case PointwiseOp::pow:
      return step<Loops, PowScalar<float, M>, float>(PowScalar<float, M>(parameter), n, in, out);
  }
}

/// The result may lie on any input, because each block is read before it is written.
struct InPlace {
  static constexpr uint32_t overwrites = 1;
};

inline Error prepare(Context&, InPlace&, ViewList<const float>, Span<const int64_t>,
                     Span<const double>, View<float>) {
  return Error::ok;
}

/// What a program reads: tensors of the result's sizes, and single elements.
struct ProgramInputs {
  index_t count = 0;
  const float* data[pointwise_max_inputs];
  bool is_number[pointwise_max_inputs];

  void add(View<const float> input) { add(input.data(), input.rank() == 0); }
  void add(const float* elements, bool number) {
    data[count] = elements, is_number[count++] = number;
  }
};

/// Runs a program for the elements [begin, end) of the result. Each input may be the result itself.
template <class Loops, class M>
void run_program(Span<const int64_t> program, Span<const double> constants,
                 const ProgramInputs& inputs, index_t begin, index_t end, float* out) {
  alignas(64) float registers[pointwise_max_registers][block], numbers[3][block];
  const index_t steps = program.size() / pointwise_width;
  for (index_t at = begin; at < end; at += block) {
    const index_t n = end - at < block ? end - at : block;
    for (index_t i = 0; i < steps; ++i) {
      const PointwiseInstruction step = pointwise_instruction(program, i);
      Rows in[3] = {};
      double parameter = 0;
      for (int k = 0; k < operand_count(step.op); ++k) {
        const int64_t v = step.operands[k];
        if (v >= inputs.count) {
          in[k].data = registers[v - inputs.count];
        } else if (v >= 0 && !inputs.is_number[v]) {
          in[k].data = inputs.data[v] + at;
        } else {
          parameter = v < 0 ? constants[-v - 1] : *inputs.data[v];
          for (index_t j = 0; j < n; ++j) numbers[k][j] = static_cast<float>(parameter);
          in[k].data = numbers[k];
        }
      }
      float* const to = i + 1 == steps ? out + at : registers[step.destination];
      if constexpr (std::is_same_v<M, PlainProgram>)
        run_plain_step<Loops>(step.op, n, in, to);
      else
        run_step<Loops, M>(step.op, parameter, n, in, to);
    }
  }
}

template <class Loops, class M>
Error run(Context& context, const InPlace&, ViewList<const float> inputs,
          Span<const int64_t> program, Span<const double> constants, View<float> out) {
  ProgramInputs in;
  for (index_t i = 0; i < inputs.count; ++i) in.add(inputs[i]);
  const index_t count = out.numel();
  parallel_for(context.threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    const index_t begin = task * pointwise_grain;
    run_program<Loops, M>(program, constants, in, begin,
                          begin + pointwise_grain < count ? begin + pointwise_grain : count,
                          out.data());
  });
  return Error::ok;
}

/// `run_program` at one level, compiled once.
using RunProgram = void (*)(Span<const int64_t> program, Span<const double> constants,
                            const ProgramInputs& inputs, index_t begin, index_t end, float* out);
extern const RunProgram run_portable_program, run_portable_plain_program;

/// A program behind an operator that gives an image with channels last. It reads what the operator
/// has stored, and overwrites it.
struct ProgramOverPixels {
  Span<const int64_t> program;
  Span<const double> constants;
  ProgramInputs inputs{};  ///< first the image itself, then dense ones of its sizes and numbers
  float* image = nullptr;
  index_t channels = 0;  ///< of a pixel
  index_t to_pixel = 0;  ///< from one pixel of the image to the next one

  /// For the channels [first, last) of `count` pixels, which lie one behind the other.
  void run(RunProgram run_program, index_t pixel, index_t count, index_t first,
           index_t last) const {
    if (last - first == channels && to_pixel == channels)
      return run_program(program, constants, inputs, pixel * channels, (pixel + count) * channels,
                         image);
    ProgramInputs shifted = inputs;
    for (index_t i = pixel; i < pixel + count; ++i) {
      float* const to = image + i * (to_pixel - channels);  // to[i * channels]: its first channel
      shifted.data[0] = to;
      run_program(program, constants, shifted, i * channels + first, i * channels + last, to);
    }
  }
};

}  // namespace taper::portable::fused
