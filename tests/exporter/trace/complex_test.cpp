// Complex numbers in graphs and programs: views of another dtype than their storage, as inputs,
// outputs, constants and states.
#include <complex>

#include "taper/exporter/eager/eager.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/exporter/trace/runs_like_eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper {
namespace {

using namespace eager;

Tensor random_complex(const Ints& sizes) {
  Ints pairs = sizes;
  pairs.push_back(2);
  return view_as_complex(randn(Dims(pairs.begin(), pairs.end())));
}

// The rotary embedding of Llama 4 and DeepSeek.
TEST(complex_program, turns_queries_by_complex_factors) {
  manual_seed(1);
  const Tensor frequencies = arange(4).to(DType::f32) * 0.1;
  const auto rotate = [&](const std::vector<Tensor>& in) {
    const Tensor &x = in[0], &positions = in[1];  // (batch, time, 2, 8) and (time)
    const Tensor angles = outer(positions, frequencies);
    const Tensor turn = unsqueeze(polar(ones_like(angles), angles), 1);
    const Tensor pairs =
        view_as_complex(reshape(x, {x.size(0), x.size(1), Dim(2), Dim(4), Dim(2)}));
    return Tensors{flatten(view_as_real(mul(pairs, turn)), 3)};
  };
  const Dim batch = Dim::symbol("batch", 1, 4), time = Dim::symbol("time", 1, 9);
  expect_runs_like_eager(rotate, {input("x", {batch, time, 2, 8}), input("positions", {time})},
                         {{randn({1, 1, 2, 8}), randn({1})}, {randn({4, 9, 2, 8}), randn({9})}});
}

TEST(complex_program, takes_and_gives_complex_tensors) {
  manual_seed(2);
  const Tensor weight = random_complex({3, 4}), bias = random_complex({3});
  const auto layer = [&](const std::vector<Tensor>& in) {
    const Tensor y = linear(in[0], weight, bias);
    return Tensors{y, conj(in[0]), abs(y), view_as_real(y), div(y, add(square(y), 2))};
  };
  const Dim rows = Dim::symbol("rows", 1, 6);
  expect_runs_like_eager(layer, {input("z", {rows, 4}, DType::c64)},
                         {{random_complex({1, 4})}, {random_complex({6, 4})}});
  expect_runs_like_eager(layer, {{random_complex({2, 4})}});
}

TEST(complex_program, writes_through_views_of_another_dtype) {
  const auto function = [](const std::vector<Tensor>& in) {
    Tensor z = clone(in[0]);
    Tensor im = imag(z), first = select(z, 0, 0);
    im.mul_(2);
    first.add_(1);
    Tensor pairs = clone(in[1]);
    Tensor as_complex = view_as_complex(pairs);
    as_complex.mul_(z);
    return Tensors{z, pairs, real(z)};
  };
  manual_seed(3);
  const Dim n = Dim::symbol("n", 1, 5);
  expect_runs_like_eager(
      function, {input("z", {n}, DType::c64), input("pairs", {n, 2})},
      {{random_complex({1}), randn({1, 2})}, {random_complex({5}), randn({5, 2})}});
}

TEST(complex_program, computes_gradients) {
  const auto function = [](const std::vector<Tensor>& in) {
    const Tensor z = in[0].detach().set_requires_grad(), x = in[1].detach().set_requires_grad();
    const Tensor y = sum(abs(exp(mul(z, x))) + abs(sum(z, Ints{0}, true)));
    const std::vector<Tensor> g = grad({y}, {z, x});
    return Tensors{y.detach(), g[0].detach(), g[1].detach()};
  };
  manual_seed(4);
  const Dim n = Dim::symbol("n", 1, 5);
  expect_runs_like_eager(
      function, {input("z", {n, 3}, DType::c64), input("x", {3})},
      {{random_complex({1, 3}), randn({3})}, {random_complex({5, 3}), randn({3})}});
}

TEST(complex_program, keeps_a_complex_state) {
  Tensor sum_so_far = zeros({2}, DType::c64);
  sum_so_far.set_name("sum");
  const auto step = [&](const std::vector<Tensor>& in) {
    sum_so_far.add_(in[0]);
    return Tensors{abs(sum_so_far)};
  };
  Exporter exporter;
  exporter.method("forward", step, {input("z", {2}, DType::c64)});
  emit::Loaded program(exporter.write(ExportOptions{}), "forward");
  const Tensor z = Tensor::from<std::complex<float>>({{3, 4}, {0, -1}}, {2});
  EXPECT_EQ(program.run({z})[0].to_vector<float>(), (std::vector<float>{5, 1}));
  EXPECT_EQ(program.run({z})[0].to_vector<float>(), (std::vector<float>{10, 2}));
}

// A firmware's array of floats may begin at any multiple of 4.
TEST(complex_program, reads_pairs_at_any_place_of_floats) {
  Exporter exporter;
  exporter.method("forward",
                  [](const Tensors& in) { return Tensors{clone(view_as_complex(in[0]))}; },
                  {input("pairs", {2, 2})});
  const std::vector<std::byte> file = exporter.write(ExportOptions{});
  Result<Module> module =
      Module::load(Span<const std::byte>(file.data(), static_cast<index_t>(file.size())));
  ASSERT_TRUE(module.ok());
  Result<Method> method = module->method("forward");
  ASSERT_TRUE(method.ok());
  alignas(8) float memory[1 + 4 + 16] = {0, 1, 2, 3, 4};  // 64 bytes behind the end are readable
  const index_t sizes[] = {2, 2};
  const Shape shape = Shape::dense(sizes);
  ASSERT_EQ(method->bind_input(0, TensorRef{memory + 1, &shape, DType::f32}), Error::ok);
  ASSERT_EQ(method->execute(), Error::ok);
  const auto* z = static_cast<const Complex64*>(method->output(0).data);
  EXPECT_EQ(z[0].real, 1);
  EXPECT_EQ(z[1].imag, 4);
}

TEST(complex_program, is_made_of_real_kernels) {
  Exporter exporter;
  exporter.method("forward", [](const Tensors& in) { return Tensors{tanh(mul(in[0], in[1]))}; },
                  {input("z", {2, 3}, DType::c64), input("w", {3}, DType::c64)});
  for (const ir::Node& node : exporter.graph("forward").nodes()) {
    const bool is_view = node.op->category == Category::view;
    ir::for_each_value(node, [&](const ir::Value* v) {
      EXPECT_TRUE(is_view || v->type.dtype != DType::c64) << name_of(*node.op);
    });
  }
}

// A file may hold any call, so the rules refuse complex numbers where a kernel would convert them.
TEST(rules, refuse_to_convert_complex_numbers) {
  const auto refuses = [](const std::string& node) {
    const std::string text =
        "graph g\ninput \"z\" = %z: c64[4]\ninput \"x\" = %x: f32[4]\n%y: " + node +
        "\noutput \"y\" = %y\n";
    EXPECT_EXPORT_ERROR(ir::verify(*ir::parse(text, {})),
                        "is computed on real numbers, not on c64");
  };
  refuses("f32[4] = _to_copy(%z, f32)");
  refuses("c64[4] = _to_copy(%x, c64)");
  refuses("c64[4] = copy(%z, %x)");
  refuses("c64[4] = fill.Scalar(%z, 1)");
  refuses("c64[4] = full([4], 1, c64)");
  refuses("c64[] = scalar_tensor(1, c64)");
  refuses("c64[4] = arange.start_step(0, 4, 1, c64)");
  refuses("c64[4] = linspace(0, 4, 4, c64)");
  refuses("c64[5] = constant_pad_nd(%z, [1, 0], 1)");
}

}  // namespace
}  // namespace taper
