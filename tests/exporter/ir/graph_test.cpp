#include "taper/exporter/ir/graph.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/support/throw_message.h"

namespace taper::ir {
namespace {

using testing::ThrowsMessage;

const auto weights = Payload::from<float>({1, 2, 3, 4}, {4});

/// A bit of everything that the text must carry.
std::string example() {
  return "graph forward\n"
         "symbol batch in [1, 8]\n"
         "symbol k in [0, 3]\n"
         "input \"x\" = %x: f32[batch, 4]\n"
         "input \"k\" = k\n"
         "state \"fc.weight\" = %fc.weight: f32[4, 4] parameter trainable zeros\n"
         "state \"step\" = %step: i64[] optimizer zeros\n"
         "constant \"scale\" = %scale: f32[4] " +
         digest(*weights) +
         "\n"
         "%add_Tensor: f32[batch, 4] = add.Tensor(%x, %scale, 0.5)  @ \"model \\\"a\\\".cpp\" 14 "
         "\"forward\" in \"features.3\"\n"
         "%permute: f32[4, 4] strides [1, 4] = permute(%fc.weight, [1, 0])\n"
         "%mm: f32[batch, 4] = mm(%add_Tensor, %permute)\n"
         "%slice_Tensor: f32[batch, 2] strides [4, 1] offset 2 = slice.Tensor(%mm, 1, 2, none, 1)\n"
         "%max_dim: f32[batch], %max_dim_1: i64[batch] = max.dim(%slice_Tensor, -1, false)\n"
         "%cat: f32[batch*2, 4] = cat([%x, %mm], 0)\n"
         "%add_Scalar: i64[] = add.Scalar(%step, 1, 1)\n"
         "%gelu: f32[batch*2, 4] = gelu(%cat, \"tanh\")\n"
         "output \"best\" = %max_dim\n"
         "output \"rows\" = batch*2 + k\n"
         "write \"step\" = %add_Scalar\n"
         "bind batch = extent 0 of input 0\n"
         "bind k = input 1\n"
         "check k < batch \"k and the batch: k, batch\"\n";
}

std::unique_ptr<Graph> parsed() { return parse(example(), {{digest(*weights), weights}}); }

TEST(printer, writes_what_the_parser_reads_back_exactly) {
  const auto graph = parsed();
  const std::string text = to_string(*graph);
  EXPECT_EQ(text, example());
  EXPECT_EQ(to_string(*parse(text, payloads_of(*graph))), text);
}

// Passes compare calls by their text, so two numbers must not have one.
TEST(printer, writes_every_number_so_that_the_same_one_is_read_back) {
  std::vector<double> numbers{0.12345671,
                              0.12345679,
                              0.1 + 0.2,
                              1.0 / 3,
                              1e-5,
                              1e22,
                              16777217,
                              9007199254740991,
                              -0.0,
                              0.0,
                              std::numeric_limits<double>::denorm_min(),
                              std::numeric_limits<double>::min(),
                              std::numeric_limits<double>::max(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()};
  for (const double n : {1.0, 0.1, 1e300, 3e-7})
    numbers.insert(numbers.end(), {std::nextafter(n, 0), n, std::nextafter(n, 2 * n)});
  for (const double n : numbers) {
    Graph graph("f");
    Value* x = graph.add_input("x", dense_type(DType::f32, {1, 2}));
    append(graph, ops::mul_Scalar, {x, Scalar(n)});
    append(graph, ops::native_layer_norm, {x, std::vector<Dim>{2}, {}, {}, n});
    const auto again = parse(to_string(graph));
    const auto& scalar = std::get<Scalar>(again->nodes().front().arguments[1]);
    const double real = std::get<double>(again->nodes().back().arguments[4]);
    EXPECT_TRUE(scalar.is_real);
    for (const double read : {scalar.real, real}) {
      EXPECT_EQ(read, n) << to_string(graph);
      EXPECT_EQ(std::signbit(read), std::signbit(n)) << to_string(graph);
    }
  }
}

TEST(parser, names_the_line_and_what_was_expected) {
  EXPECT_EXPORT_ERROR(parse("graph f\n%y: f32[2] = relu(%x)\n"),
                      "line 2: expected a value that is computed above, not %x");
  EXPECT_EXPORT_ERROR(parse("graph f\ninput \"x\" = %x: f33[2]\n"), "a dtype, not f33");
  EXPECT_EXPORT_ERROR(parse("graph f\n%y: f32[2] = reluu(%x)\n"), "an operator, not reluu");
}

TEST(parser, reads_numbers_of_every_kind) {
  const auto graph = parse(
      "graph f\ninput \"x\" = %x: f32[2]\n"
      "%a: f32[2] = mul.Scalar(%x, 1e-05)\n%b: f32[2] = mul.Scalar(%x, -inf)\n%c: f32[2] = "
      "mul.Scalar(%x, true)\n"
      "%d: f32[2] = mul.Scalar(%x, -3)\n%e: f32[2] = mul.Scalar(%x, 0.1)\n");
  std::vector<Scalar> scalars;
  for (const Node& n : graph->nodes()) scalars.push_back(std::get<Scalar>(n.arguments[1]));
  EXPECT_EQ(scalars[0].real, 1e-5);
  EXPECT_LT(scalars[1].real, 0);
  EXPECT_TRUE(scalars[2].is_bool);
  EXPECT_EQ(scalars[3].integer, -3);
  EXPECT_EQ(scalars[4].real, 0.1);
}

TEST(parser, reads_expressions_over_sizes_where_a_number_can_be) {
  const std::string text =
      "graph f\nsymbol n in [1, 8]\ninput \"x\" = %x: f32[n]\n"
      "%a: f32[n] = mul.Scalar(%x, n)\n%b: f32[n] = mul.Scalar(%a, 2*n - 1)\n"
      "%c: f32[n] = mul.Scalar(%b, -n)\n%d: f32[n] = mul.Scalar(%c, 2)\noutput \"y\" = %d\n"
      "bind n = extent 0 of input 0\n";
  const auto graph = parse(text);
  std::vector<std::string> numbers;
  for (const Node& n : graph->nodes())
    if (const auto* dim = std::get_if<Dim>(&n.arguments[1])) numbers.push_back(dim->to_string());
  EXPECT_THAT(numbers, testing::ElementsAre("n", "n*2 - 1", "-n"));
  EXPECT_EQ(to_string(*parse(to_string(*graph))), to_string(*graph));
}

TEST(parser, refuses_bodies_that_nest_too_deeply) {
  std::string text = "graph f\ninput \"p\" = %p: bool[]\n";
  for (int i = 0; i < 100000; ++i)
    text += "higher_order::cond(%p, [%p]) {\ngraph g\ninput \"p\" = %p: bool[]\n";
  EXPECT_EXPORT_ERROR(parse(text), "bodies that nest less deeply");
}

TEST(parse_dim, reads_back_what_to_string_writes) {
  const Dim n = Dim::symbol("n", 0, 99), h = Dim::symbol("h", 0, 99);
  const auto lookup = [&](std::string_view name) { return name == "n" ? n : h; };
  for (const Dim d : {n * h * 3 - 4, (h - 1) / 2 * n, -n, n % 7 + min(h, n * 2),
                      max(n - 3, 0) / (h + 1), Dim(-5)})
    EXPECT_TRUE(same(parse_dim(d.to_string(), lookup), d)) << d;
}

TEST(verifier, accepts_a_sound_graph) { EXPECT_NO_THROW(verify(*parsed())); }

TEST(verifier, names_the_node_whose_type_is_wrong) {
  const auto graph = parse(
      "graph f\ninput \"x\" = %x: f32[2]\n%y: f32[3] = relu(%x)  @ \"net.cpp\" 7 \"f\" in "
      "\"head\"\n");
  EXPECT_THAT([&] { verify(*graph, "some_pass"); },
              ThrowsMessage<ExportError>("graph f after some_pass: relu at net.cpp:7 (head): "
                                         "result %y is f32[3], the shape rule says f32[2]"));
}

TEST(verifier, follows_strides_of_dimensions_with_several_elements_alone) {
  const auto with_strides = [](const std::string& strides) {
    verify(*parse("graph f\ninput \"x\" = %x: f32[2, 1, 3]\n%y: f32[3, 1, 2] strides " + strides +
                  " = permute(%x, [2, 1, 0])\n"));
  };
  EXPECT_NO_THROW(with_strides("[1, 3, 3]"));
  EXPECT_NO_THROW(with_strides("[1, 77, 3]"));
  EXPECT_THROW(with_strides("[2, 3, 3]"), ExportError);
  EXPECT_THROW(with_strides("[1, 3, 4]"), ExportError);
}

TEST(verifier, refuses_a_value_that_is_used_before_it_is_computed) {
  const auto graph =
      parse("graph f\ninput \"x\" = %x: f32[2]\n%a: f32[2] = relu(%x)\n%b: f32[2] = neg(%x)\n");
  Node& a = graph->nodes().front();
  graph->set_argument(&a, 0, graph->nodes().back().result());
  EXPECT_THROW(verify(*graph), ExportError);
}

TEST(verifier, refuses_a_value_that_does_not_know_its_users) {
  const auto graph = parsed();
  Value* x = graph->inputs()[0].value.get();
  x->users.pop_back();
  EXPECT_EXPORT_ERROR(verify(*graph), "%x does not know its users");
}

TEST(verifier, refuses_two_symbols_of_one_name) {
  const auto graph = parsed();
  Node& first = graph->nodes().front();
  graph->bind_symbol({Dim::symbol("batch", 0, 3), SymbolSource::element, 0, 0, first.result()});
  EXPECT_EXPORT_ERROR(verify(*graph), "two symbols are called batch");
}

TEST(verifier, refuses_a_symbol_without_a_source) {
  const auto graph = parse("graph f\nsymbol n in [1, 4]\ninput \"x\" = %x: f32[n]\n");
  EXPECT_EXPORT_ERROR(verify(*graph), "the symbol n has no source");
}

TEST(graph, replaces_uses_everywhere_and_erases_what_is_left) {
  const auto graph = parse(
      "graph f\ninput \"x\" = %x: f32[2]\n%a: f32[2] = relu(%x)\n%b: f32[2] = add.Tensor(%a, %a, "
      "1)\noutput \"y\" = %a\n");
  Node* a = &graph->nodes().front();
  Value* x = graph->inputs()[0].value.get();
  graph->replace_uses(a->result(), x);
  EXPECT_FALSE(graph->is_used(a->result()));
  EXPECT_EQ(graph->outputs()[0].value, x);
  graph->erase(a);
  verify(*graph);
  EXPECT_EQ(x->users.size(), 2u);
}

TEST(graph, gives_every_value_a_name_of_its_own) {
  Graph graph("f");
  const Value* x = graph.add_input("x y", dense_type(DType::f32, {2}));
  EXPECT_EQ(x->name, "x_y");
  EXPECT_EQ(append(graph, ops::relu, {graph.inputs()[0].value.get()})->result()->name, "relu");
  EXPECT_EQ(append(graph, ops::relu, {graph.inputs()[0].value.get()})->result()->name, "relu_1");
}

TEST(graph, gives_a_value_the_name_that_the_user_has_for_it) {
  Graph graph("f");
  Value* x = graph.add_input("x", dense_type(DType::f32, {2}));
  Value* inner = append(graph, ops::relu, {x})->result();
  Value* named = append(graph, ops::neg, {inner})->result();
  graph.name_by_user(named, "relu");
  EXPECT_EQ(named->name, "relu");
  EXPECT_EQ(inner->name, "relu_1") << "which was called so after its operator";
  Value* later = append(graph, ops::abs, {named})->result();
  graph.name_by_user(later, "relu");
  EXPECT_EQ(named->name, "relu");
  EXPECT_EQ(later->name, "relu_2") << "the user has two of this name";
  graph.name_by_user(inner, "x");
  EXPECT_EQ(x->name, "x") << "an input has its name from the user, too";
  EXPECT_EQ(inner->name, "x_1");
  verify(graph);
}

TEST(graph, swaps_the_names_of_two_values) {
  const auto graph = parse(
      "graph f\ninput \"x\" = %x: f32[2]\n%a: f32[2] = relu(%x)\n%b: f32[2] = neg(%x)\noutput "
      "\"y\" = %b\n");
  Value *a = graph->nodes().front().result(), *b = graph->nodes().back().result();
  graph->swap_names(a, b);
  EXPECT_EQ(b->name, "a");
  graph->erase(a->node);
  graph->rename(b, "b");
  EXPECT_EQ(graph->fresh_name("a"), "a") << "nobody has it any more";
  verify(*graph);
}

TEST(infer, records_what_it_cannot_prove) {
  Graph graph("f");
  const Dim n = Dim::symbol("n", 1, 9), m = Dim::symbol("m", 1, 9);
  Value* a = graph.add_input("a", dense_type(DType::f32, {n, 4}));
  Value* b = graph.add_input("b", dense_type(DType::f32, {m, 4}));
  append(graph, ops::add_Tensor, {a, b, Scalar(1)});
  ASSERT_EQ(graph.checks().size(), 1u);
  EXPECT_EQ(graph.checks()[0].comparison, Comparison::equal);
}

}  // namespace
}  // namespace taper::ir
