#include "taper/delegates/xnnpack/runtime/define.h"

#include <limits>

#include "taper/delegates/xnnpack/runtime/clamps.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

xnn_unary_operator unary_of(blob::Function f) {
  constexpr xnn_unary_operator operators[] = {
      xnn_unary_invalid,     xnn_unary_clamp,
      xnn_unary_abs,         xnn_unary_ceiling,
      xnn_unary_elu,         xnn_unary_exp,
      xnn_unary_floor,       xnn_unary_gelu,
      xnn_unary_hardswish,   xnn_unary_leaky_relu,
      xnn_unary_log,         xnn_unary_negate,
      xnn_unary_sigmoid,     xnn_unary_square,
      xnn_unary_square_root, xnn_unary_reciprocal_square_root,
      xnn_unary_tanh,        xnn_unary_convert};
  return operators[static_cast<int>(f)];
}

xnn_binary_operator binary_of(blob::Function f) {
  constexpr xnn_binary_operator operators[] = {
      xnn_binary_add,     xnn_binary_subtract, xnn_binary_multiply, xnn_binary_divide,
      xnn_binary_maximum, xnn_binary_minimum,  xnn_binary_prelu};
  return operators[static_cast<int>(f) - static_cast<int>(blob::Function::add)];
}

// A list of numbers as another type.
template <class T>
struct Numbers {
  explicit Numbers(Span<const int64_t> numbers) : count(static_cast<size_t>(numbers.size())) {
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(numbers[static_cast<index_t>(i)]);
  }
  size_t count;
  T values[16] = {};  // verified: there are no more
};

class Definer {
 public:
  Definer(xnn_subgraph_t subgraph, const Part& part, const Shape* shapes,
          const void* const* constants)
      : subgraph_(subgraph), part_(part), shapes_(shapes), constants_(constants) {}

  xnn_status run() {
    for (index_t v = 0; v < part_.values(); ++v)
      if (const xnn_status s = value(v); s != xnn_status_success) return s;
    for (index_t n = 0; n < part_.nodes(); ++n)
      if (const xnn_status s = node(n); s != xnn_status_success) return s;
    return xnn_status_success;
  }

 private:
  xnn_status value(index_t v) {
    uint32_t flags = v < part_.operands() ? XNN_VALUE_FLAG_EXTERNAL_INPUT : 0u;
    for (index_t r = 0; r < part_.results(); ++r)
      if (part_.result(r) == v) flags |= XNN_VALUE_FLAG_EXTERNAL_OUTPUT;
    const bool constant = part_.is_constant(static_cast<uint32_t>(v));
    const void* elements = constant ? constants_[v - part_.operands()] : nullptr;
    const Dims dims(shapes_[v]);
    const auto id = static_cast<uint32_t>(v);
    uint32_t same_id = 0;
    const blob::Quantized* q = part_.quantized(v);
    if (q == nullptr)
      return xnn_define_tensor_value(subgraph_, xnn_datatype_fp32, dims.count, dims.sizes, elements,
                                     id, flags, &same_id);
    if (q->bits() == 16) return xnn_status_success;  // scales, which are no tensor of the library
    if (q->is_rounded())
      return xnn_define_dynamically_quantized_tensor_value(
          subgraph_, xnn_datatype_qdint8, dims.count, 1, dims.sizes, id, flags, &same_id);
    if (q->scales() == no_value)
      return xnn_define_quantized_tensor_value(
          subgraph_, q->bits() == 8 ? xnn_datatype_qint8 : xnn_datatype_qint32, q->zero_point(),
          q->scale(), dims.count, dims.sizes, elements, id, flags, &same_id);
    const void* scales = constants_[static_cast<index_t>(q->scales()) - part_.operands()];
    constexpr int32_t middle = 8;  // of unsigned 4 bits
    if (q->block() > 0)
      return xnn_define_blockwise_quantized_tensor_value(
          subgraph_, xnn_datatype_qbint4, middle, static_cast<const uint16_t*>(scales), dims.count,
          q->channel(), q->block(), dims.sizes, elements, id, flags, &same_id);
    return xnn_define_channelwise_quantized_tensor_value_v2(
        subgraph_, datatype_for_channels(q->bits()), q->bits() == 4 ? middle : 0,
        static_cast<const float*>(scales), dims.count, q->channel(), dims.sizes, elements, id,
        flags, &same_id);
  }
  static xnn_datatype datatype_for_channels(int bits) {
    if (bits == 4) return xnn_datatype_qcint4;
    return bits == 8 ? xnn_datatype_qcint8 : xnn_datatype_qcint32;
  }

  // The library would fuse clamps behind a node, too, and then mistake paddings for bounds. So it
  // sees none that it can fuse, and the node gets the bounds of all.
  xnn_status node(index_t i) {
    if (fused_.has(i)) return xnn_status_success;
    const NodeView n = part_.node(i);
    if (has_bounds(n)) return bounded(i, n, with_clamps(part_, i, fused_));
    return node(n, static_cast<uint32_t>(part_.inputs() + i));
  }

  xnn_status bounded(index_t i, const NodeView& n, const Bounded& b) {
    switch (n.kind) {
      case blob::Kind::unary:
        return clamp(i, n, b);
      case blob::Kind::convolution:
        return convolution(n, b);
      case blob::Kind::depthwise:
        return depthwise(n, b);
      case blob::Kind::deconvolution:
        return deconvolution(n, b);
      case blob::Kind::fully_connected:
        return xnn_define_fully_connected(subgraph_, b.low, b.high, n.inputs[0], n.inputs[1],
                                          n.inputs[2], b.result, 0);
      default:
        return pool(n, b);
    }
  }

  // A clamp that leaves a single number of what lies between other bounds is not fused if the
  // larger of x and x stands before it.
  xnn_status clamp(index_t i, const NodeView& n, const Bounded& b) {
    const index_t x = static_cast<index_t>(n.inputs[0]), before = x - part_.inputs();
    if (before >= 0 && has_bounds(part_.node(before)) && only_reader(part_, x) == i) {
      const xnn_binary_params params{b.low, b.high};
      return xnn_define_binary(subgraph_, xnn_binary_maximum, &params, n.inputs[0], n.inputs[0],
                               b.result, 0);
    }
    xnn_unary_params params{};
    params.clamp = {b.low, b.high};
    return xnn_define_unary(subgraph_, xnn_unary_clamp, &params, n.inputs[0], b.result, 0);
  }

  xnn_status node(const NodeView& n, uint32_t output) {
    const Span<const uint32_t> in = n.inputs;
    switch (n.kind) {
      case blob::Kind::unary:
        return unary(n, output);
      case blob::Kind::binary: {
        const xnn_binary_params params = n.parameters.empty()
                                             ? xnn_binary_params{-infinity, infinity}
                                             : xnn_binary_params{n.parameters[0], n.parameters[1]};
        return xnn_define_binary(subgraph_, binary_of(n.function), &params, in[0], in[1], output,
                                 0);
      }
      case blob::Kind::batch_matmul:
        return xnn_define_batch_matrix_multiply(subgraph_, in[0], in[1], output,
                                                n.numbers.empty() ? 0 : XNN_FLAG_TRANSPOSE_B);
      case blob::Kind::mean:
        return reduction(n, xnn_reduce_mean, output);
      case blob::Kind::sum:
        return reduction(n, xnn_reduce_sum, output);
      case blob::Kind::softmax:
        return xnn_define_softmax(subgraph_, in[0], output, 0);
      case blob::Kind::concatenate:
        return concatenate(n, output);
      case blob::Kind::slice: {
        const Numbers<size_t> all(n.numbers);
        const size_t rank = all.count / 2;
        return xnn_define_static_slice(subgraph_, rank, all.values, all.values + rank, in[0],
                                       output, 0);
      }
      case blob::Kind::transpose: {
        const Numbers<size_t> order(n.numbers);
        return xnn_define_static_transpose(subgraph_, order.count, order.values, in[0], output, 0);
      }
      case blob::Kind::reshape: {
        const Numbers<size_t> sizes(n.numbers);
        return xnn_define_static_reshape(subgraph_, sizes.count, sizes.values, in[0], output, 0);
      }
      case blob::Kind::pad: {
        const Numbers<size_t> all(n.numbers);
        return xnn_define_static_constant_pad(subgraph_, all.values, all.values + all.count / 2,
                                              n.parameters[0], in[0], output, 0);
      }
      case blob::Kind::resize_bilinear: {
        const Numbers<size_t> all(n.numbers);
        return xnn_define_static_resize_bilinear_2d(
            subgraph_, all.values[0], all.values[1], in[0], output,
            all.values[2] == 1 ? XNN_FLAG_ALIGN_CORNERS : 0);
      }
      default:
        return xnn_status_invalid_parameter;
    }
  }

  xnn_status unary(const NodeView& n, uint32_t output) {
    xnn_unary_params params{};
    if (n.function == blob::Function::elu)
      params.elu = {n.parameters[0]};
    else if (n.function == blob::Function::leaky_relu)
      params.leaky_relu = {n.parameters[0]};
    return xnn_define_unary(subgraph_, unary_of(n.function), &params, n.inputs[0], output, 0);
  }

  xnn_status convolution(const NodeView& n, const Bounded& b) {
    const Numbers<uint32_t> all(n.numbers);
    const uint32_t *v = all.values, groups = v[6];
    const Shape& filter = shapes_[n.inputs[1]];
    return xnn_define_convolution_2d(
        subgraph_, v[2], v[3], v[2], v[3], static_cast<uint32_t>(filter.sizes[1]),
        static_cast<uint32_t>(filter.sizes[2]), v[0], v[1], v[4], v[5], groups,
        static_cast<size_t>(filter.sizes[3]), static_cast<size_t>(filter.sizes[0]) / groups, b.low,
        b.high, n.inputs[0], n.inputs[1], n.inputs[2], b.result, 0);
  }

  xnn_status depthwise(const NodeView& n, const Bounded& b) {
    const Numbers<uint32_t> all(n.numbers);
    const uint32_t* v = all.values;
    const Shape& filter = shapes_[n.inputs[1]];
    const index_t channels = shapes_[n.inputs[0]].sizes[3];
    return xnn_define_depthwise_convolution_2d(
        subgraph_, v[2], v[3], v[2], v[3], static_cast<uint32_t>(filter.sizes[1]),
        static_cast<uint32_t>(filter.sizes[2]), v[0], v[1], v[4], v[5],
        static_cast<uint32_t>(filter.sizes[3] / channels), static_cast<size_t>(channels), b.low,
        b.high, n.inputs[0], n.inputs[1], n.inputs[2], b.result, 0);
  }

  xnn_status deconvolution(const NodeView& n, const Bounded& b) {
    const Numbers<uint32_t> all(n.numbers);
    const uint32_t* v = all.values;
    const Shape& filter = shapes_[n.inputs[1]];
    return xnn_define_deconvolution_2d(
        subgraph_, v[2], v[3], v[2], v[3], v[6], v[7], static_cast<uint32_t>(filter.sizes[1]),
        static_cast<uint32_t>(filter.sizes[2]), v[0], v[1], v[4], v[5], 1,
        static_cast<size_t>(filter.sizes[3]), static_cast<size_t>(filter.sizes[0]), b.low, b.high,
        n.inputs[0], n.inputs[1], n.inputs[2], b.result, 0);
  }

  xnn_status reduction(const NodeView& n, xnn_reduce_operator op, uint32_t output) {
    const Numbers<size_t> axes(n.numbers.part(1, n.numbers.size() - 1));
    return xnn_define_static_reduce(subgraph_, op, axes.count, axes.values, n.inputs[0], output,
                                    n.numbers[0] == 1 ? XNN_FLAG_KEEP_DIMS : 0);
  }

  xnn_status pool(const NodeView& n, const Bounded& b) {
    const Numbers<uint32_t> all(n.numbers);
    const uint32_t* v = all.values;
    if (n.kind == blob::Kind::average_pool)
      return xnn_define_average_pooling_2d(subgraph_, v[4], v[5], v[4], v[5], v[0], v[1], v[2],
                                           v[3], b.low, b.high, n.inputs[0], b.result, 0);
    return xnn_define_max_pooling_2d(subgraph_, v[4], v[5], v[4], v[5], v[0], v[1], v[2], v[3],
                                     v[6], v[7], b.low, b.high, n.inputs[0], b.result, 0);
  }

  xnn_status concatenate(const NodeView& n, uint32_t output) {
    const Span<const uint32_t> in = n.inputs;
    const auto axis = static_cast<int32_t>(n.numbers[0]);
    switch (in.size()) {
      case 2:
        return xnn_define_concatenate2(subgraph_, axis, in[0], in[1], output, 0);
      case 3:
        return xnn_define_concatenate3(subgraph_, axis, in[0], in[1], in[2], output, 0);
      case 4:
        return xnn_define_concatenate4(subgraph_, axis, in[0], in[1], in[2], in[3], output, 0);
      default:
        return xnn_define_concatenate5(subgraph_, axis, in[0], in[1], in[2], in[3], in[4], output,
                                       0);
    }
  }

  xnn_subgraph_t subgraph_;
  const Part& part_;
  const Shape* shapes_;
  const void* const* constants_;
  NodeSet fused_;
};

}  // namespace

xnn_status define(xnn_subgraph_t subgraph, const Part& part, const Shape* shapes,
                  const void* const* constants) {
  return Definer(subgraph, part, shapes, constants).run();
}

}  // namespace taper::delegates::xnnpack
