// Branches and loops: the same functions in eager and as programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/emit/loaded.h"

namespace taper {
namespace {

using eager::cond;
using eager::Scanned;
using eager::while_loop;
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

Tensor number(int64_t n) { return Tensor::from<int64_t>({n}, {}); }

std::string text(const Tensors& tensors) {
  std::string s;
  for (const Tensor& t : tensors) s += t.to_string() + "\n";
  return s;
}

/// Traces the function, and compares what the program gives, what the graph gives when it is
/// interpreted, read back from its text and traced again, with what eager gives. Returns the
/// program.
std::vector<std::byte> expect_runs_like_eager(const Function& function,
                                              const std::vector<Tensors>& calls) {
  std::vector<InputSpec> specs;
  for (size_t i = 0; i < calls[0].size(); ++i)
    specs.push_back(input("in" + std::to_string(i), calls[0][i].sizes(), calls[0][i].dtype()));
  Exporter exporter;
  exporter.method("forward", function, specs);
  ir::Graph& graph = exporter.graph("forward");
  ir::verify(graph);
  const std::string as_text = ir::to_string(graph);
  const auto read_back = ir::parse(as_text, ir::payloads_of(graph));
  ir::verify(*read_back);
  EXPECT_EQ(ir::to_string(*read_back), as_text);
  ir::Interpreter interpreter(*read_back);
  const auto traced_again = trace(
      "again", [&](const Tensors& in) { return interpreter.run(in).outputs; }, specs);
  ir::verify(*traced_again);
  const std::vector<std::byte> bytes = exporter.write(ExportOptions{});
  emit::Loaded program(bytes, "forward");
  for (const Tensors& in : calls) {
    const std::string want = text(function(in));
    EXPECT_EQ(text(program.run(in)), want) << "for\n" << text(in) << as_text;
    EXPECT_EQ(text(interpreter.run(in).outputs), want);
    EXPECT_EQ(text(ir::Interpreter(*traced_again).run(in).outputs), want);
  }
  return bytes;
}

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
  const char* want = "tensor 0 that is carried is f32 (2) and must stay so; the body gives f32 (4)";
  EXPECT_THAT(refusal(grows, {input("x", {2})}), HasSubstr(want));
  EXPECT_THAT(message_of([&] { grows({eager::ones({2})}); }), HasSubstr(want));
  const Function two = [](const Tensors& in) {
    return while_loop([](const Tensors& x) { return x[0] > 0; }, [](const Tensors& x) { return x; },
                      {in[0]});
  };
  EXPECT_THAT(refusal(two, {input("x", {2})}),
              HasSubstr("while_loop: the condition must have one element, got size (2)"));
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
  EXPECT_THAT(refusal(f, {input("x", {2})}), HasSubstr("use scan(), or detach() what it carries"));
}

TEST(scan, refuses_what_has_no_slices) {
  const auto step = [](const Tensors& c, const Tensors& x) { return Scanned{c, x}; };
  EXPECT_THAT(message_of([&] { eager::scan(step, {}, {}); }),
              HasSubstr("there is nothing to go over"));
  EXPECT_THAT(message_of([&] { eager::scan(step, {}, {eager::ones({})}); }),
              HasSubstr("has no first dimension"));
  EXPECT_THAT(message_of([&] {
                eager::scan(step, {}, {eager::ones({0, 2})});
              }),
              HasSubstr("there are no slices"));
  EXPECT_THAT(message_of([&] {
                eager::scan(step, {}, {eager::ones({2}), eager::ones({3})});
              }),
              HasSubstr("got 2 and 3"));
}

// ---- random programs ----

/// A program as a tree of statements over 2x2 tensors of i64, so that results are exact and the
/// same program can run in eager and be traced. Every statement adds one or more values.
struct Block;
struct Statement {
  enum Kind { arithmetic, view, write, branch, loop } kind;
  unsigned choice = 0;
  std::vector<size_t> values;  ///< which values it uses, modulo how many there are
  std::shared_ptr<Block> first, second;
};
struct Block {
  std::vector<Statement> statements;
  std::vector<size_t> results;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Block block(int depth, size_t results) {
    Block b;
    const unsigned count = 1 + pick(4);
    for (unsigned i = 0; i < count; ++i) b.statements.push_back(statement(depth));
    for (size_t i = 0; i < results; ++i) b.results.push_back(pick(1000));
    return b;
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_()) % n; }
  Statement statement(int depth) {
    Statement s;
    const unsigned kind = pick(depth > 0 ? 10 : 6);
    s.kind = kind < 4    ? Statement::arithmetic
             : kind == 4 ? Statement::view
             : kind == 5 ? Statement::write
             : kind < 8  ? Statement::branch
                         : Statement::loop;
    s.choice = pick(1000);
    for (int i = 0; i < 4; ++i) s.values.push_back(pick(1000));
    const size_t results = 1 + pick(3);
    if (s.kind >= Statement::branch) {
      s.first = std::make_shared<Block>(block(depth - 1, results));
      s.second = std::make_shared<Block>(block(depth - 1, results));
    }
    return s;
  }
  std::mt19937 random_;
};

Tensors run(const Block& block, Tensors env);

Tensor small(const Tensor& t) { return eager::remainder(t, 97); }

void run(const Statement& s, Tensors& env) {
  const auto value = [&](size_t i) { return env[s.values[i] % env.size()]; };
  switch (s.kind) {
    case Statement::arithmetic: {
      const Tensor a = value(0), b = value(1);
      env.push_back(s.choice % 4 == 0   ? small(a + b)
                    : s.choice % 4 == 1 ? small(a * b)
                    : s.choice % 4 == 2 ? a - b
                                        : eager::relu(a));
      break;
    }
    case Statement::view:
      env.push_back(s.choice % 3 == 0   ? value(0).t()
                    : s.choice % 3 == 1 ? value(0).reshape({4}).reshape({2, 2})
                                        : value(0).select(0, 1).expand({2, 2}));
      break;
    case Statement::write: {
      Tensor own = value(0).clone();
      own.select(0, s.choice % 2).copy_(value(1).select(1, 0));
      env.push_back(own);
      break;
    }
    case Statement::branch: {
      const Tensor pred = eager::remainder(sum(value(0)), 2).to(DType::boolean);
      const bool closes = s.choice % 2 == 0;  // over everything, instead of getting operands
      const Tensors operands = closes ? Tensors{} : Tensors{value(1), value(2)};
      const auto side = [&](const Block& b) {
        return [&, closes](const Tensors& in) {
          Tensors results = run(b, closes ? env : in);
          if (closes)  // they may be tensors from outside
            for (Tensor& t : results) t = t.clone();
          return results;
        };
      };
      for (const Tensor& t : cond(pred, side(*s.first), side(*s.second), operands))
        env.push_back(t);
      break;
    }
    case Statement::loop: {
      // rounds: as many as value(0) says, up to 3; some of what is carried does not change
      const size_t carries = s.first->results.size();
      Tensors carried{eager::remainder(sum(value(0)), 4)};
      for (size_t i = 0; i < carries; ++i) carried.push_back(value(i).clone());
      const Tensors before = s.choice % 2 == 0 ? env : Tensors{};
      const auto round = [&](const Tensors& in) {
        Tensors inside = before;
        inside.insert(inside.end(), in.begin() + 1, in.end());
        Tensors next{in[0] - 1};
        for (const Tensor& t : run(*s.first, inside))
          next.push_back(before.empty() ? t : t.clone());
        return next;
      };
      const Tensors last = while_loop([](const Tensors& in) { return in[0] > 0; }, round, carried);
      env.insert(env.end(), last.begin() + 1, last.end());
      break;
    }
  }
}

Tensors run(const Block& block, Tensors env) {
  for (const Statement& s : block.statements) run(s, env);
  Tensors results;
  for (const size_t i : block.results) results.push_back(env[env.size() - 1 - i % env.size()]);
  return results;
}

std::vector<Tensors> random_calls(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensors> calls(4);
  for (Tensors& in : calls)
    for (int i = 0; i < 2; ++i) {
      std::vector<int64_t> elements;
      for (int e = 0; e < 4; ++e) elements.push_back(static_cast<int64_t>(random() % 20));
      in.push_back(Tensor::from(elements, {2, 2}));
    }
  return calls;
}

TEST(control_flow, runs_like_eager_in_random_programs) {
  for (unsigned seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Block block = Generator(seed).block(3, 3);
    expect_runs_like_eager([&](const Tensors& in) { return run(block, in); }, random_calls(seed));
  }
}

TEST(control_flow, keeps_states_like_eager_in_random_programs) {
  for (unsigned seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Block block = Generator(seed).block(3, 4);
    Tensors states{eager::full({2, 2}, 3, DType::i64), eager::full({2, 2}, 5, DType::i64)};
    states[0].set_name("a"), states[1].set_name("b");
    const auto step = [&](const Tensors& in) {
      Tensors out = run(block, {in[0], states[0], in[1], states[1]});
      out[1] = out[1].clone();  // it may be the state that is written first
      states[0].copy_(out[0]), states[1].copy_(out[1]);
      return Tensors{out[2], out[3]};
    };
    Exporter exporter;
    exporter.method("step", step, {input("x", {2, 2}, DType::i64), input("y", {2, 2}, DType::i64)});
    emit::Loaded program(exporter.write(ExportOptions{}), "step");
    for (const Tensors& in : random_calls(seed)) {
      EXPECT_EQ(text(program.run(in)), text(step(in)));
      for (const Tensor& state : states)
        if (exporter.graph("step").find_state(state.name()) != nullptr) {
          EXPECT_EQ(program.state(state.name()).to_string(), state.to_string());
        }
    }
  }
}

}  // namespace
}  // namespace taper
