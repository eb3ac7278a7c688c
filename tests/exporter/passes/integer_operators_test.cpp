// fuse_quantized on each operator that stands alone between dequantize and quantize, against the
// integers of PyTorch's reference and of XNNPACK.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"
#include "taper/tests/support/data.h"

namespace taper::passes {
namespace {

using eager::Tensor;
using ir::Argument;
using ir::Value;
using Json = nlohmann::json;
using Integers = std::vector<int8_t>;

std::vector<Dim> dims(std::initializer_list<int64_t> list) { return {list.begin(), list.end()}; }

/// A graph of one operator between dequantize and quantize.
class Model {
 public:
  Model(const io::SafeTensors& file, const Json& golden) : file_(file), golden_(golden) {
    name_ = golden.at("case").get<std::string>();
    std::vector<Value*> x;
    for (size_t i = 0; i < golden.at("inputs").size(); ++i) {
      inputs_.push_back(tensor("in" + std::to_string(i)));
      Value* q = graph_.add_input("in" + std::to_string(i), inputs_.back().type());
      x.push_back(dequantize(q, golden.at("inputs")[i]));
    }
    Value* y = operation(x);
    const Json& output = golden.at("output");
    graph_.add_output("y", call(ops::quantized_decomposed_quantize_per_tensor,
                                {y, output[0].get<double>(), Dim(output[1].get<int64_t>()),
                                 Dim(-128), Dim(127), DType::i8}));
  }

  ir::Graph& graph() { return graph_; }
  Integers run() const {
    return ir::Interpreter(graph_).run(inputs_).outputs[0].to_vector<int8_t>();
  }
  /// What is quantized at the end, in steps of the output's scale.
  std::vector<float> steps() const {
    std::vector<float> last;
    ir::Interpreter interpreter(graph_);
    interpreter.observe([&](const Value& v, const Tensor& t) {
      if (v.type.dtype == DType::f32) last = t.to_vector<float>();
    });
    interpreter.run(inputs_);
    for (float& y : last) y /= golden_.at("output")[0].get<float>();
    return last;
  }

 private:
  bool is(const std::string& part) const { return name_.find(part) == 0; }
  Tensor tensor(const std::string& key) const {
    return eager::tensor_of(file_.at(name_ + "." + key));
  }
  Value* constant(const std::string& key) {
    return graph_.add_constant(key, ir::payload_of(tensor(key)));
  }
  Value* call(const Operator& op, std::vector<Argument> arguments) {
    return ir::append(graph_, op, std::move(arguments))->result();
  }
  Value* dequantize(Value* q, const Json& numbers) {
    return call(ops::quantized_decomposed_dequantize_per_tensor,
                {q, numbers[0].get<double>(), Dim(numbers[1].get<int64_t>()), Dim(-128), Dim(127),
                 DType::i8, std::monostate()});
  }
  Value* weight() {
    if (golden_.contains("weight_scale"))
      return dequantize(constant("w"), {golden_["weight_scale"], 0});
    return call(ops::quantized_decomposed_dequantize_per_channel,
                {constant("w"), constant("ws"), constant("wz"), Dim(0), Dim(-127), Dim(127),
                 DType::i8, std::monostate()});
  }
  Argument bias() {
    const bool has_one = file_.tensors.contains(name_ + ".b") && golden_.value("bias", true);
    return has_one ? Argument(constant("b")) : Argument();
  }
  Value* with_relu(Value* y) { return golden_.value("relu", false) ? call(ops::relu, {y}) : y; }

  Value* operation(const std::vector<Value*>& x) {
    if (is("conv2d")) {
      const auto two = [&](const char* key) {
        return dims({golden_[key].get<int64_t>(), golden_[key].get<int64_t>()});
      };
      return with_relu(call(ops::convolution,
                            {x[0], weight(), bias(), two("stride"), two("padding"), two("dilation"),
                             false, dims({0, 0}), Dim(golden_["groups"].get<int64_t>())}));
    }
    if (is("linear")) return with_relu(call(ops::linear, {x[0], weight(), bias()}));
    if (is("add_relu")) return call(ops::relu, {call(ops::add_Tensor, {x[0], x[1], Scalar(1)})});
    if (is("add")) return call(ops::add_Tensor, {x[0], x[1], Scalar(1)});
    if (is("sub")) return call(ops::sub_Tensor, {x[0], x[1], Scalar(1)});
    if (is("mul")) return call(ops::mul_Tensor, {x[0], x[1]});
    if (is("avg_pool2d_2")) return average(x[0], 2, 2, 0, true);
    if (is("avg_pool2d_3s2p1_nopad")) return average(x[0], 3, 2, 1, false);
    if (is("avg_pool2d_3s2p1")) return average(x[0], 3, 2, 1, true);
    if (is("mean_hw")) return call(ops::mean_dim, {x[0], dims({2, 3}), true, std::monostate()});
    if (is("adaptive_avg_pool_1")) return call(ops::_adaptive_avg_pool2d, {x[0], dims({1, 1})});
    if (is("max_pool2d_2"))
      return call(ops::max_pool2d,
                  {x[0], dims({2, 2}), dims({2, 2}), dims({0, 0}), dims({1, 1}), false});
    if (is("cat")) return call(ops::cat, {x, Dim(1)});
    if (is("pad_constant"))
      return call(ops::constant_pad_nd, {x[0], dims({1, 1, 1, 1}), Scalar(0.0)});
    if (is("softmax")) return call(ops::_softmax, {x[0], Dim(-1), false});
    if (is("upsample_bilinear_2"))
      return call(ops::upsample_bilinear2d,
                  {x[0], dims({24, 24}), false, std::monostate(), std::monostate()});
    return function(x[0]);
  }
  Value* average(Value* x, int64_t kernel, int64_t stride, int64_t padding, bool counts) {
    return call(ops::avg_pool2d, {x, dims({kernel, kernel}), dims({stride, stride}),
                                  dims({padding, padding}), false, counts, std::monostate()});
  }
  Value* function(Value* x) {
    if (is("sigmoid")) return call(ops::sigmoid, {x});
    if (is("tanh")) return call(ops::tanh, {x});
    if (is("hardswish")) return call(ops::hardswish, {x});
    if (is("hardtanh_relu6")) return call(ops::hardtanh, {x, Scalar(0.0), Scalar(6.0)});
    if (is("relu")) return call(ops::relu, {x});
    if (is("leaky_relu")) return call(ops::leaky_relu, {x, Scalar(0.1)});
    if (is("elu")) return call(ops::elu, {x, Scalar(1.0), Scalar(1.0), Scalar(1.0)});
    if (is("gelu")) return call(ops::gelu, {x, std::string("none")});
    if (is("neg")) return call(ops::neg, {x});
    if (is("abs")) return call(ops::abs, {x});
    if (is("sqrt_of_abs")) return call(ops::sqrt, {call(ops::abs, {x})});
    if (is("exp")) return call(ops::exp, {x});
    if (is("requantize_finer")) return x;
    return nullptr;
  }

  const io::SafeTensors& file_;
  const Json& golden_;
  std::string name_;
  ir::Graph graph_{"f"};
  std::vector<Tensor> inputs_;
};

bool computes_in_f32(const ir::Graph& graph) {
  return std::ranges::any_of(
      graph.nodes(), [](const ir::Node& n) { return n.result()->type.dtype == DType::f32; });
}

/// An average, perhaps a weighted one, that lies between two integers may become either of them.
void expect_equal_but_for_ties(const Integers& got, const Integers& want,
                               const std::vector<float>& steps) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    EXPECT_EQ(std::abs(got[i] - want[i]), 1) << i;
    EXPECT_NEAR(std::fabs(steps[i] - std::trunc(steps[i])), 0.5, 1e-5) << i;
  }
}

TEST(integer_operators, give_the_integers_of_the_reference_and_of_xnnpack) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "quant/integer_ops.safetensors");
  const io::SafeTensors file = io::read_safetensors(path);
  const Json cases = Json::parse(file.metadata.at("cases"));
  int compared = 0, without_xnnpack = 0;
  for (const Json& golden : cases) {
    const std::string name = golden.at("case");
    if (golden.contains("failed")) continue;
    SCOPED_TRACE(name);
    Model model(file, golden);
    const auto expected = [&](const char* key) {
      return eager::tensor_of(file.at(name + key)).to_vector<int8_t>();
    };
    const std::vector<float> steps = model.steps();
    const bool has_ties = name.find("upsample") == 0;  // sums of floats in another order
    if (has_ties)
      expect_equal_but_for_ties(model.run(), expected(".ref"), steps);
    else
      EXPECT_EQ(model.run(), expected(".ref")) << "as eager computes the reference";

    PassContext context({}, false);
    EXPECT_EQ(fuse_quantized(model.graph(), context), 1);
    ir::verify(model.graph());
    EXPECT_FALSE(computes_in_f32(model.graph()));
    const Integers got = model.run();
    ++compared;
    if (name.find("avg_pool2d") == 0 || name.find("upsample") == 0) {
      expect_equal_but_for_ties(got, expected(".ref"), steps);
      continue;
    }
    const bool has_xnnpack = file.tensors.contains(name + ".xnnpack");
    without_xnnpack += !has_xnnpack;
    EXPECT_EQ(got, expected(has_xnnpack ? ".xnnpack" : ".ref"));
  }
  EXPECT_EQ(compared, 41);
  EXPECT_EQ(without_xnnpack, 31);
}

// NaN has no integer. On every machine it becomes the lowest one.
TEST(quantize_per_tensor, gives_nan_the_lowest_integer) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(40, NAN);
  x[1] = infinity, x[2] = -infinity, x[3] = 1;
  const Tensor q = eager::call<ops::quantized_decomposed_quantize_per_tensor>(
      Location::current(), Tensor::from(x, {40}), 0.5, 3, -127, 127, DType::i8);
  Integers want(40, -127);
  want[1] = 127, want[3] = 5;
  EXPECT_EQ(q.to_vector<int8_t>(), want);
}

}  // namespace
}  // namespace taper::passes
