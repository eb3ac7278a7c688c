#include "taper/exporter/emit/emit.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <random>
#include <sstream>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/emit/loaded.h"
#include "taper/tests/support/throw_message.h"

namespace taper::emit {
namespace {

using eager::Tensor;

EmitOptions options() {
  EmitOptions o;
  o.exact = true;
  return o;
}

Tensor random_tensor(const std::vector<int64_t>& sizes, unsigned seed) {
  std::mt19937 random(seed);
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  std::vector<float> elements(static_cast<size_t>(n));
  for (float& e : elements) e = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 256;
  return Tensor::from(elements, sizes);
}

void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(eager::to_string(a.sizes()), eager::to_string(b.sizes()));
  const auto bits = [](float element) { return std::bit_cast<uint32_t>(element); };
  EXPECT_TRUE(std::ranges::equal(a.to_vector<float>(), b.to_vector<float>(), {}, bits, bits))
      << a << "\n"
      << b;
}

/// Writes the graph, runs it on the runtime, and compares outputs and states with eager's, bit for
/// bit.
MethodReport expect_runs_like_eager(const std::string& text,
                                    const std::vector<std::vector<Tensor>>& calls,
                                    const ir::Payloads& payloads = {}) {
  const auto reference = ir::parse(text, payloads), graph = ir::parse(text, payloads);
  ir::verify(*graph);
  Report report;
  const auto file = write({{"forward", graph.get()}}, options(), report);
  ir::verify(*graph, "emit");
  Loaded program(file, "forward");
  ir::Interpreter interpreter(*reference);
  for (const auto& inputs : calls) {
    const auto expected = interpreter.run(inputs);
    const auto actual = program.run(inputs);
    EXPECT_EQ(actual.size(), expected.outputs.size());
    for (size_t i = 0; i < actual.size(); ++i)
      if (expected.outputs[i].defined()) expect_same_bits(actual[i], expected.outputs[i]);
    for (const auto& [path, tensor] : expected.written_states) {
      expect_same_bits(program.state(path), tensor);
      interpreter.set_state(path, tensor.clone());
    }
  }
  EXPECT_GE(report.methods[0].activation_bytes, report.methods[0].lower_bound_bytes);
  return report.methods[0];
}

TEST(emit, writes_a_program_that_runs_at_every_size_with_eagers_bits) {
  const auto w = ir::Payload::from<float>({1, 2, 3, 4}, {4});
  const MethodReport report = expect_runs_like_eager(
      "graph forward\nsymbol batch in [1, 8]\ninput \"x\" = %x: f32[batch, 4]\nconstant \"w\" = "
      "%w: f32[4] " +
          ir::digest(*w) +
          "\n%a: f32[batch, 4] = add.Tensor(%x, %w, 1)\n%y: f32[batch, 4] = _softmax(%a, -1, "
          "false)\noutput \"y\" = %y\noutput \"n\" = batch*4\n"
          "bind batch = extent 0 of input 0\n",
      {{random_tensor({3, 4}, 1)}, {random_tensor({8, 4}, 2)}, {random_tensor({1, 4}, 3)}},
      {{ir::digest(*w), w}});
  EXPECT_EQ(report.instructions, 2);
  EXPECT_EQ(report.inputs[0], "x: f32[batch, 4]");
}

TEST(emit, plans_for_sizes_that_are_largest_where_a_symbol_is_smallest) {
  const auto w = ir::Payload::from<float>(std::vector<float>(4096, 0.5f), {4096});
  const MethodReport report = expect_runs_like_eager(
      "graph forward\nsymbol n in [1, 4000]\ninput \"x\" = %x: f32[n]\nconstant \"w\" = %w: "
      "f32[4096] " +
          ir::digest(*w) +
          "\n%s: f32[-n + 4096] offset n = slice.Tensor(%w, 0, n, 4096, 1)\n"
          "%e: f32[-n + 4096] = exp(%s)\n%y: f32[] = sum.dim_IntList(%e, [0], false, none)\n"
          "output \"y\" = %y\nbind n = extent 0 of input 0\n",
      {{random_tensor({1}, 1)}, {random_tensor({4000}, 2)}, {random_tensor({7}, 3)}},
      {{ir::digest(*w), w}});
  EXPECT_GE(report.activation_bytes, 4095 * 4);
}

// a and b may each be 16, and a*b is at most 16: a size of 16 - a*b would be -240 at their maxima.
TEST(emit, plans_for_what_checks_leave_of_a_product) {
  const std::string begin =
                        "graph forward\nsymbol a in [1, 16]\nsymbol b in [1, 16]\n"
                        "input \"x\" = %x: f32[a, b]\n",
                    end =
                        "%e: f32[a, b] = exp(%x)\n%f: f32[a, b] = sin(%e)\n"
                        "%r: f32[-a*b + 16] = full([-a*b + 16], 2, f32)\n"
                        "%s: f32[-a*b + 16] = exp(%r)\n"
                        "output \"y\" = %f\noutput \"rest\" = %s\n"
                        "bind a = extent 0 of input 0\nbind b = extent 1 of input 0\n";
  const std::string check = "check a*b <= 16 \"at most 16\"\n";
  const MethodReport report = expect_runs_like_eager(
      begin + end + check,
      {{random_tensor({3, 4}, 1)}, {random_tensor({16, 1}, 2)}, {random_tensor({1, 16}, 3)}});
  EXPECT_LE(report.activation_bytes, 4 * 64);
  const MethodReport wide = expect_runs_like_eager(begin + end + "check a*b <= 12 \"at most 12\"\n",
                                                   {{random_tensor({12, 1}, 1)}});
  EXPECT_EQ(wide.symbols[0].maximum, 12);  // b is at least 1
  const MethodReport below = expect_runs_like_eager(begin + end + "check a*b < 12 \"below 12\"\n",
                                                    {{random_tensor({11, 1}, 1)}});
  EXPECT_EQ(below.symbols[0].maximum, 11);
}

TEST(emit, makes_views_values_and_inserts_copies_only_where_kernels_need_them) {
  const MethodReport report = expect_runs_like_eager(
      "graph forward\nsymbol n in [1, 6]\ninput \"x\" = %x: f32[n, 4]\n%p: f32[4, n] strides [1, "
      "4] = permute(%x, [1, 0])\n"
      "%s: f32[2, n] strides [1, 4] offset 2 = slice.Tensor(%p, 0, 2, 4, 1)\n%r: f32[2, n] = "
      "relu(%s)\n"
      "%q: f32[n, 2] strides [1, n] = permute(%r, [1, 0])\noutput \"y\" = %q\nbind n = extent 0 of "
      "input 0\n",
      {{random_tensor({5, 4}, 1)}, {random_tensor({6, 4}, 2)}});
  EXPECT_EQ(report.views, 3);
  EXPECT_EQ(report.clones, 1) << "relu takes any strides, an output is dense";
}

TEST(emit, writes_a_state_in_place_where_nobody_reads_the_old_value) {
  const MethodReport report = expect_runs_like_eager(
      "graph forward\ninput \"x\" = %x: f32[4]\nstate \"s\" = %s: f32[4] buffer zeros\n%y: f32[4] "
      "= add.Tensor(%s, %x, 1)\n"
      "output \"y\" = %y\nwrite \"s\" = %y\n",
      {{random_tensor({4}, 1)}, {random_tensor({4}, 2)}, {random_tensor({4}, 3)}});
  EXPECT_EQ(report.states_in_place, 1);
  EXPECT_EQ(report.activation_bytes, 0);
}

TEST(emit, keeps_the_old_value_of_a_state_as_long_as_somebody_reads_it) {
  const MethodReport report = expect_runs_like_eager(
      "graph forward\ninput \"x\" = %x: f32[4]\nstate \"s\" = %s: f32[4] buffer zeros\n%new: "
      "f32[4] = add.Tensor(%s, %x, 1)\n"
      "%old: f32[4] = mul.Scalar(%s, 2)\noutput \"y\" = %old\nwrite \"s\" = %new\n",
      {{random_tensor({4}, 1)}, {random_tensor({4}, 2)}});
  EXPECT_EQ(report.states_copied, 1);
}

TEST(emit, swaps_two_states_and_shows_the_old_one) {
  const auto a = ir::Payload::from<float>({1, 2}, {2}), b = ir::Payload::from<float>({3, 4}, {2});
  expect_runs_like_eager("graph forward\nstate \"a\" = %a: f32[2] buffer " + ir::digest(*a) +
                             "\nstate \"b\" = %b: f32[2] buffer " + ir::digest(*b) +
                             "\noutput \"old\" = %a\nwrite \"a\" = %b\nwrite \"b\" = %a\n",
                         {{}, {}, {}}, {{ir::digest(*a), a}, {ir::digest(*b), b}});
}

TEST(emit, lets_an_input_or_a_constant_be_an_output) {
  const auto w = ir::Payload::from<float>({1, 2}, {2});
  expect_runs_like_eager("graph forward\ninput \"x\" = %x: f32[2]\nconstant \"w\" = %w: f32[2] " +
                             ir::digest(*w) + "\noutput \"x\" = %x\noutput \"w\" = %w\n",
                         {{random_tensor({2}, 1)}}, {{ir::digest(*w), w}});
}

TEST(emit, reuses_the_memory_of_a_chain) {
  std::string text = "graph forward\nsymbol n in [1, 100]\ninput \"x\" = %x0: f32[n, 64]\n";
  for (int i = 0; i < 10; ++i)
    text += "%x" + std::to_string(i + 1) + ": f32[n, 64] = neg(%x" + std::to_string(i) + ")\n";
  const MethodReport report = expect_runs_like_eager(
      text + "output \"y\" = %x10\nbind n = extent 0 of input 0\n", {{random_tensor({7, 64}, 1)}});
  EXPECT_EQ(report.activation_bytes, 0)
      << "every result overwrites its argument, the last one in the output's memory";
  EXPECT_EQ(report.reused_buffers, 9);
}

// The sum is as large as %e, whose first row is read for each row of the sum.
TEST(emit, does_not_overwrite_a_row_that_every_row_reads) {
  const MethodReport report = expect_runs_like_eager(
      "graph forward\ninput \"x\" = %x: f32[3, 4]\ninput \"y\" = %y: f32[3, 4]\n"
      "%e: f32[3, 4] = exp(%x)\n%r: f32[1, 4] = slice.Tensor(%e, 0, 0, 1, 1)\n"
      "%s: f32[3, 4] = add.Tensor(%r, %y, 1)\noutput \"s\" = %s\n",
      {{random_tensor({3, 4}, 1), random_tensor({3, 4}, 2)}});
  EXPECT_EQ(report.reused_buffers, 0);
}

/// Constants of random elements, and the lines that declare them.
struct Weights {
  ir::Payloads payloads;
  std::string lines;
  void add(const std::string& name, const std::vector<int64_t>& sizes) {
    const Tensor t = random_tensor(sizes, static_cast<unsigned>(payloads.size()) + 7);
    const auto payload = ir::Payload::from<float>(t.to_vector<float>(), sizes);
    std::string shape;
    for (const int64_t size : sizes) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    payloads[ir::digest(*payload)] = payload;
    lines += "constant \"" + name + "\" = %" + name + ": f32[" + shape + "] " +
             ir::digest(*payload) + "\n";
  }
};

/// Four convolutions of one image with channels last, of 5, 17, 16 and 3 channels, in this order:
/// bounds in registers, a program that reads %x, a depthwise one, and Winograd's.
std::string four_convolutions(Weights& w) {
  w.add("a", {5, 16, 3, 3}), w.add("ab", {5}), w.add("b", {17, 16, 1, 1}),
      w.add("c", {16, 1, 3, 3});
  w.add("d", {3, 16, 3, 3}), w.add("e", {8, 41, 1, 1}), w.add("f", {4, 5, 1, 1});
  const auto convolution = [](const std::string& weight, const std::string& bias, int padding,
                              int groups, const std::string& rest) {
    const std::string pad = std::to_string(padding);
    return "taper::convolution(%x, %" + weight + ", " + bias + ", [1, 1], [" + pad + ", " + pad +
           "], [1, 1], " + std::to_string(groups) + ", " + rest + ")\n";
  };
  return "graph forward\nsymbol n in [1, 3]\ninput \"x\" = %x: f32[n, 7, 6, 16]\n" + w.lines +
         "%p: f32[n, 7, 6, 5] = " + convolution("a", "%ab", 1, 1, "[], [8, 0, 0, 0, 0], []") +
         "%q: f32[n, 7, 6, 17] = " + convolution("b", "none", 0, 1, "[], [21, 0, 0, 0, 0], []") +
         "%r: f32[n, 7, 6, 16] = " +
         convolution("c", "none", 1, 16, "[%x], [0, 0, 0, 1, 0, 17, 0, 2, 0, 0], []") +
         "%s: f32[n, 7, 6, 3] = taper::winograd_convolution(%x, %d, none, [1, 1], [], [], [])\n";
}
constexpr char product_of_all[] =
    "%y: f32[n, 7, 6, 8] = taper::convolution(%all, %e, none, [1, 1], [0, 0], [1, 1], 1, [], [], "
    "[])\noutput \"y\" = %y\nbind n = extent 0 of input 0\n";

TEST(emit, lets_convolutions_write_their_channels_beside_each_other) {
  Weights w;
  const std::string text = four_convolutions(w) +
                           "%all: f32[n, 7, 6, 41] = cat([%q, %p, %s, %r], -1)\n" + product_of_all;
  const MethodReport report = expect_runs_like_eager(text,
                                                     {{random_tensor({2, 7, 6, 16}, 1)},
                                                      {random_tensor({3, 7, 6, 16}, 2)},
                                                      {random_tensor({1, 7, 6, 16}, 3)}},
                                                     w.payloads);
  EXPECT_EQ(report.concatenations_in_place, 1);
  EXPECT_EQ(report.instructions, 5) << "the concatenation needs none";
  EXPECT_EQ(report.clones, 0);
}

TEST(emit, copies_what_cannot_lie_in_a_concatenation) {
  const std::string cat = " = cat([%p, %q, %r, %s], 3)\n", all = "%all: f32[n, 7, 6, 41]" + cat;
  const std::string rest = all + product_of_all;
  for (const std::string& lines :
       {"%t: f32[n, 7, 6, 4] = taper::convolution(%p, %f, none, [1, 1], [0, 0], [1, 1], 1, [], [], "
        "[])\noutput \"t\" = %t\n" +
            rest,                      // wants it dense
        "output \"p\" = %p\n" + rest,  // is given to the caller
        "%v: f32[n, 42, 17] = view(%q, [n, 42, 17])\n"
        "%u: f32[n, 42, 17] = relu(%v)\noutput \"u\" = %u\n" +
            rest,  // is seen in another shape
        "%two: f32[n, 7, 6, 41]" + cat + "output \"two\" = %two\n" + rest,  // can lie in one only
        std::string("%two: f32[n, 7, 6, 10] = cat([%p, %p], -1)\noutput \"two\" = %two\n") + rest,
        std::string("%t: f32[n, 7, 6, 5] = neg(%p)\n"  // no kernel for rows
                    "%all: f32[n, 7, 6, 41] = cat([%t, %q, %r, %s], -1)\n") +
            product_of_all}) {
    Weights w;
    const std::string text = four_convolutions(w) + lines;
    const MethodReport report =
        expect_runs_like_eager(text, {{random_tensor({2, 7, 6, 16}, 1)}}, w.payloads);
    const bool has_another = lines.find("%two") != std::string::npos;
    EXPECT_EQ(report.concatenations_in_place, has_another ? 1 : 0) << text;
  }
}

/// A random graph over square matrices, with views, states, outputs in the middle, and dead ends.
std::string random_graph(unsigned seed, bool symbolic) {
  std::mt19937 random(seed);
  const std::string n = symbolic ? "n" : "4", type = "f32[" + n + ", " + n + "]";
  ir::Graph graph("forward");
  const Dim size = symbolic ? Dim::symbol("n", 1, 9) : Dim(4);
  std::vector<ir::Value*> values{graph.add_input("x", ir::dense_type(DType::f32, {size, size})),
                                 graph.add_input("y", ir::dense_type(DType::f32, {size, size}))};
  if (symbolic) graph.bind_symbol({size, ir::SymbolSource::input_extent, 0, 0, nullptr});
  std::vector<ir::State*> states;
  for (int i = 0; i < (symbolic ? 0 : 3); ++i) {
    states.push_back(graph.add_state("s" + std::to_string(i), ir::StateKind::buffer, false,
                                     DType::f32, {4, 4}, nullptr));
    values.push_back(states.back()->value.get());
  }
  const auto any = [&] {
    return values[random() % 3 == 0
                      ? random() % values.size()
                      : values.size() - 1 - random() % std::min<size_t>(values.size(), 4)];
  };
  const int nodes = 3 + static_cast<int>(random() % 25);
  for (int i = 0; i < nodes; ++i) {
    ir::Node* node = nullptr;
    switch (random() % 7) {
      case 0:
        node = ir::append(graph, ops::relu, {any()});
        break;
      case 1:
        node = ir::append(graph, ops::permute, {any(), std::vector<Dim>{1, 0}});
        break;
      case 2:
        node = ir::append(graph, ops::mm, {any(), any()});
        break;
      case 3:
        node = ir::append(graph, ops::tanh, {any()});
        break;
      case 4:
        node = ir::append(graph, ops::mul_Tensor, {any(), any()});
        break;
      default:
        node = ir::append(graph, ops::add_Tensor,
                          {any(), any(), Scalar(static_cast<int>(random() % 2) + 1)});
    }
    values.push_back(node->result());
  }
  for (size_t i = 0; i < 1 + random() % 3; ++i) graph.add_output("out" + std::to_string(i), any());
  for (ir::State* s : states)
    if (random() % 4 != 0) graph.add_write(s, any());
  return ir::to_string(graph);
}

TEST(emit, runs_random_graphs_with_states_like_eager) {
  int in_place = 0, reused = 0;
  for (unsigned seed = 0; seed < 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(random_graph(seed, false));
    std::vector<std::vector<Tensor>> calls;
    for (unsigned c = 0; c < 3; ++c)
      calls.push_back(
          {random_tensor({4, 4}, seed * 7 + c), random_tensor({4, 4}, seed * 7 + c + 3)});
    const MethodReport report = expect_runs_like_eager(random_graph(seed, false), calls);
    in_place += report.states_in_place, reused += report.reused_buffers;
  }
  EXPECT_GT(in_place, 20) << "the property means little if nothing is written in place";
  EXPECT_GT(reused, 50);
}

TEST(emit, runs_random_graphs_of_symbolic_sizes_like_eager) {
  for (unsigned seed = 1000; seed < 1100 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(random_graph(seed, true));
    std::vector<std::vector<Tensor>> calls;
    for (const int64_t n : {3, 9, 1, 5})
      calls.push_back({random_tensor({n, n}, seed), random_tensor({n, n}, seed + 1)});
    expect_runs_like_eager(random_graph(seed, true), calls);
  }
}

TEST(emit, lists_every_operator_without_a_kernel_with_its_place_and_the_remedy) {
  const auto graph = ir::parse(
      "graph forward\ninput \"x\" = %x: f32[4]\n%a: f32[4] = relu(%x)  @ \"src/net.cpp\" 12 "
      "\"forward\" in \"head\"\n%b: f32[4] = exp(%a)\n"
      "%c: f32[4] = exp(%b)\noutput \"y\" = %c\n");
  EmitOptions without_kernels;
  without_kernels.target.kernel_sets.clear();
  Report report;
  EXPECT_THAT(
      [&] {
        write({{"forward", graph.get()}}, without_kernels, report);
      },
      testing::ThrowsMessage<ExportError>(
          testing::AllOf(testing::HasSubstr("forward: 2 operators have no kernel"),
                         testing::HasSubstr("exp(f32) -> f32   2 nodes"),
                         testing::HasSubstr("relu(f32) -> f32   1 node   head   net.cpp:12"),
                         testing::HasSubstr("remedy:"))));
}

TEST(emit, shares_constants_and_states_between_methods) {
  const auto w = ir::Payload::from<float>({1, 2}, {2}),
             same = ir::Payload::from<float>({1, 2}, {2});
  const std::string state = "state \"s\" = %s: f32[2] parameter trainable " + ir::digest(*w) + "\n";
  const auto a = ir::parse("graph a\nconstant \"w\" = %w: f32[2] " + ir::digest(*w) + "\n" + state +
                               "%y: f32[2] = add.Tensor(%w, %s, 1)\noutput \"y\" = %y\n",
                           {{ir::digest(*w), w}});
  const auto b = ir::parse("graph b\nconstant \"v\" = %v: f32[2] " + ir::digest(*w) + "\n" + state +
                               "%y: f32[2] = mul.Tensor(%v, %s)\nwrite \"s\" = %y\n",
                           {{ir::digest(*w), same}});
  Report report;
  write({{"b", b.get()}, {"a", a.get()}}, options(), report);
  EXPECT_EQ(report.constants, 1);
  EXPECT_EQ(report.states, 1);
  EXPECT_EQ(report.methods[0].name, "a");
  std::ostringstream text;
  text << report;
  EXPECT_THAT(text.str(), testing::HasSubstr("2 methods, exact"));
  EXPECT_FALSE(report.kernels.empty());
}

/// Weights whose last panel is not full: %f of a convolution, %l of linear, %m of mm, %n of addmm,
/// which sees it through a view. %d is read as it is, too.
struct Weighted {
  ir::Payloads payloads;
  std::string text;
  std::vector<Tensor> inputs = {random_tensor({2, 3, 6, 5}, 11), random_tensor({7, 24}, 12)};

  Weighted() {
    text =
        "graph forward\ninput \"x\" = %x: f32[2, 3, 6, 5]\ninput \"a\" = %a: f32[7, 24]\n" +
        constant("f", {40, 3, 3, 3}) + constant("l", {40, 24}) + constant("m", {40, 33}) +
        constant("n", {20, 33}) + constant("d", {20, 20}) + constant("b", {20}) +
        "%y: f32[2, 40, 4, 3] = convolution(%x, %f, none, [1, 1], [0, 0], [1, 1], false, [0, 0], "
        "1)\n"
        "%p: f32[7, 40] = linear(%a, %l, none)\n"
        "%q: f32[7, 33] = mm(%p, %m)\n"
        "%t: f32[33, 20] strides [1, 33] = permute(%n, [1, 0])\n"
        "%r: f32[7, 20] = addmm(%b, %q, %t, 1, 1)\n"
        "%s: f32[7, 20] = mm(%r, %d)\n"
        "output \"y\" = %y\noutput \"s\" = %s\noutput \"d\" = %d\n";
  }
  std::string constant(const std::string& name, const std::vector<int64_t>& sizes) {
    const Tensor t = random_tensor(sizes, static_cast<unsigned>(name[0]));
    const auto payload = ir::Payload::from<float>(t.to_vector<float>(), sizes);
    payloads[ir::digest(*payload)] = payload;
    std::string shape;
    for (const int64_t n : sizes) shape += (shape.empty() ? "" : ", ") + std::to_string(n);
    return "constant \"" + name + "\" = %" + name + ": f32[" + shape + "] " + ir::digest(*payload) +
           "\n";
  }
  std::vector<std::byte> write(const Target& target, Report& report, bool dense = false) const {
    const auto graph = ir::parse(text, payloads);
    EmitOptions o = options();
    o.target = target, o.dense = dense;
    return emit::write({{"forward", graph.get()}}, o, report);
  }
};

TEST(emit, stores_weights_as_the_kernels_of_its_target_read_them) {
  const Weighted w;
  Report dense, any, host, portable;
  const auto plain = w.write(Target(), dense, true), packed = w.write(Target(), any);
  w.write(Target("host"), host);
  w.write(Target("portable"), portable);
  EXPECT_EQ(dense.packed_constants, 0);
  EXPECT_EQ(dense.packed_at_load, 4);
  EXPECT_EQ(portable.packed_constants, 0);
  EXPECT_EQ(portable.packed_at_load, 0);
  for (const Report* r : {&any, &host}) {
    EXPECT_EQ(r->packed_constants, 4);
    EXPECT_EQ(r->packed_at_load, 0);
    // across rounded up to 16, times depth: f 48 x 27, l 48 x 24, m 48 x 40, n 32 x 33
    EXPECT_EQ(r->packed_bytes, 4 * (48 * 27 + 48 * 24 + 48 * 40 + 32 * 33));
  }
  std::ostringstream text;
  text << any << dense;
  EXPECT_THAT(text.str(), testing::HasSubstr("4 weights packed, 21.7 kB"));
  EXPECT_THAT(text.str(), testing::HasSubstr("4 weights to pack at load"));

  const auto compare = [&](const std::vector<const Kernel*>& kernels) {
    Loaded dense(plain, "forward", kernels), stored(packed, "forward", kernels);
    const auto expected = dense.run(w.inputs), actual = stored.run(w.inputs);
    ASSERT_EQ(expected.size(), size_t{3});
    ASSERT_EQ(actual.size(), size_t{3});
    for (size_t i = 0; i < actual.size(); ++i) expect_same_bits(actual[i], expected[i]);
  };
  compare(eager::all_kernels());
  // a machine that has none of the target's kernels
  compare(Target("portable").kernels());
}

TEST(emit, refuses_methods_that_disagree_about_a_state) {
  const auto a =
      ir::parse("graph a\nstate \"s\" = %s: f32[2] parameter zeros\noutput \"y\" = %s\n");
  const auto b =
      ir::parse("graph b\nstate \"s\" = %s: f32[3] parameter zeros\noutput \"y\" = %s\n");
  Report report;
  EXPECT_THROW(write({{"a", a.get()}, {"b", b.get()}}, options(), report), ExportError);
}

TEST(emit, refuses_two_methods_of_one_name) {
  const auto graph = ir::parse("graph f\ninput \"x\" = %x: f32[2]\noutput \"y\" = %x\n");
  Report report;
  EXPECT_EXPORT_ERROR(write({{"a", graph.get()}, {"a", graph.get()}}, options(), report),
                      "two methods have the name a");
}

}  // namespace
}  // namespace taper::emit
