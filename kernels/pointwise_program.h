// The program of `taper::pointwise`: a chain of f32 pointwise operators as one kernel. A pass of
// the exporter writes it (exporter/passes/fuse_pointwise.cpp), and the kernel runs it over blocks
// of elements. Results have the same bits as the separate kernels: each opcode computes one element
// with the same function as the kernel of its row.
//
// `inputs` are f32 and dense. Each has the result's sizes, or is a 0-dim tensor whose element goes
// with every element of the others. `program` has `pointwise_width` integers for each instruction:
//
//   opcode, destination, a, b, c
//
// An operand (a, b, c; unused ones are 0) is
//   0 … inputs - 1                 an input
//   inputs … inputs + registers    a register that an earlier instruction wrote
//   -1, -2, …                      constants[0], constants[1], …, rounded to f32
// A destination is a register: a number from 0 to below `pointwise_max_registers`. The same
// instruction may read it. The last instruction always writes the result.
#pragma once
#include <cstdint>
#include <limits>

#include "taper/runtime/core/span.h"

namespace taper {

/// Stored in programs: never change a value.
enum class PointwiseOp : int64_t {
  add = 0,      ///< a + b
  sub = 1,      ///< a - b
  mul = 2,      ///< a * b
  div = 3,      ///< a / b
  maximum = 4,  ///< NaN if either is
  minimum = 5,  ///< NaN if either is
  neg = 6,
  abs = 7,
  relu = 8,
  sqrt = 9,
  rsqrt = 10,
  reciprocal = 11,
  exp = 12,
  log = 13,
  sin = 14,
  cos = 15,
  tanh = 16,
  sigmoid = 17,
  erf = 18,
  gelu = 19,       ///< approximate = "none"
  gelu_tanh = 20,  ///< approximate = "tanh"
  silu = 21,
  threshold_backward = 22,  ///< a: grad_output, b: self, c: threshold
  sigmoid_backward = 23,    ///< a: grad_output, b: output
  tanh_backward = 24,       ///< a: grad_output, b: output
  gelu_backward = 25,       ///< a: grad_output, b: self; approximate = "none"
  gelu_tanh_backward = 26,  ///< a: grad_output, b: self; approximate = "tanh"
  pow = 27,                 ///< a to the power b, as pow.Tensor_Scalar; b is a constant
  hardtanh = 28,            ///< a between b and c, which are constants
  leaky_relu = 29,          ///< b: negative_slope, a constant
  hardswish = 30,
  hardsigmoid = 31,
};
inline constexpr int pointwise_op_count = 32;

inline constexpr int pointwise_width = 5;
inline constexpr int pointwise_max_registers = 8;
inline constexpr int pointwise_max_inputs = 16;
inline constexpr int pointwise_max_instructions = 32;

/// How many of a, b, c an opcode reads.
constexpr int operand_count(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::threshold_backward:
    case PointwiseOp::hardtanh:
      return 3;
    case PointwiseOp::add:
    case PointwiseOp::sub:
    case PointwiseOp::mul:
    case PointwiseOp::div:
    case PointwiseOp::maximum:
    case PointwiseOp::minimum:
    case PointwiseOp::sigmoid_backward:
    case PointwiseOp::tanh_backward:
    case PointwiseOp::gelu_backward:
    case PointwiseOp::gelu_tanh_backward:
    case PointwiseOp::pow:
    case PointwiseOp::leaky_relu:
      return 2;
    default:
      return 1;
  }
}

/// One instruction of a program that `is_valid_pointwise` accepted.
struct PointwiseInstruction {
  PointwiseOp op;
  int64_t destination, operands[3];
};
constexpr PointwiseInstruction pointwise_instruction(Span<const int64_t> program, index_t i) {
  const index_t at = i * pointwise_width;
  return {static_cast<PointwiseOp>(program[at]),
          program[at + 1],
          {program[at + 2], program[at + 3], program[at + 4]}};
}

/// Whether a program does nothing but bring its first input between two numbers, as relu, relu6 and
/// hardtanh do: x < low ? low : x > high ? high : x. A convolution does that in registers. Not if
/// low > high: then a minimum and a maximum would give another result.
struct Bounds {
  bool present = false;
  float low = 0, high = 0;
};
inline Bounds bounds_of(Span<const int64_t> program, Span<const double> constants) {
  if (program.size() != pointwise_width) return {};
  const PointwiseInstruction step = pointwise_instruction(program, 0);
  if (step.operands[0] != 0) return {};
  if (step.op == PointwiseOp::relu) return {true, 0, std::numeric_limits<float>::infinity()};
  if (step.op != PointwiseOp::hardtanh) return {};
  const float low = static_cast<float>(constants[-step.operands[1] - 1]),
              high = static_cast<float>(constants[-step.operands[2] - 1]);
  if (low > high) return {};
  return {true, low, high};
}

/// Whether a program can be run, even one from a hostile file: its opcodes are known, and its
/// operands exist and were written before. The shape rule asks this, so the kernel need not.
constexpr bool is_valid_pointwise(Span<const int64_t> program, index_t inputs, index_t constants) {
  if (inputs < 1 || inputs > pointwise_max_inputs || program.size() == 0 ||
      program.size() % pointwise_width != 0 ||
      program.size() / pointwise_width > pointwise_max_instructions)
    return false;
  bool written[pointwise_max_registers] = {};
  for (index_t i = 0; i < program.size() / pointwise_width; ++i) {
    const auto [op, destination, operands] = pointwise_instruction(program, i);
    if (static_cast<int64_t>(op) < 0 || static_cast<int64_t>(op) >= pointwise_op_count)
      return false;
    if (destination < 0 || destination >= pointwise_max_registers) return false;
    for (int k = 0; k < operand_count(op); ++k) {
      const int64_t v = operands[k];
      if (v < -static_cast<int64_t>(constants) || v >= inputs + pointwise_max_registers)
        return false;
      if (v >= inputs && !written[v - inputs]) return false;
    }
    const bool takes_number =
        op == PointwiseOp::pow || op == PointwiseOp::leaky_relu || op == PointwiseOp::hardtanh;
    if (takes_number && operands[1] >= 0) return false;
    if (operand_count(op) == 3 && operands[2] >= 0) return false;
    written[destination] = true;
  }
  return true;
}

}  // namespace taper
