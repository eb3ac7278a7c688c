// Branches and loops: the same functions in eager and as programs.
#include <gmock/gmock.h>

#include "taper/tests/exporter/trace/runs_like_eager.h"

namespace taper {
namespace {

using eager::cond;
using eager::Scanned;
using eager::while_loop;
using testing::HasSubstr;

TEST(cond, takes_the_branch_that_the_run_decides) {
  const Tensor w = Tensor::from<float>({1, 2, 3}, {3});
  const Function f = [&](const Tensors& in) {
    return cond(
        sum(in[0]) > 0,
        [&](const Tensors& x) {
          return Tensors{x[0] * w, exp(x[0])};
        },
        [&](const Tensors& x) {
          return Tensors{x[0] - w, x[0]};
        },
        {in[0]});
  };
  expect_runs_like_eager(f, {{Tensor::from<float>({1, 2, 3}, {3})},
                             {Tensor::from<float>({-1, -2, -3}, {3})},
                             {Tensor::from<float>({1, -7, 3}, {3})}});
}

TEST(cond, hands_through_the_beginning_of_something_larger) {
  const Function f = [](const Tensors& in) {
    const Tensor x = in[0] * 2;
    return cond(
        sum(in[0]) > 0, [](const Tensors& begin) { return begin; },
        [](const Tensors& begin) { return Tensors{begin[0] * 3}; }, {x.slice(0, 0, 2)});
  };
  expect_runs_like_eager(
      f, {{Tensor::from<float>({1, 2, 3}, {3})}, {Tensor::from<float>({-1, -2, -3}, {3})}});
}

TEST(cond, gives_a_copy_of_an_operand_that_a_branch_hands_through) {
  const Function f = [](const Tensors& in) {
    const Tensor x = in[0] * 2;
    const auto same = [](const Tensors& given) { return given; };
    const Tensors given = cond(sum(in[0]) > 0, same, same, {x});
    Tensor(given[0]).add_(1);
    return Tensors{x, given[0]};
  };
  expect_runs_like_eager(f, {{Tensor::from<float>({1, 2}, {2})}});
  const Tensors results = f({Tensor::from<float>({1, 2}, {2})});
  EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{3, 5}));
}

TEST(cond, keeps_what_a_branch_gives_twice_apart) {
  const Function f = [](const Tensors& in) {
    const auto twice = [](const Tensors& x) {
      const Tensor y = x[0] * 2;
      return Tensors{y, y};
    };
    const Tensors both = cond(sum(in[0]) > 0, twice, twice, {in[0]});
    Tensor(both[0]).add_(1);
    return both;
  };
  expect_runs_like_eager(f, {{Tensor::from<float>({1, 2}, {2})}});
}

TEST(while_loop, runs_as_often_as_the_run_says_even_never) {
  const Function f = [](const Tensors& in) {
    return while_loop([](const Tensors& x) { return x[0] < 100; },
                      [](const Tensors& x) {
                        return Tensors{x[1], x[0] + x[1]};
                      },
                      {in[0], in[1]});
  };
  expect_runs_like_eager(
      f, {{number(0), number(1)}, {number(99), number(3)}, {number(100), number(1)}});
}

TEST(while_loop, goes_on_as_long_as_a_boolean_that_it_carries_says) {
  const Function f = [](const Tensors& in) {
    const auto round = [](const Tensors& x) {
      const Tensor next = x[1] * 3;
      return Tensors{sum(next) < 50, next};
    };
    return while_loop([](const Tensors& x) { return x[0]; }, round, {in[0], in[1]});
  };
  const Tensor yes = ones({}).to(DType::boolean), no = zeros({}).to(DType::boolean);
  const Tensor x = Tensor::from<float>({1, 2}, {2});
  expect_runs_like_eager(f, {{yes, x}, {no, x}, {yes, x * 100}});
}

TEST(while_loop, keeps_a_state_in_its_place) {
  const auto make = [] {
    Tensor h = Tensor::from<float>({0, 0}, {2});
    h.set_name("h");
    return h;
  };
  Tensor h = make();
  const auto f = [&h](const Tensors& in) {
    const Tensors out = while_loop([](const Tensors& x) { return x[0] > 0; },
                                   [](const Tensors& x) {
                                     return Tensors{x[0] - 1, x[1] * 2 + 1};
                                   },
                                   {in[0], h});
    h.copy_(out[1]);
    return Tensors{sum(out[1])};
  };
  Exporter exporter;
  exporter.method("step", f, {input("n", {}, DType::i64)});
  emit::Report report;
  const auto bytes = exporter.write(ExportOptions{}, &report);
  EXPECT_EQ(report.methods[0].states_in_place, 1);
  emit::Loaded program(bytes, "step");
  for (int64_t n : {3, 0, 1}) {
    EXPECT_EQ(text(program.run({number(n)})), text(f({number(n)})));
    EXPECT_EQ(program.state("h").to_string(), h.to_string());
  }
}

TEST(scan, carries_and_stacks_forwards_and_backwards) {
  for (const bool reverse : {false, true}) {
    const Function f = [reverse](const Tensors& in) {
      const Scanned all = eager::scan(
          [](const Tensors& carried, const Tensors& x) {
            const Tensor next = eager::tanh(carried[0] + x[0]);
            return Scanned{{next}, {next * x[1], x[0]}};
          },
          {in[0]}, {in[1], in[2]}, reverse);
      return Tensors{all.carried[0], all.results[0], all.results[1]};
    };
    eager::manual_seed(7);
    expect_runs_like_eager(f, {{eager::randn({3}), eager::randn({5, 3}), eager::randn({5, 1})}});
  }
}

TEST(scan, goes_over_as_many_slices_as_the_input_has) {
  const Dim n = Dim::symbol("n", 1, 64);
  const Function cumulative = [](const Tensors& in) {
    const Scanned all = eager::scan(
        [](const Tensors& carried, const Tensors& x) {
          const Tensor sum = carried[0] + x[0];
          return Scanned{{sum}, {sum.clone()}};
        },
        {eager::zeros({2})}, {in[0]});
    return Tensors{all.results[0]};
  };
  Exporter exporter;
  exporter.method("forward", cumulative, {input("x", {n, 2})});
  emit::Loaded program(exporter.write(ExportOptions{}), "forward");
  for (int64_t rows : {64, 1, 7}) {
    const Tensor x = eager::arange(0, rows * 2, 1, DType::f32).reshape({rows, 2});
    EXPECT_EQ(text(program.run({x})), text({eager::cumsum(x, 0)}));
  }
}

TEST(map, gives_the_body_each_slice) {
  const Tensor w = Tensor::from<float>({1, 0, 2, 1}, {2, 2});
  const Function f = [&](const Tensors& in) {
    return eager::map([&](const Tensors& x) { return Tensors{matmul(x[0], w)}; }, in);
  };
  eager::manual_seed(3);
  expect_runs_like_eager(f, {{eager::randn({4, 3, 2})}});
}

/// A training step whose loss goes through control flow: gradients in the program, too.
void expect_trains_like_eager(const std::function<Tensor(const Tensor& w, const Tensors&)>& loss_of,
                              const std::vector<Tensors>& calls) {
  const auto make = [] {
    Tensor w = Tensor::from<float>({0.5f, -0.25f, 1, 0.125f, 2, -1, 0.3f, 0.7f, -0.6f}, {3, 3});
    w.set_name("w");
    w.set_requires_grad();
    return w;
  };
  Tensor w = make();
  const auto step = [&](const Tensors& in) {
    w.set_grad({});
    const Tensor loss = loss_of(w, in);
    loss.backward();
    eager::no_grad([&] { w.sub_(w.grad(), 0.1); });
    return Tensors{loss.detach()};
  };
  std::vector<InputSpec> specs;
  for (size_t i = 0; i < calls[0].size(); ++i)
    specs.push_back(input("in" + std::to_string(i), calls[0][i].sizes(), calls[0][i].dtype()));
  Exporter exporter;
  exporter.method("step", step, specs);
  ir::verify(exporter.graph("step"));
  emit::Loaded program(exporter.write(ExportOptions{}), "step");
  for (const Tensors& in : calls) {
    EXPECT_EQ(text(program.run(in)), text(step(in)));
    EXPECT_EQ(program.state("w").to_string(), w.detach().to_string());
  }
}

TEST(cond, is_differentiated_in_a_program) {
  expect_trains_like_eager(
      [](const Tensor& w, const Tensors& in) {
        const Tensor y = matmul(in[0], w);
        return cond(
            sum(in[0]) > 0, [&](const Tensors& x) { return Tensors{sum(x[0] * x[0])}; },
            [&](const Tensors& x) { return Tensors{sum(exp(matmul(x[0], w)))}; }, {y})[0];
      },
      {{Tensor::from<float>({1, 2, -1}, {1, 3})}, {Tensor::from<float>({-1, 0.5f, -1}, {1, 3})}});
}

TEST(scan, is_differentiated_in_a_program) {
  for (const bool reverse : {false, true})
    expect_trains_like_eager(
        [reverse](const Tensor& w, const Tensors& in) {
          const Scanned all = eager::scan(
              [&](const Tensors& h, const Tensors& x) {
                const Tensor next = eager::tanh(matmul(h[0], w) + x[0]);
                return Scanned{{next}, {next * next}};
              },
              {eager::zeros({1, 3})}, {in[0]}, reverse);
          return sum(all.results[0]) + sum(all.carried[0]);
        },
        {{Tensor::from<float>({1, 2, -1, 0.5f, 0, 1, -1, -1, 2, 1, 1, 0}, {4, 1, 3})}});
}

TEST(cond, has_a_second_derivative_in_a_trace) {
  const Function f = [](const Tensors& in) {
    const Tensor x = in[0].clone();
    x.set_requires_grad();
    const Tensor y = cond(
        sum(in[0]) > 0, [](const Tensors& v) { return Tensors{sum(v[0] * v[0] * v[0])}; },
        [](const Tensors& v) { return Tensors{sum(sin(v[0]))}; }, {x})[0];
    const Tensor dx = grad({y}, {x}, {}, true)[0];
    return Tensors{dx.detach(), grad({sum(dx * dx)}, {x})[0].detach()};
  };
  expect_runs_like_eager(
      f, {{Tensor::from<float>({1, 2, 3}, {3})}, {Tensor::from<float>({-1, 0.5f, -2}, {3})}});
}

TEST(cond, is_differentiated_when_the_interpreter_that_ran_it_is_gone) {
  const auto graph =
      trace("f",
            [](const Tensors& in) {
              return cond(
                  sum(in[0]) > 0, [](const Tensors& x) { return Tensors{sum(x[0] * x[0])}; },
                  [](const Tensors& x) { return Tensors{sum(x[0])}; }, {in[0]});
            },
            {input("x", {3})});
  const Function gradient = [&](const Tensors& in) {
    const Tensor x = in[0].clone();
    x.set_requires_grad();
    const Tensor y = ir::Interpreter(*graph).run({x}).outputs[0];
    return Tensors{grad({y}, {x})[0].detach()};
  };
  expect_runs_like_eager(gradient, {{Tensor::from<float>({1, 2, 3}, {3})},
                                    {Tensor::from<float>({-1, 0.5f, -2}, {3})}});
}

TEST(scan, trains_in_one_call_of_the_program) {
  const Function fit = [](const Tensors& in) {
    const Scanned all = eager::scan(
        [](const Tensors& weights, const Tensors& x) {
          const Tensor w = weights[0].detach();
          w.set_requires_grad();
          const Tensor loss = sum(square(sum(w * x[0]) - x[1]));
          return Scanned{{w.detach() - grad({loss}, {w})[0].detach() * 0.1}, {loss.detach()}};
        },
        {zeros({2})}, {in[0], in[1]});
    return Tensors{all.carried[0], all.results[0]};
  };
  expect_runs_like_eager(fit, {{Tensor::from<float>({1, 0, 0, 1, 1, 1, 2, 1}, {4, 2}),
                                Tensor::from<float>({1, 2, 3, 4}, {4})}});
}

// ---- what is refused ----

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const ExportError& e) {
    return e.what();
  }
  return "nothing was thrown";
}
std::string refusal(const Function& f, const std::vector<InputSpec>& specs) {
  return message_of([&] { trace("f", f, specs); });
}

TEST(control_flow, refuses_a_body_that_writes_what_is_outside) {
  Tensor seen = eager::zeros({2});
  seen.set_name("seen");
  const Function f = [&](const Tensors& in) {
    return cond(
        sum(in[0]) > 0,
        [&](const Tensors& x) {
          seen.add_(x[0]);
          return x;
        },
        [](const Tensors& x) { return x; }, {in[0]});
  };
  EXPECT_THAT(refusal(f, {input("x", {2})}),
              HasSubstr("the body of a branch or loop writes a tensor from outside, \"seen\", in "
                        "place; give the new value as a result instead"));
}

TEST(control_flow, refuses_branches_of_different_types) {
  const auto with = [](const Function& then) {
    return refusal(
        [then](const Tensors& in) {
          return cond(sum(in[0]) > 0, then, [](const Tensors& x) { return x; }, {in[0]});
        },
        {input("x", {2})});
  };
  EXPECT_THAT(with([](const Tensors& x) { return Tensors{sum(x[0])}; }),
              HasSubstr("result 0 is f32 () in one branch and f32 (2) in the other"));
  EXPECT_THAT(with([](const Tensors& x) { return Tensors{x[0].to(DType::i64)}; }),
              HasSubstr("result 0 is i64 (2) in one branch and f32 (2) in the other"));
  EXPECT_THAT(with([](const Tensors&) { return Tensors{}; }),
              HasSubstr("one branch gives 0 tensors, the other 1"));
  EXPECT_THAT(with([](const Tensors&) { return Tensors{Tensor()}; }),
              HasSubstr("result 0 of the body is an undefined tensor"));
}

TEST(control_flow, refuses_loops_that_change_what_they_carry) {
  const Function grows = [](const Tensors& in) {
    return while_loop([](const Tensors& x) { return sum(x[0]) < 10; },
                      [](const Tensors& x) {
                        return Tensors{eager::cat({x[0], x[0]})};
                      },
                      {in[0]});
  };
  const char* want = "carried tensor 0 must stay f32 (2), but the body gives f32 (4)";
  EXPECT_THAT(refusal(grows, {input("x", {2})}), HasSubstr(want));
  EXPECT_THAT(message_of([&] { grows({eager::ones({2})}); }), HasSubstr(want));
  const Function widens = [](const Tensors& in) {
    return while_loop([](const Tensors& x) { return sum(x[0]) < 10; },
                      [](const Tensors& x) { return Tensors{(x[0] + 1).to(DType::f64)}; }, {in[0]});
  };
  const char* wider = "carried tensor 0 must stay f32 (2), but the body gives f64 (2)";
  EXPECT_THAT(refusal(widens, {input("x", {2})}), HasSubstr(wider));
  EXPECT_THAT(message_of([&] { widens({eager::ones({2})}); }), HasSubstr(wider));
  const Function two = [](const Tensors& in) {
    return while_loop([](const Tensors& x) { return x[0] > 0; }, [](const Tensors& x) { return x; },
                      {in[0]});
  };
  EXPECT_THAT(refusal(two, {input("x", {2})}),
              HasSubstr("while_loop: the condition must have one element, got size (2)"));
}

TEST(control_flow, refuses_results_whose_sizes_only_the_body_knows) {
  const Function found = [](const Tensors& x) { return Tensors{eager::nonzero(x[0])}; };
  const Function fixed = [](const Tensors&) { return Tensors{zeros({2, 1}, DType::i64)}; };
  const auto with = [](const Function& then, const Function& otherwise) {
    return refusal(
        [=](const Tensors& in) { return cond(sum(in[0]) > 0, then, otherwise, {in[0]}); },
        {input("x", {4})});
  };
  const char* want = "has size (u0, 1), and only the body knows u0, which it reads from a tensor";
  EXPECT_THAT(with(found, found), HasSubstr(want));
  EXPECT_THAT(with(found, fixed), HasSubstr(want));
  EXPECT_THAT(with(fixed, found), HasSubstr(want));
  EXPECT_THAT(
      refusal([&](const Tensors& in) { return eager::map(found, in); }, {input("x", {4, 3})}),
      HasSubstr(want));
}

TEST(control_flow, says_that_a_loop_has_no_derivative_in_a_trace) {
  Tensor w = eager::ones({2});
  w.set_name("w");
  w.set_requires_grad();
  const Function f = [&](const Tensors& in) {
    const Tensor y =
        while_loop([](const Tensors& x) { return sum(x[0]) < 10; },
                   [&](const Tensors& x) { return Tensors{x[0] * 2 + w}; }, {in[0]})[0];
    sum(y).backward();
    return Tensors{y.detach()};
  };
  EXPECT_THAT(refusal(f, {input("x", {2})}),
              HasSubstr("use scan(), or detach() the carried tensors"));
}

TEST(scan, refuses_what_has_no_slices) {
  const auto step = [](const Tensors& c, const Tensors& x) { return Scanned{c, x}; };
  EXPECT_THAT(message_of([&] { eager::scan(step, {}, {}); }), HasSubstr("xs is empty"));
  EXPECT_THAT(message_of([&] { eager::scan(step, {}, {eager::ones({})}); }),
              HasSubstr("a 0-dim x has no slices"));
  EXPECT_THAT(message_of([&] {
                eager::scan(step, {}, {eager::ones({0, 2})});
              }),
              HasSubstr("xs have no slices"));
  EXPECT_THAT(message_of([&] {
                eager::scan(step, {}, {eager::ones({2}), eager::ones({3})});
              }),
              HasSubstr("got 2 and 3"));
}

}  // namespace
}  // namespace taper
