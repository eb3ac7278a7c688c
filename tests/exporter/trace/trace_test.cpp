#include "taper/exporter/trace/trace.h"

#include <gmock/gmock.h>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/support/throw_message.h"

namespace taper {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Tensors = std::vector<Tensor>;

Tensor values(const std::vector<float>& v) {
  return Tensor::from(v, {static_cast<int64_t>(v.size())});
}
std::vector<float> run(const ir::Graph& graph, const Tensors& inputs) {
  return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<float>();
}

TEST(trace, records_operators_with_their_lines) {
  int line = 0;
  const auto function = [&](const Tensors& in) {
    line = __LINE__ + 1;
    return Tensors{relu(in[0])};
  };
  const auto graph = trace("f", function, {input("x", {3})});
  ir::verify(*graph);
  ASSERT_EQ(graph->nodes().size(), 1u);
  EXPECT_EQ(graph->nodes().front().location.line, line);
  EXPECT_THAT(run(*graph, {values({-1, 2, -3})}), ElementsAre(0, 2, 0));
}
// A file has no bytes for a cache.
TEST(trace, makes_a_state_without_a_first_value_of_an_empty_cache_that_is_written) {
  for (const float first : {0.0f, 1.0f}) {
    Tensor cache = values({first, first, first});
    cache.set_name("layers.0.cache.key");
    const auto function = [&](const Tensors& in) { return Tensors{cache.copy_(cache + in[0])}; };
    const auto graph = trace("f", function, {input("x", {3})});
    ir::verify(*graph);
    const ir::State& state = graph->states().front();
    EXPECT_EQ(state.kind, first == 0 ? ir::StateKind::cache : ir::StateKind::buffer);
    EXPECT_EQ(state.initial == nullptr, first == 0);
    EXPECT_THAT(run(*graph, {values({1, 2, 3})}), ElementsAre(first + 1, first + 2, first + 3));
  }
}
TEST(trace, gives_views_of_no_elements_the_strides_that_the_layout_rules_give) {
  using Function = Tensor (*)(const Tensor&);
  const Function views[] = {[](const Tensor& x) {
                              return permute(x, {2, 0, 1});
                            },
                            [](const Tensor& x) { return slice(x, 0, 1); },
                            [](const Tensor& x) { return select(x, 2, 1); },
                            [](const Tensor& x) { return contiguous(transpose(x, 0, 1)); }};
  for (const Function view : views)
    for (const Dim n : {Dim(0), Dim::symbol("n", 0, 8)})
      for (const bool computed : {false, true}) {
        const auto graph = trace(
            "f", [&](const Tensors& in) { return Tensors{view(computed ? relu(in[0]) : in[0])}; },
            {input("x", {2, n, 3})});
        ir::verify(*graph);
        const Tensor x = Tensor::empty({2, 0, 3});
        EXPECT_EQ(ir::Interpreter(*graph).run({x}).outputs[0].sizes(), view(x).sizes());
      }
}
// The caller may give any size that was declared.
TEST(trace, refuses_an_operator_that_fits_one_of_the_declared_sizes) {
  const auto sum_with_three = [](int64_t least, int64_t most) {
    return trace("f", [](const Tensors& in) { return Tensors{in[0] + ones({3})}; },
                 {input("q", {Dim::symbol("n", least, most)})});
  };
  EXPECT_THAT([&] { sum_with_three(1, 9); },
              ThrowsMessage<EagerError>(testing::AllOf(
                  HasSubstr("trace_test.cpp"), HasSubstr("n is declared as 1..9, and only n = 3"),
                  HasSubstr("Dim::symbol(\"n\", 3, 3)"), HasSubstr("--dim n=3"))));
  EXPECT_NO_THROW(sum_with_three(3, 3));
}
TEST(trace, keeps_checks_that_leave_a_choice) {
  const Dim n = Dim::symbol("n", 1, 9), m = Dim::symbol("m", 1, 9);
  const auto graph = trace("f",
                           [](const Tensors& in) {
                             return Tensors{reshape(in[0], {-1, 4}), in[0] + in[1]};
                           },
                           {input("q", {n}), input("r", {m})});
  EXPECT_EQ(graph->checks().size(), 2u);
}
TEST(trace, keeps_as_strided_inside_the_storage) {
  const auto strided = [](Dim n, Dim size, Dim offset) {
    return trace("f",
                 [&](const Tensors& in) { return Tensors{as_strided(in[0], {size}, {2}, offset)}; },
                 {input("x", {n})});
  };
  EXPECT_TRUE(strided(8, 4, 1)->checks().empty());
  EXPECT_THROW_MESSAGE(strided(8, 4, 2), "lie outside the storage of 8 elements");
  EXPECT_EQ(strided(Dim::symbol("n", 1, 8), 4, 0)->checks().size(), 1u);
  EXPECT_TRUE(strided(Dim::symbol("n", 7, 8), 4, 0)->checks().empty());
}
TEST(trace, takes_bags_of_an_embedding_in_any_number) {
  nn::EmbeddingBag bag(5, 2);
  const auto graph = trace("f", [&](const Tensors& in) { return Tensors{bag(in[0])}; },
                           {input("indices", {Dim::symbol("bags", 1, 8), 3}, DType::i64)});
  const Tensor indices = Tensor::from<int64_t>({0, 1, 2, 4, 4, 3}, {2, 3});
  EXPECT_EQ(run(*graph, {indices}), bag(indices).detach().to_vector<float>());
}
TEST(trace, takes_bags_of_an_embedding_of_any_length) {
  nn::EmbeddingBag bag(5, 2);
  const auto graph = trace("f", [&](const Tensors& in) { return Tensors{bag(in[0])}; },
                           {input("indices", {2, Dim::symbol("length", 0, 8)}, DType::i64)});
  for (const int64_t n : {0, 1, 3}) {
    const Tensor indices = reshape(arange(0, 2 * n) % 5, {2, n});
    EXPECT_EQ(run(*graph, {indices}), bag(indices).detach().to_vector<float>());
  }
}
TEST(trace, keeps_extents_symbolic_that_are_counted) {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {[](const Tensor& x) { return rms_norm(x, {x.size(1)}); },
                                [](const Tensor& x) {
                                  const Tensor leaf = x.detach().set_requires_grad();
                                  const Tensor y = rms_norm(leaf, {x.size(1)}, select(x, 0, 0));
                                  return grad({sum(y * y)}, {leaf})[0];
                                },
                                [](const Tensor& x) {
                                  return chunk(cat({x, x * 2}, 1), 2, 1)[1];
                                },
                                [](const Tensor& x) { return chunk(x, 1, 1)[0]; },
                                [](const Tensor& x) {
                                  return cross_entropy(x, to(select(x, 1, 0) * 0, DType::i64), {},
                                                       Reduction::mean, -100, 0.1);
                                },
                                [](const Tensor& x) {
                                  return cross_entropy(x, softmax(x, 1), {}, Reduction::none, -100,
                                                       0.1);
                                }};
  int number = 0;
  for (const Function f : functions) {
    const auto graph = trace("f", [&](const Tensors& in) { return Tensors{f(in[0])}; },
                             {input("x", {2, Dim::symbol("n", 1, 64)})});
    ir::verify(*graph);
    for (const int64_t n : {1, 3, 7}) {
      const Tensor x = reshape(arange(0, 2 * n, 1, DType::f32), {2, n}) * 0.3;
      EXPECT_EQ(run(*graph, {x}), f(x).to_vector<float>()) << "function " << number;
    }
    ++number;
  }
  EXPECT_THAT(
      [] {
        trace("f", [](const Tensors& in) { return chunk(in[0], 2, 0); },
              {input("x", {Dim::symbol("n", 1, 8)})});
      },
      ThrowsMessage<EagerError>(
          HasSubstr("chunk: how many pieces there are depends on the size n")));
}
TEST(trace, averages_a_loss_over_a_batch_of_any_size) {
  nn::KLDivLoss loss({.batch_mean = true});
  const Dim batch = Dim::symbol("batch", 1, 8);
  const auto graph = trace("f", [&](const Tensors& in) { return Tensors{loss(in[0], in[1])}; },
                           {input("x", {batch, 2}), input("target", {batch, 2})});
  const Tensor x = Tensor::from<float>({-1, -2, -3, -4, -5, -6}, {3, 2}),
               target = Tensor::from<float>({0.5f, 0.5f, 1, 0, 0.25f, 0.75f}, {3, 2});
  EXPECT_FLOAT_EQ(run(*graph, {x, target})[0], loss(x, target).item<float>());
}
TEST(trace, knows_that_a_tensor_without_elements_is_dense) {
  const auto graph = trace(
      "f", [](const Tensors& in) { return Tensors{relu(contiguous(transpose(in[0], 0, 1)))}; },
      {input("x", {2, 0, 3})});
  for (const ir::Node& node : graph->nodes()) EXPECT_NE(node.op, &ops::clone);
}
TEST(trace, keeps_sizes_symbolic) {
  const Dim batch = Dim::symbol("batch", 1, 8);
  const auto graph = trace("f", [](const Tensors& in) { return Tensors{flatten(in[0], 0)}; },
                           {input("x", {batch, 3})});
  EXPECT_EQ(graph->outputs()[0].value->type.sizes[0].to_string(), "batch*3");
  EXPECT_THAT(run(*graph, {Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3})}),
              ElementsAre(1, 2, 3, 4, 5, 6));
}
TEST(trace, keeps_sizes_symbolic_that_are_padded_resampled_or_rearranged) {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {[](const Tensor& x) {
                                  return pad(x, {1, 2, 0, 1}, "circular");
                                },
                                [](const Tensor& x) {
                                  return pad(x, {1, 2, 1, 1}, "reflect");
                                },
                                [](const Tensor& x) {
                                  return pad(x, {1, 2, 5, -1}, "replicate");
                                },
                                [](const Tensor& x) {
                                  return interpolate_by(x, {1.5, 2}, "bilinear");
                                },
                                [](const Tensor& x) {
                                  return interpolate_by(x, {0.5, 0.5});
                                },
                                [](const Tensor& x) { return pixel_shuffle(x, 2); },
                                [](const Tensor& x) { return channel_shuffle(x, 2); },
                                [](const Tensor& x) { return im2col(x, 3, 1, 1, 2); },
                                [](const Tensor& x) {
                                  return std::get<0>(adaptive_max_pool2d(x, {3, 2}));
                                },
                                [](const Tensor& x) { return repeat_interleave(x, 2, 2); },
                                [](const Tensor& x) {
                                  return rot90(x, 1, {2, 3});
                                },
                                [](const Tensor& x) { return diag_embed(x, 1, 0, 2); }};
  for (const Function f : functions) {
    const Dim height = Dim::symbol("height", 4, 64);
    const auto graph = trace("f", [&](const Tensors& in) { return Tensors{f(in[0])}; },
                             {input("x", {1, 4, height, 6})});
    ir::verify(*graph);
    for (const int64_t h : {4, 7}) {
      const Tensor x = reshape(arange(0, 24 * h, 1, DType::f32), {1, 4, h, 6});
      EXPECT_EQ(run(*graph, {x}), f(x).to_vector<float>());
    }
  }
}
TEST(trace, keeps_sizes_symbolic_in_products_distances_and_losses) {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {
      [](const Tensor& x) {
        return eager::einsum("ij,kj->ik", {x, x});
      },
      [](const Tensor& x) {
        return eager::einsum("...j,...j->...", {x, x});
      },
      [](const Tensor& x) { return inner(x, x * 2); },
      [](const Tensor& x) {
        return kron(x, ones({2, 1}));
      },
      [](const Tensor& x) {
        return bilinear(x, x, ones({2, 6, 6}));
      },
      [](const Tensor& x) { return glu(x, 1); },
      [](const Tensor& x) { return prelu(x - 5, full({6}, 0.5)); },
      [](const Tensor& x) { return cdist(x, x * 2); },
      [](const Tensor& x) { return cdist(x, x * 2, 2, 1); },
      [](const Tensor& x) { return pdist(x, 1); },
      [](const Tensor& x) { return pairwise_distance(x, x * 2); },
      [](const Tensor& x) { return cosine_similarity(x, ones({6}), 1); },
      [](const Tensor& x) {
        return weight_norm(x, ones({1, 6}), 1);
      },
      [](const Tensor& x) { return diff(x, 2, 0); },
      [](const Tensor& x) { return soft_margin_loss(x, x); },
      [](const Tensor& x) { return multi_margin_loss(x, to(select(x, 1, 0) * 0, DType::i64)); },
      [](const Tensor& x) { return multilabel_margin_loss(x, zeros_like(x, DType::i64)); }};
  int number = 0;
  for (const Function f : functions) {
    const Dim rows = Dim::symbol("rows", 3, 20);
    const auto graph =
        trace("f", [&](const Tensors& in) { return Tensors{f(in[0])}; }, {input("x", {rows, 6})});
    ir::verify(*graph);
    for (const int64_t n : {3, 7}) {
      const Tensor x = reshape(arange(0, 6 * n, 1, DType::f32), {n, 6}) * 0.25;
      EXPECT_EQ(run(*graph, {x}), f(x).to_vector<float>()) << "function " << number;
    }
    ++number;
  }
}
TEST(trace, turns_writes_through_views_into_values) {
  const auto function = [](const Tensors& in) {
    Tensor x = in[0] * 1;
    const Tensor before = x.slice(0, 0, 2);  // taken before the write, and sees it
    x.slice(0, 1, 3).mul_(Scalar(10));
    return Tensors{before + x.slice(0, 2, 4)};
  };
  const auto graph = trace("f", function, {input("x", {4})});
  ir::verify(*graph);
  const Tensor x = values({1, 2, 3, 4});
  EXPECT_EQ(run(*graph, {x}), function({x})[0].to_vector<float>());
}
TEST(trace, makes_a_written_tensor_a_state) {
  Tensor counter = values({5});
  counter.set_name("counter");
  const auto graph = trace("f",
                           [&](const Tensors& in) {
                             counter.add_(in[0]);
                             return Tensors{counter * 2};
                           },
                           {input("x", {1})});
  ASSERT_EQ(graph->states().size(), 1u);
  EXPECT_EQ(graph->states().front().path, "counter");
  ASSERT_EQ(graph->writes().size(), 1u);
  EXPECT_THAT(counter.to_vector<float>(), ElementsAre(5)) << "a trace must not change values";
  ir::Interpreter interpreter(*graph);
  const ir::Interpretation result = interpreter.run({values({1})});
  EXPECT_THAT(result.outputs[0].to_vector<float>(), ElementsAre(12));
  EXPECT_THAT(result.written_states.at("counter").to_vector<float>(), ElementsAre(6));
}
/// What tracing `function` of one input throws.
std::string refusal(const std::function<Tensors(const Tensors&)>& function) {
  try {
    trace("f", function, {input("x", {1})});
  } catch (const EagerError& e) {
    return e.what();
  }
  return "";
}

TEST(trace, names_the_line_that_writes_a_tensor_without_a_name) {
  Tensor loose = values({5});
  int line = 0;
  const std::string message = refusal([&](const Tensors& in) {
    line = __LINE__ + 1;
    loose.add_(in[0]);
    return Tensors{loose};
  });
  EXPECT_THAT(message, HasSubstr("trace_test.cpp:" + std::to_string(line)));
  EXPECT_THAT(message, HasSubstr("has no name"));
}
TEST(trace, names_the_line_that_reads_a_number) {
  int line = 0;
  const std::string message = refusal([&](const Tensors& in) {
    line = __LINE__ + 1;
    const bool positive = in[0].item() > 0;
    return positive ? Tensors{in[0]} : Tensors{in[0] * 2};
  });
  EXPECT_THAT(message, HasSubstr("trace_test.cpp:" + std::to_string(line)));
  EXPECT_THAT(message, HasSubstr("cannot be traced"));
}
TEST(trace, names_the_line_of_a_number_that_the_host_counts) {
  int line = 0, count = 0;
  const std::string message = refusal([&](const Tensors& in) {
    line = __LINE__ + 1;
    return Tensors{in[0] * ++count};
  });
  EXPECT_THAT(message, HasSubstr("trace_test.cpp:" + std::to_string(line)));
  EXPECT_THAT(message, HasSubstr("(a state)"));
}
TEST(trace, refuses_a_function_that_does_something_else_the_second_time) {
  bool first = true;
  EXPECT_THAT(refusal([&](const Tensors& in) {
                return std::exchange(first, false) ? Tensors{in[0]} : Tensors{in[0] * 2};
              }),
              HasSubstr("called different operators"));
}
TEST(trace, notices_elements_and_an_order_that_change_from_run_to_run) {
  int count = 0;
  EXPECT_THAT(refusal([&](const Tensors& in) {
                return Tensors{in[0] + values({static_cast<float>(++count)})};
              }),
              HasSubstr("with other elements the second time"));
  bool swapped = false;
  EXPECT_THAT(refusal([&](const Tensors& in) {
                const Tensor a = in[0] * 2, b = in[0] * 3;
                return std::exchange(swapped, true) ? Tensors{b, a} : Tensors{a, b};
              }),
              HasSubstr("in another order"));
}
TEST(trace, names_the_line_that_writes_an_input) {
  int line = 0;
  const std::string message = refusal([&](const Tensors& in) {
    Tensor x = in[0];
    line = __LINE__ + 1;
    x.add_(Scalar(1));
    return Tensors{x};
  });
  EXPECT_THAT(message, HasSubstr("trace_test.cpp:" + std::to_string(line)));
  EXPECT_THAT(message, HasSubstr("writes the input \"x\""));
}
TEST(trace, names_the_line_that_sets_a_learning_rate) {
  Tensor w = values({1});
  w.set_name("w"), w.set_requires_grad();
  optim::SGD optimizer({w}, {.lr = 0.1});
  int line = 0;
  const std::string message = refusal([&](const Tensors& in) {
    line = __LINE__ + 1;
    optimizer.set_lr(0.01);
    return in;
  });
  EXPECT_THAT(message, HasSubstr("trace_test.cpp:" + std::to_string(line)));
  EXPECT_THAT(message, HasSubstr("optimizer.lr"));
}
TEST(trace, gives_backward_the_lines_of_the_forward_calls) {
  Tensor w = values({1});
  w.set_name("w"), w.set_requires_grad();
  const auto function = [&](const Tensors& in) {
    const Tensor loss = sum(exp(w * in[0]));
    loss.backward();
    return Tensors{w.grad()};
  };
  const auto graph = trace("step", function, {input("x", {1})});
  for (const ir::Node& node : graph->nodes())
    EXPECT_THAT(node.location.to_string(), HasSubstr("trace_test.cpp"));
}
TEST(trace, refuses_what_a_program_could_not_name_or_hold) {
  const auto same = [](const Tensors& in) { return in; };
  const auto message = [&](const std::vector<InputSpec>& inputs,
                           const std::vector<std::string>& outputs = {}) -> std::string {
    try {
      trace("f", same, inputs, outputs);
    } catch (const EagerError& e) {
      return e.what();
    }
    return "";
  };
  const Dim n = Dim::symbol("n", 1, 8), other = Dim::symbol("n", 1, 8);
  EXPECT_THAT(message({input("x", {-3})}), HasSubstr("size of -3"));
  EXPECT_THAT(message({input("x", {Dim::symbol("n", -3, 8)})}),
              HasSubstr("size of n, which may be -3; give the symbol a minimum of 0 or more"));
  EXPECT_THAT(message({input("", {3})}), HasSubstr("empty name"));
  EXPECT_THAT(message({input("x", {3}), input("x", {3})}), HasSubstr("two inputs"));
  EXPECT_THAT(message({input("x", {n, other})}), HasSubstr("two different symbols"));
  EXPECT_THAT(message({input("x", {3})}, {"a", "b"}), HasSubstr("2 output names"));
  EXPECT_THAT(message({input("x", {3}), input("y", {3})}, {"a", "a"}), HasSubstr("two outputs"));
  EXPECT_THAT(refusal([](const Tensors&) { return Tensors{}; }), HasSubstr("nothing to run"));
}
TEST(trace, refuses_a_branch_on_a_symbolic_size) {
  const auto function = [](const Tensors& in) {
    return in[0].size(0) == 3 ? Tensors{in[0]} : Tensors{in[0] * 2};
  };
  EXPECT_THROW(trace("f", function, {input("x", {Dim::symbol("n", 1, 8)})}), EagerError);
}
TEST(trace, reads_sizes_that_depend_on_data_while_a_program_runs) {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {
      [](const Tensor& x) { return nonzero(x); },
      [](const Tensor& x) { return masked_select(x, x > 0); },
      [](const Tensor& x) { return index(x, {x > 0}) * 2; },
      [](const Tensor& x) { return repeat_interleave(x, relu(x).to(DType::i64)); },
      [](const Tensor& x) { return bincount(relu(x).to(DType::i64)); },
      [](const Tensor& x) { return one_hot(relu(x).to(DType::i64)); },
      [](const Tensor& x) {
        const auto [values, inverse, counts] = unique(x, true, true, true);
        return cat({values, inverse.to(DType::f32), counts.to(DType::f32)}, 0);
      },
      [](const Tensor& x) { return take_along_dim(x, argsort(x) - 1, 0); },
      [](const Tensor& x) { return narrow(x, 0, argmax(x), 1) * 2; },
      [](const Tensor& x) { return narrow(x, 0, argmax(x) * 0 - 1, 1) * 2; },
  };
  for (const Function f : functions) {
    const auto graph = trace("f", [&](const Tensors& in) { return Tensors{f(in[0])}; },
                             {input("x", {Dim::symbol("n", 1, 8)})});
    ir::verify(*graph);
    for (const std::vector<float>& x : {std::vector<float>{1, -2, 3, 0}, {-1}, {2, 2}}) {
      const Tensor got = ir::Interpreter(*graph).run({values(x)}).outputs[0], want = f(values(x));
      EXPECT_EQ(got.sizes(), want.sizes());
      EXPECT_EQ(got.to_string(), want.to_string());
    }
  }
}
TEST(trace, of_sizes_that_depend_on_data_and_must_be_equal_makes_no_program) {
  Exporter exporter;
  exporter.method("forward", [](const Tensor& x) { return masked_select(x, x > 0) + ones({3}); },
                  {input("x", {8})});
  EXPECT_EXPORT_ERROR(exporter.write(ExportOptions{}), "depends on data");
}
TEST(trace, follows_indices_and_running_products_over_a_symbolic_size) {
  const Dim n = Dim::symbol("n", 1, 8);
  const auto function = [&](const Tensors& in) {
    const Tensor x = in[0].detach().set_requires_grad();
    const Tensor y = sum(cumprod(x, 0)) + prod(x) + sum(logcumsumexp(x, 0));
    const Tensor at = searchsorted(std::get<0>(sort(x.detach(), 0)), x.detach());
    const Tensor twice = repeat_interleave(x.detach(), at * 0 + 2, 0, n * 2);
    return Tensors{eager::grad({y}, {x})[0] + to(at, DType::f32) + twice.slice(0, 0, n)};
  };
  const auto graph = trace("f", function, {input("x", {n})});
  for (const std::vector<float>& x : {std::vector<float>{2}, {3, 0, 1, 2, 5}})
    EXPECT_THAT(run(*graph, {values(x)}), testing::SizeIs(x.size()));
}
TEST(trace, leaves_gradients_as_they_were) {
  const Tensor w = values({2}).set_requires_grad();
  w.set_name("w");
  w.set_grad(values({7}));
  const auto graph = trace("step",
                           [&](const Tensors& in) {
                             w.set_grad({});
                             sum(w * in[0]).backward();
                             return Tensors{w.grad()};
                           },
                           {input("x", {1})});
  EXPECT_THAT(w.grad().to_vector<float>(), ElementsAre(7));
  EXPECT_THAT(run(*graph, {values({3})}), ElementsAre(3));
}
TEST(trace, makes_the_random_generator_a_state) {
  const auto graph =
      trace("f", [](const Tensors& in) { return Tensors{dropout(in[0], 0.5, true)}; },
            {input("x", {64})});
  ASSERT_EQ(graph->states().size(), 1u);
  EXPECT_EQ(graph->states().front().kind, ir::StateKind::random);
  EXPECT_EQ(graph->writes().size(), 1u);
}
TEST(trace, bakes_what_no_method_writes) {
  Tensor weight = values({2}), state = values({3});
  weight.set_name("weight"), state.set_name("state");
  const auto read =
      trace("read", [&](const Tensors& in) { return Tensors{in[0] * weight + state}; },
            {input("x", {1})});
  const auto write =
      trace("write", [&](const Tensors& in) { return state.copy_(in[0]), Tensors{in[0]}; },
            {input("x", {1})});
  bake_read_only_states({read.get(), write.get()});
  EXPECT_EQ(read->constants().size(), 1u);
  EXPECT_EQ(read->states().size(), 1u);
  EXPECT_THAT(run(*read, {values({10})}), ElementsAre(23));
}
TEST(exporter, takes_a_function_of_a_list_with_any_number_of_inputs) {
  Exporter exporter;
  std::vector<InputSpec> specs;
  for (int i = 0; i < 12; ++i) specs.push_back(input("x" + std::to_string(i), {2}));
  exporter.method(
      "sum",
      [](const std::vector<Tensor>& in) {
        Tensor total = in[0];
        for (size_t i = 1; i < in.size(); ++i) total = total + in[i];
        return total;
      },
      specs);
  EXPECT_EQ(exporter.graph("sum").inputs().size(), 12u);
  EXPECT_THAT(
      [&] {
        exporter.method(
            "generic", [](Tensor x, auto... in) { return (x + ... + in); }, specs);
      },
      ThrowsMessage<ExportError>(HasSubstr("const std::vector<Tensor>&")));
}
TEST(exporter, refuses_a_second_method_of_one_name_and_wrong_arity) {
  Exporter exporter;
  exporter.method("f", [](Tensor x) { return x * 2; }, {input("x", {1})});
  EXPECT_THAT([&] { exporter.method("f", [](Tensor x) { return x; }, {input("x", {1})}); },
              ThrowsMessage<EagerError>(HasSubstr("called \"f\" already")));
  EXPECT_THAT(
      [&] { exporter.method("g", [](Tensor a, Tensor b) { return a + b; }, {input("x", {1})}); },
      ThrowsMessage<ExportError>(HasSubstr("does not take 1 tensors")));
}

}  // namespace
}  // namespace taper
