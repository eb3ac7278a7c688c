// Views and writes in place in random programs: in eager, as graphs and on the runtime they give
// what plain index arithmetic gives.
#include "taper/tests/exporter/trace/plain_views.h"
#include "taper/tests/exporter/trace/runs_like_eager.h"

namespace taper {
namespace {

using plain::Array;
using plain::Ints;
using plain::Step;

constexpr unsigned seeds = 80;
constexpr int length = 16;
const std::vector<Ints> shapes = {{3, 4}, {2, 3, 3}, {6}, {2, 2, 1, 3}};

template <class T>
Array<T> random_array(const Ints& sizes, std::mt19937& random) {
  std::vector<T> elements(static_cast<size_t>(plain::count(sizes)));
  for (T& e : elements) e = static_cast<T>(random() % 19) - 9;
  return Array<T>::of(elements, sizes);
}
template <class T>
std::vector<Array<T>> random_arrays(unsigned seed, const Ints& last = {}) {
  std::mt19937 random(seed);
  std::vector<Array<T>> arrays;
  for (Ints sizes : shapes) {
    sizes.insert(sizes.end(), last.begin(), last.end());
    arrays.push_back(random_array<T>(sizes, random));
  }
  return arrays;
}
template <class T>
Tensor tensor_of(const Array<T>& a) {
  return Tensor::from(a.elements(), a.sizes);
}
template <class T>
Tensors tensors_of(const std::vector<Array<T>>& arrays) {
  Tensors list;
  for (const Array<T>& a : arrays) list.push_back(tensor_of(a));
  return list;
}

eager::Dims dims(const Ints& numbers) { return {numbers.begin(), numbers.end()}; }

/// The same step on tensors. With `last`, the step has a last dimension of that size.
void run(const Step& step, Tensors& values, const Dim* last = nullptr) {
  const Step s = last == nullptr ? step : plain::with_last_dimension(step, 1);
  const auto sizes = [&] {
    eager::Dims list = dims(s.numbers);
    if (last != nullptr) list.back() = *last;
    return list;
  };
  Tensor self = values[s.self];
  const Tensor other = values[s.other];
  const Ints& n = s.numbers;
  switch (s.kind) {
    case Step::select:
      return values.push_back(self.select(n[0], n[1]));
    case Step::slice:
      return values.push_back(self.slice(n[0], n[1], n[2], n[3]));
    case Step::permute:
      return values.push_back(self.permute(n));
    case Step::expand:
      return values.push_back(self.expand(sizes()));
    case Step::reshape:
      return values.push_back(self.reshape(sizes()));
    case Step::unsqueeze:
      return values.push_back(self.unsqueeze(n[0]));
    case Step::squeeze:
      return values.push_back(self.squeeze(n[0]));
    case Step::diagonal:
      return values.push_back(eager::diagonal(self, n[0], n[1], n[2]));
    case Step::split:
      for (const Tensor& piece : eager::split(self, n[0], n[1])) values.push_back(piece);
      return;
    case Step::contiguous:
      return values.push_back(self.contiguous());
    case Step::plus_number:
      return values.push_back(self + Scalar(n[0]));
    case Step::copy_:
      self.copy_(other);
      return;
    case Step::add_:
      self.add_(other, n[0]);
      return;
    case Step::mul_:
      self.mul_(other);
      return;
    case Step::mul_number_:
      self.mul_(Scalar(n[0]));
      return;
    case Step::fill_:
      self.fill_(n[0]);
      return;
    case Step::index_put_: {
      const Ints places(n.begin() + 2, n.end());
      Tensors indices(static_cast<size_t>(n[1]));
      indices.push_back(Tensor::from(places, {static_cast<int64_t>(places.size())}));
      eager::index_put_(self, indices, other, n[0] != 0);
      return;
    }
  }
}

std::string listing(const std::vector<Step>& program) {
  std::string s;
  for (const Step& step : program) {
    s += "kind " + std::to_string(step.kind) + " self " + std::to_string(step.self) + " other " +
         std::to_string(step.other) + " numbers";
    for (const int64_t n : step.numbers) s += " " + std::to_string(n);
    s += "\n";
  }
  return s;
}

/// What has been seen in all programs: the property means little without it.
struct Seen {
  int writes = 0, overlapping = 0;
};

/// Runs one random program in eager, traced, on the runtime, and in index arithmetic. With `n`
/// every value has a last dimension of that symbol.
template <class T>
void expect_plain_results(unsigned seed, const Dim* n, Seen& seen) {
  plain::Generator generator(seed, random_arrays<int64_t>(seed), /*diagonals=*/n == nullptr);
  const std::vector<Step> program = generator.program(length);
  const std::vector<size_t> results = generator.some_values();
  seen.writes += generator.writes, seen.overlapping += generator.overlapping;
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + listing(program));

  const auto function = [&](const Tensors& in) {
    Tensors values, out;
    for (const Tensor& t : in) values.push_back(t.clone());
    const Dim last = in[0].size(-1);
    for (const Step& s : program) run(s, values, n == nullptr ? nullptr : &last);
    for (const size_t i : results) out.push_back(values[i]);
    return out;
  };
  std::vector<InputSpec> specs;
  for (const Ints& sizes : shapes) {
    specs.push_back(input("in" + std::to_string(specs.size()), dims(sizes), dtypes_of<T>::dtype));
    if (n != nullptr) specs.back().sizes.push_back(*n);
  }
  std::vector<Tensors> calls;
  for (const int64_t last : {3, 1, 5}) {
    const auto arrays = random_arrays<T>(seed, n == nullptr ? Ints{} : Ints{last});
    calls.push_back(tensors_of(arrays));
    plain::Interpreter<T> interpreter(arrays);
    for (const Step& s : program)
      interpreter.run(n == nullptr ? s : plain::with_last_dimension(s, last));
    Tensors want;
    for (const size_t i : results) want.push_back(tensor_of(interpreter.values()[i]));
    ASSERT_EQ(text(function(calls.back())), text(want));
    if (n == nullptr) break;
  }
  EXPECT_NO_THROW(expect_runs_like_eager(function, specs, calls));
}

void expect_plain_results(const Dim* n) {
  Seen seen;
  for (unsigned seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    if (seed % 2 == 0)
      expect_plain_results<int64_t>(seed, n, seen);
    else
      expect_plain_results<float>(seed, n, seen);
  }
  EXPECT_GT(seen.writes, 300);
  EXPECT_GT(seen.overlapping, 60);
}

TEST(views_and_writes, give_in_random_programs_what_index_arithmetic_gives) {
  expect_plain_results(nullptr);
}

TEST(views_and_writes, give_the_same_at_every_value_of_a_symbol) {
  const Dim n = Dim::symbol("n", 1, 5);
  expect_plain_results(&n);
}

// Two states and views of them that were made before the trace.
TEST(views_and_writes, of_states_are_kept_between_calls) {
  for (unsigned seed = 0; seed < seeds && !HasFailure(); ++seed) {
    auto arrays = random_arrays<float>(seed);
    Tensors values = tensors_of(arrays);
    values[0].set_name("a"), values[1].set_name("b");
    plain::Interpreter<float> before(arrays);
    for (const Step& s : {Step{Step::permute, 0, 0, {1, 0}}, Step{Step::slice, 1, 1, {1, 1, 3, 1}}})
      before.run(s), run(s, values);
    plain::Generator generator(seed, [&] {
      plain::Interpreter<int64_t> model(random_arrays<int64_t>(seed));
      model.run({Step::permute, 0, 0, {1, 0}});
      model.run({Step::slice, 1, 1, {1, 1, 3, 1}});
      return model.values();
    }());
    const std::vector<Step> program = generator.program(length);
    const std::vector<size_t> results = generator.some_values();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + listing(program));

    const auto step = [&](const Tensors& in) {
      Tensors all = values, out;
      all[2] = in[0].clone(), all[3] = in[1].clone();
      for (const Step& s : program) run(s, all);
      for (const size_t i : results) out.push_back(all[i].clone());
      return out;
    };
    Exporter exporter;
    exporter.method("step", step, {input("x", dims(shapes[2])), input("y", dims(shapes[3]))});
    emit::Loaded loaded(exporter.write(ExportOptions{}), "step");
    for (unsigned call = 0; call < 3; ++call) {
      auto now = before.values();
      const auto inputs = random_arrays<float>(seed + 1000 * call);
      now[2] = inputs[2], now[3] = inputs[3];
      const Tensors in{tensor_of(now[2]), tensor_of(now[3])};
      plain::Interpreter<float> interpreter(now);
      for (const Step& s : program) interpreter.run(s);
      Tensors want;
      for (const size_t i : results) want.push_back(tensor_of(interpreter.values()[i]));
      ASSERT_EQ(text(step(in)), text(want));
      ASSERT_EQ(text(loaded.run(in)), text(want));
      for (size_t i = 0; i < 2; ++i) {
        const Tensor state = tensor_of(before.values()[i]);
        EXPECT_EQ(values[i].to_string(), state.to_string());
        if (exporter.graph("step").find_state(values[i].name()) != nullptr) {
          EXPECT_EQ(loaded.state(values[i].name()).to_string(), state.to_string());
        }
      }
    }
  }
}

}  // namespace
}  // namespace taper
