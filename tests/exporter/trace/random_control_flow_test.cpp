// Branches and loops in random programs: in eager and on the runtime they give the same bits.
#include <random>

#include "taper/exporter/eager/recorder.h"
#include "taper/tests/exporter/trace/runs_like_eager.h"

namespace taper {
namespace {

/// A program as a tree of statements over tensors of i64 with two columns, so that results are
/// exact and the same program can run in eager and be traced, and over booleans. Every statement
/// adds one or more values.
struct Block;
struct Statement {
  enum Kind { arithmetic, view, part, write, truth, element, branch, loop, scan } kind;
  unsigned choice = 0;
  std::vector<size_t>
      values;  ///< which values it uses, the newest first, modulo how many there are
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
    const unsigned count = pick(5);
    for (unsigned i = 0; i < count; ++i) b.statements.push_back(statement(depth));
    for (size_t i = 0; i < results; ++i) b.results.push_back(any());
    return b;
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_()) % n; }
  /// New values more often than old ones.
  size_t any() { return pick(2) == 0 ? pick(3) : pick(1000); }

  Statement statement(int depth) {
    constexpr Statement::Kind kinds[] = {
        Statement::arithmetic, Statement::arithmetic, Statement::arithmetic, Statement::view,
        Statement::part,       Statement::write,      Statement::truth,      Statement::element,
        Statement::branch,     Statement::branch,     Statement::branch,     Statement::loop,
        Statement::loop,       Statement::loop,       Statement::scan};
    constexpr unsigned simple = 8;
    Statement s;
    s.kind = kinds[pick(depth > 0 ? std::size(kinds) : simple)];
    s.choice = pick(1000);
    for (int i = 0; i < 3; ++i) s.values.push_back(any());
    if (s.kind >= Statement::branch) {
      const size_t results = 1 + pick(3);
      s.first = std::make_shared<Block>(block(depth - 1, results));
      s.second = std::make_shared<Block>(block(depth - 1, results));
    }
    return s;
  }
  std::mt19937 random_;
};

/// What a statement can use.
struct Values {
  Tensors numbers, truths;
};
Tensor newest(const Tensors& list, size_t i) { return list[list.size() - 1 - i % list.size()]; }

Values run(const Block& block, Values values);

/// The results of a block, and one boolean if there are any.
Tensors results_of(const Block& block, const Values& start) {
  const Values values = run(block, start);
  Tensors results;
  for (const size_t i : block.results) results.push_back(newest(values.numbers, i));
  if (!values.truths.empty()) results.push_back(newest(values.truths, block.results[0]));
  return results;
}
Tensors clones(Tensors tensors) {
  for (Tensor& t : tensors) t = t.clone();
  return tensors;
}
void add(Values& values, const Tensors& results) {
  values.numbers.insert(values.numbers.end(), results.begin(), results.end() - 1);
  values.truths.push_back(results.back());
}

Tensor small(const Tensor& t) { return eager::remainder(t, 97); }

class Runner {
 public:
  Runner(const Statement& statement, Values& values) : s_(statement), values_(values) {}

  void run() {
    switch (s_.kind) {
      case Statement::arithmetic:
        return add(arithmetic(number(0), number(1)));
      case Statement::view:
        return add(view(number(0)));
      case Statement::part:
        return add(part(number(0), number(1)));
      case Statement::write:
        return add(write(number(0), number(1)));
      case Statement::truth:
        return values_.truths.push_back(truth());
      case Statement::element:
        return add(element(number(0), number(1)));
      case Statement::branch:
        return taper::add(values_, branch());
      case Statement::loop:
        return taper::add(values_, loop());
      case Statement::scan: {
        const Scanned all = scan();
        return add(all.carried[0]), add(all.results[0]);
      }
    }
  }

 private:
  void add(const Tensor& t) { values_.numbers.push_back(t); }
  Tensor number(size_t i) const { return newest(values_.numbers, s_.values[i]); }
  Tensor truth(size_t i) const { return newest(values_.truths, s_.values[i]); }

  Tensor arithmetic(const Tensor& a, const Tensor& b) const {
    switch (s_.choice % 4) {
      case 0:
        return small(a + b);
      case 1:
        return small(a * b);
      case 2:
        return a - b;
      default:
        return eager::relu(a);
    }
  }

  Tensor view(const Tensor& a) const {
    const Dim rows = a.size(0);
    switch (s_.choice % 4) {
      case 0:
        return eager::flip(a, {0});
      case 1:
        return a.reshape({rows * 2}).reshape({rows, 2});
      case 2:
        return a.select(0, 0).expand({rows, 2});
      default:
        return a.select(1, 1).unsqueeze(1).expand({rows, 2});
    }
  }

  /// The beginning, the end, or every second row or column of something larger.
  Tensor part(const Tensor& a, const Tensor& b) const {
    const int64_t dim = s_.choice % 2;
    const Tensor both = eager::cat({a, b}, dim);
    const Dim length = a.size(dim);
    switch (s_.choice / 2 % 3) {
      case 0:
        return both.slice(dim, 0, length);
      case 1:
        return both.slice(dim, length, length * 2);
      default:
        return both.slice(dim, 0, length * 2, 2);
    }
  }

  Tensor write(const Tensor& a, const Tensor& b) const {
    Tensor own = s_.choice % 3 == 0 ? a + 1 : a.clone();
    own.select(0, s_.choice % 2).copy_(b.select(0, 1));
    return own;
  }

  Tensor truth() const {
    switch (s_.choice % 4) {
      case 0:
        return eager::logical_not(truth(0));
      case 1:
        return eager::logical_and(truth(0), truth(1));
      default:
        return eager::remainder(sum(number(0)), 3) > 0;
    }
  }

  /// A number that a run finds in a tensor, as a size.
  Tensor element(const Tensor& a, const Tensor& b) const {
    const Tensor at = eager::remainder(a.select(0, 0).select(0, s_.choice % 2), 3);
    const Dim count = eager::element_as_dim(at, 0, 2, Location::current());
    switch (s_.choice / 2 % 3) {
      case 0:
        return small(a + sum(b.slice(0, 0, count)));
      case 1:
        return small(a + sum(full({count, 2}, 3, DType::i64)));
      default:
        return small(b + eager::dim_as_tensor(count, DType::i64, Location::current()));
    }
  }

  Tensors branch() const {
    const Tensor pred =
        s_.choice % 3 == 0 ? eager::remainder(sum(number(0)), 2).to(DType::boolean) : truth(0);
    const bool closes = s_.choice % 2 == 0;  // over everything, instead of getting operands
    const auto side = [&](const Block& block) {
      return [&, closes](const Tensors& in) {
        if (!closes) return results_of(block, {{in[0], in[1]}, {in[2]}});
        return clones(results_of(block, values_));  // they may be tensors from outside
      };
    };
    const Tensors operands = closes ? Tensors{} : Tensors{number(1), number(2), truth(1)};
    return cond(pred, side(*s_.first), side(*s_.second), operands);
  }

  /// Up to 3 rounds. What is carried may be one tensor several times, or may not change.
  Tensors loop() const {
    Tensors carried{eager::remainder(sum(number(0)), 4)};
    for (size_t i = 0; i < s_.first->results.size(); ++i)
      carried.push_back(number(s_.choice % 5 == 0 ? 0 : i));
    carried.push_back(truth(0));
    const bool closes = s_.choice % 2 == 0, may_stop = s_.choice % 7 == 0;
    const auto round = [&](const Tensors& in) {
      Values inside = closes ? values_ : Values{};
      taper::add(inside, {in.begin() + 1, in.end()});
      const Tensors results = results_of(*s_.first, inside);
      Tensors next{in[0] - 1};
      for (const Tensor& t : closes ? clones(results) : results) next.push_back(t);
      return next;
    };
    const auto goes_on = [&](const Tensors& in) {
      return may_stop ? eager::logical_and(in[0] > 0, in.back()) : in[0] > 0;
    };
    const Tensors last = while_loop(goes_on, round, carried);
    return {last.begin() + 1, last.end()};
  }

  Scanned scan() const {
    const auto step = [&](const Tensors& carried, const Tensors& slices) {
      Values inside = s_.choice % 2 == 0 ? values_ : Values{{}, values_.truths};
      inside.numbers.push_back(carried[0]);
      inside.numbers.push_back(slices[0].unsqueeze(0).expand(carried[0].sizes()));
      const Tensors results = results_of(*s_.first, inside);
      return Scanned{{results[0].clone()}, {results[0].select(0, 0).clone()}};
    };
    return eager::scan(step, {number(0)}, {number(1)}, s_.choice % 3 == 0);
  }

  const Statement& s_;
  Values& values_;
};

Values run(const Block& block, Values values) {
  for (const Statement& s : block.statements) Runner(s, values).run();
  return values;
}

Tensor is_large(const Tensor& t) { return t.select(0, 0).select(0, 0) > 9; }

std::vector<Tensors> random_calls(unsigned seed, const std::vector<int64_t>& rows) {
  std::mt19937 random(seed);
  std::vector<Tensors> calls;
  for (const int64_t n : rows) {
    Tensors& in = calls.emplace_back();
    for (int i = 0; i < 2; ++i) {
      std::vector<int64_t> elements;
      for (int e = 0; e < 2 * n; ++e) elements.push_back(static_cast<int64_t>(random() % 20));
      in.push_back(Tensor::from(elements, {n, 2}));
    }
  }
  return calls;
}

constexpr unsigned seeds = 100;

void expect_like_eager_with(const Dim& rows, const std::vector<int64_t>& in_calls) {
  const std::vector<InputSpec> specs{input("x", {rows, 2}, DType::i64),
                                     input("y", {rows, 2}, DType::i64)};
  for (unsigned seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Block block = Generator(seed).block(3, 3);
    expect_runs_like_eager(
        [&](const Tensors& in) {
          return results_of(block, {in, {is_large(in[0])}});
        },
        specs, random_calls(seed, in_calls));
  }
}

TEST(control_flow, runs_like_eager_in_random_programs) { expect_like_eager_with(2, {2, 2, 2, 2}); }

TEST(control_flow, runs_like_eager_in_random_programs_of_any_size) {
  expect_like_eager_with(Dim::symbol("n", 2, 5), {5, 2, 4, 3});
}

TEST(control_flow, keeps_states_like_eager_in_random_programs) {
  for (unsigned seed = 0; seed < seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Block block = Generator(seed).block(3, 4);
    Tensors states{full({2, 2}, 3, DType::i64), full({2, 2}, 5, DType::i64),
                   ones({}).to(DType::boolean)};
    states[0].set_name("a"), states[1].set_name("b"), states[2].set_name("t");
    const auto step = [&](const Tensors& in) {
      const Values start{{in[0], states[0], in[1], states[1]}, {is_large(in[0]), states[2]}};
      // they may be states, which are written now
      const Tensors out = clones(results_of(block, start));
      states[0].copy_(out[0]), states[1].copy_(out[1]), states[2].copy_(out[4]);
      return Tensors{out[2], out[3]};
    };
    Exporter exporter;
    exporter.method("step", step, {input("x", {2, 2}, DType::i64), input("y", {2, 2}, DType::i64)});
    emit::Loaded program(exporter.write(ExportOptions{}), "step");
    for (const Tensors& in : random_calls(seed, {2, 2, 2, 2})) {
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
