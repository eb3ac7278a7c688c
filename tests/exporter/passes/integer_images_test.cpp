// fuse_quantized on transposed convolutions, resizing and products of activations, against
// formulas.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Value;
using testing::Contains, testing::HasSubstr, testing::Not;
using Integers = std::vector<int8_t>;

std::vector<Dim> dims(const std::vector<int64_t>& list) { return {list.begin(), list.end()}; }

constexpr double input_scale = 0.03, output_scale = 1.1;
constexpr int64_t input_zero = -9, output_zero = 5;

struct Net {
  ir::Graph graph{"f"};

  Value* call(const Operator& op, std::vector<Argument> arguments) {
    return ir::append(graph, op, std::move(arguments))->result();
  }
  Value* input(const std::vector<int64_t>& sizes, double scale = input_scale,
               int64_t zero = input_zero) {
    std::vector<Dim> d = dims(sizes);
    return dequantize(graph.add_input("x", ir::dense_type(DType::i8, d)), scale, zero);
  }
  Value* dequantize(Value* q, double scale, int64_t zero) {
    return call(ops::quantized_decomposed_dequantize_per_tensor,
                {q, scale, Dim(zero), Dim(-128), Dim(127), DType::i8, std::monostate()});
  }
  void quantized_output(Value* y, double scale = output_scale, int64_t zero = output_zero) {
    graph.add_output("y", call(ops::quantized_decomposed_quantize_per_tensor,
                               {y, scale, Dim(zero), Dim(-128), Dim(127), DType::i8}));
  }
  /// Makes integers of the graph, and runs it.
  Integers fused(const std::vector<Tensor>& inputs) {
    PassContext context({}, false);
    fuse_quantized(graph, context);
    ir::verify(graph);
    for (const ir::Node& n : graph.nodes())
      EXPECT_EQ(n.result()->type.dtype, DType::i8) << name_of(*n.op);
    return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<int8_t>();
  }
  Integers run(const std::vector<Tensor>& inputs) const {
    return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<int8_t>();
  }
};

Integers random_integers(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  Integers list;
  for (int64_t i = 0; i < count; ++i) list.push_back(static_cast<int8_t>(engine()));
  return list;
}
int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

// ---- transposed convolutions

/// A convolution of lines has one spatial dimension.
struct Transposed {
  int64_t batch, inputs, outputs, groups;
  std::vector<int64_t> in, kernel, stride, padding, dilation, output_padding;

  int64_t out(size_t d) const {
    return (in[d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) +
           output_padding[d] + 1;
  }
  bool is_possible() const {
    for (size_t d = 0; d < in.size(); ++d)
      if (out(d) < 1 || output_padding[d] >= std::max(stride[d], dilation[d])) return false;
    return true;
  }
};

/// The four lines of docs/numerics.md, each input scattered to its results.
Integers definition(const Transposed& t, const Integers& x, const Integers& w,
                    const std::vector<float>& scales, const std::vector<float>& bias) {
  const bool is_line = t.in.size() == 1;
  const auto at = [&](const std::vector<int64_t>& list, int d, int64_t missing) {
    return is_line ? (d == 0 ? missing : list[0]) : list[static_cast<size_t>(d)];
  };
  const int64_t h = at(t.in, 0, 1), width = at(t.in, 1, 1), oh = is_line ? 1 : t.out(0),
                ow = t.out(is_line ? 0 : 1), kh = at(t.kernel, 0, 1), kw = at(t.kernel, 1, 1),
                of_group = t.outputs / t.groups, in_group = t.inputs / t.groups;
  std::vector<int32_t> sums(static_cast<size_t>(t.batch * t.outputs * oh * ow));
  for (int64_t n = 0; n < t.batch; ++n)
    for (int64_t i = 0; i < t.inputs; ++i)
      for (int64_t y = 0; y < h; ++y)
        for (int64_t z = 0; z < width; ++z)
          for (int64_t o = 0; o < of_group; ++o)
            for (int64_t ky = 0; ky < kh; ++ky)
              for (int64_t kx = 0; kx < kw; ++kx) {
                const int64_t row = y * at(t.stride, 0, 1) - at(t.padding, 0, 0) +
                                    ky * at(t.dilation, 0, 1),
                              column = z * at(t.stride, 1, 1) - at(t.padding, 1, 0) +
                                       kx * at(t.dilation, 1, 1);
                if (row < 0 || row >= oh || column < 0 || column >= ow) continue;
                const int64_t channel = i / in_group * of_group + o;
                sums[static_cast<size_t>(((n * t.outputs + channel) * oh + row) * ow + column)] +=
                    (x[static_cast<size_t>(((n * t.inputs + i) * h + y) * width + z)] -
                     input_zero) *
                    w[static_cast<size_t>(((i * of_group + o) * kh + ky) * kw + kx)];
              }
  Integers want;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / (oh * ow) % t.outputs);
    const float s =
        static_cast<float>(input_scale) * scales[channel % static_cast<size_t>(of_group)];
    const auto b = static_cast<int32_t>(std::nearbyint(bias[channel] / s));
    const float y =
        std::nearbyint(static_cast<float>(sums[i] + b) * (s / static_cast<float>(output_scale))) +
        static_cast<float>(output_zero);
    want.push_back(static_cast<int8_t>(std::clamp(y, -128.0f, 127.0f)));
  }
  return want;
}

void expect_definition(const Transposed& t, uint32_t seed) {
  std::vector<int64_t> sizes = {t.batch, t.inputs}, weight_sizes = {t.inputs, t.outputs / t.groups};
  sizes.insert(sizes.end(), t.in.begin(), t.in.end());
  weight_sizes.insert(weight_sizes.end(), t.kernel.begin(), t.kernel.end());
  const Integers x = random_integers(product(sizes), seed);
  Integers w = random_integers(product(weight_sizes), seed + 1);
  for (int8_t& q : w) q = std::max(q, int8_t{-127});
  std::vector<float> scales, bias;
  for (int64_t c = 0; c < t.outputs / t.groups; ++c)
    scales.push_back(0.01f + 0.001f * static_cast<float>(c % 7));
  for (int64_t c = 0; c < t.outputs; ++c) bias.push_back(0.3f * static_cast<float>(c % 5) - 0.7f);

  Net net;
  Value* in = net.input(sizes);
  Value* weight = net.call(
      ops::quantized_decomposed_dequantize_per_channel,
      {net.graph.add_constant("w", ir::Payload::from(w, weight_sizes)),
       net.graph.add_constant("s", ir::Payload::from(scales, {t.outputs / t.groups})),
       net.graph.add_constant(
           "z", ir::Payload::from(std::vector<int64_t>(scales.size()), {t.outputs / t.groups})),
       Dim(1), Dim(-127), Dim(127), DType::i8, std::monostate()});
  net.quantized_output(
      net.call(ops::convolution,
               {in, weight, net.graph.add_constant("b", ir::Payload::from(bias, {t.outputs})),
                dims(t.stride), dims(t.padding), dims(t.dilation), true, dims(t.output_padding),
                Dim(t.groups)}));
  const std::vector<Tensor> inputs = {Tensor::from(x, sizes)};
  const Integers in_float = net.run(inputs), got = net.fused(inputs);
  EXPECT_EQ(got, definition(t, x, w, scales, bias));
  ASSERT_EQ(got.size(), in_float.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(std::abs(got[i] - in_float[i]), 1) << "beside the convolution in f32";
}

TEST(fuse_quantized, computes_transposed_convolutions_with_integers) {
  const Transposed cases[] = {
      {1, 8, 6, 1, {5, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, {0, 0}},   // segmentation
      {2, 5, 17, 1, {4, 3}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {0, 0}},  // generators
      {1, 4, 3, 1, {3, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {1, 4, 3, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},  // one phase
      {1, 3, 4, 1, {4, 3}, {3, 2}, {1, 1}, {2, 3}, {2, 3}, {1, 2}},
      {1, 6, 4, 2, {3, 3}, {3, 3}, {2, 3}, {0, 1}, {1, 1}, {1, 2}},  // groups
      {1, 5, 5, 5, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},  // depthwise
      {1, 3, 2, 1, {3, 4}, {3, 2}, {3, 2}, {1, 0}, {2, 3}, {2, 1}},  // spread out
      {1, 2, 2, 1, {3, 3}, {2, 2}, {5, 4}, {0, 0}, {1, 1}, {3, 2}},  // gaps
      {2, 6, 5, 1, {9}, {4}, {2}, {1}, {1}, {0}},                    // a line
      {1, 4, 4, 4, {7}, {3}, {2}, {1}, {1}, {1}},
      {1, 3, 2, 1, {2, 2}, {5, 5}, {2, 2}, {3, 3}, {1, 1}, {1, 1}},  // much padding
  };
  uint32_t seed = 0;
  for (const Transposed& t : cases) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    ASSERT_TRUE(t.is_possible());
    expect_definition(t, ++seed);
  }
}
TEST(fuse_quantized, computes_transposed_convolutions_drawn_at_random) {
  std::mt19937 engine(3);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint32_t>(high - low + 1));
  };
  const auto two = [&](int64_t low, int64_t high) {
    return std::vector<int64_t>{draw(low, high), draw(low, high)};
  };
  int tried = 0;
  for (uint32_t i = 0; i < 150; ++i) {
    const int64_t groups = draw(1, 2);
    const Transposed t{draw(1, 2), groups * draw(1, 3), groups * draw(1, 4), groups,    two(1, 5),
                       two(1, 4),  two(1, 4),           two(0, 3),           two(1, 3), two(0, 2)};
    if (!t.is_possible()) continue;
    SCOPED_TRACE(::testing::Message() << "draw " << i);
    expect_definition(t, 1000 + i);
    ++tried;
  }
  EXPECT_GT(tried, 40);
}

// ---- resizing

TEST(fuse_quantized, resizes_integers_to_the_nearest_neighbour) {
  for (const Operator* op : {&ops::upsample_nearest2d, &ops::_upsample_nearest_exact2d})
    for (const auto& [to, scale] : {std::pair(std::vector<int64_t>{10, 8}, Argument(2.0)),
                                    std::pair(std::vector<int64_t>{7, 3}, Argument()),
                                    std::pair(std::vector<int64_t>{5, 4}, Argument())}) {
      Net net;
      Value* x = net.input({2, 3, 5, 4});
      net.quantized_output(net.call(*op, {x, dims(to), scale, scale}), input_scale, input_zero);
      const std::vector<Tensor> inputs = {Tensor::from(random_integers(120, 1), {2, 3, 5, 4})};
      const Integers want = net.run(inputs);
      EXPECT_EQ(net.fused(inputs), want) << to[0];
    }
}

TEST(fuse_quantized, keeps_the_bits_of_bilinear_resizing_and_of_softmax) {
  for (const bool align_corners : {false, true}) {
    Net net;
    Value* x = net.input({2, 3, 5, 4});
    net.quantized_output(net.call(ops::upsample_bilinear2d,
                                  {x, dims({9, 3}), align_corners, Argument(), Argument()}),
                         0.025, 7);
    const std::vector<Tensor> inputs = {Tensor::from(random_integers(120, 1), {2, 3, 5, 4})};
    const Integers want = net.run(inputs);
    EXPECT_EQ(net.fused(inputs), want);
  }
  for (const int64_t dim : {1, -1}) {
    Net net;
    net.quantized_output(net.call(ops::_softmax, {net.input({6, 20, 3}), Dim(dim), false}),
                         1.0 / 256, -128);
    const std::vector<Tensor> inputs = {Tensor::from(random_integers(360, 1), {6, 20, 3})};
    const Integers want = net.run(inputs);
    EXPECT_EQ(net.fused(inputs), want);
  }
}

TEST(fuse_quantized, takes_softmax_along_the_channels_of_images) {
  Net net;
  Value* pooled = net.call(ops::max_pool2d, {net.input({1, 5, 4, 4}), dims({2, 2}), dims({2, 2}),
                                             dims({0, 0}), dims({1, 1}), false});
  net.quantized_output(net.call(ops::_softmax, {pooled, Dim(1), false}), 1.0 / 256, -128);
  const std::vector<Tensor> inputs = {Tensor::from(random_integers(80, 1), {1, 5, 4, 4})};
  const Integers want = net.run(inputs);
  EXPECT_EQ(net.fused(inputs), want);
}

// ---- averages and moves

TEST(fuse_quantized, averages_lines_and_positions) {
  struct Case {
    std::vector<int64_t> sizes;
    std::function<Value*(Net&, Value*)> build;
  };
  const auto mean = [](int64_t dim, bool keeps) {
    return [=](Net& n, Value* x) {
      return n.call(ops::mean_dim, {x, dims({dim}), keeps, std::monostate()});
    };
  };
  for (const Case& c :
       {Case{{2, 5, 12}, mean(2, true)}, Case{{2, 5, 12}, mean(-1, false)},
        Case{{2, 12, 5}, mean(1, true)}, Case{{2, 12, 5}, mean(-2, false)},
        Case{{2, 5, 12},
             [](Net&n, Value*x) {
               return n.call(ops::avg_pool1d, {x, dims({3}), dims({2}), dims({1}), false, true});
             }},
        Case{{2, 5, 12}, [](Net&n, Value*x) {
               return n.call(ops::adaptive_avg_pool1d, {x, dims({1})});
             }}}) {
    Net net;
    net.quantized_output(c.build(net, net.input(c.sizes)), 0.017, 3);
    const std::vector<Tensor> inputs = {Tensor::from(random_integers(120, 1), c.sizes)};
    const Integers want = net.run(inputs), got = net.fused(inputs);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(std::abs(got[i] - want[i]), 1) << "a tie";
  }
}

TEST(fuse_quantized, moves_the_integers_of_copies) {
  const std::vector<std::function<Value*(Net&, Value*)>> copies = {
      [](Net& n, Value* x) {
        return n.call(ops::flip, {x, dims({3})});
      },
      [](Net& n, Value* x) {
        return n.call(ops::repeat, {x, dims({1, 2, 1, 1})});
      },
      [](Net& n, Value* x) {
        return n.call(ops::reflection_pad2d, {x, dims({1, 2, 0, 1})});
      },
      [](Net& n, Value* x) {
        return n.call(ops::replication_pad2d, {x, dims({1, 2, 0, 1})});
      }};
  for (const auto& copy : copies) {
    Net net;
    net.quantized_output(copy(net, net.input({2, 3, 5, 4})), input_scale, input_zero);
    const std::vector<Tensor> inputs = {Tensor::from(random_integers(120, 1), {2, 3, 5, 4})};
    const Integers want = net.run(inputs);
    EXPECT_EQ(net.fused(inputs), want);
  }
}

// ---- products of activations

TEST(fuse_quantized, multiplies_activations) {
  struct Case {
    std::vector<int64_t> left, right;
    bool turned;
  };
  for (const Case& c : {Case{{3, 5, 7}, {3, 7, 4}, false}, Case{{3, 5, 7}, {3, 4, 7}, true}}) {
    Net net;
    Value *a = net.input(c.left), *b = net.input(c.right, 0.02, 100);
    if (c.turned) b = net.call(ops::transpose_int, {b, Dim(-2), Dim(-1)});
    net.quantized_output(net.call(ops::bmm, {a, b}), 0.3, -20);
    const std::vector<Tensor> inputs = {
        Tensor::from(random_integers(product(c.left), 1), c.left),
        Tensor::from(random_integers(product(c.right), 2), c.right)};
    const Integers want = net.run(inputs), got = net.fused(inputs);
    ASSERT_EQ(got.size(), want.size());
    size_t others = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(std::abs(got[i] - want[i]), 1);
      others += got[i] != want[i];
    }
    EXPECT_LE(others, got.size() / 50) << "sums in f32 lie beside ties";
  }
}

}  // namespace
}  // namespace taper::passes
