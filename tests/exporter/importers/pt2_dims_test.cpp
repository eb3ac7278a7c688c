// --dim: bounds and names of the sizes of a model.
#include <gmock/gmock.h>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/exporter.h"
#include "taper/tests/exporter/importers/models.h"
#include "taper/tests/support/execute.h"

namespace taper::pt2 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Symbol& first_size(const Model& model) {
  return *model.inputs().at(0).sizes.at(0).as_symbol();
}

TEST(pt2_dims, are_named_by_symbol_and_by_place) {
  const auto between = [](int64_t low, int64_t high, const std::string& name = "") {
    return LoadOptions::DimOption{LoadOptions::Bounds{low, high}, name};
  };
  EXPECT_EQ(named_results({}).dimensions().at(0).to_string(), "x.0 (2..64)");
  for (const char* key : {"s25", "x.0", "past_keys_0.0", "past.keys.0.0"}) {
    const Model model = named_results({{key, between(3, 8, "batch")}});
    EXPECT_EQ(first_size(model).name, "batch") << key;
    EXPECT_EQ(first_size(model).minimum, 3) << key;
    EXPECT_EQ(first_size(model).maximum, 8) << key;
    EXPECT_THAT(model.unknown_dims(), ElementsAre()) << key;
  }
  EXPECT_EQ(first_size(named_results({{"x.0", {{}, "batch"}}})).maximum, 64);
  EXPECT_EQ(first_size(named_results({})).name, "x.0");
  EXPECT_EQ(first_size(named_results({{"s25", {LoadOptions::Bounds{3, 8}, ""}}})).name, "x.0");
  EXPECT_TRUE(named_results({{"x.0", between(5, 5)}}).inputs()[0].sizes[0].is_constant());
  EXPECT_THAT(named_results({{"y.0", between(1, 2)}, {"x.2", between(1, 2)}}).unknown_dims(),
              ElementsAre("x.2", "y.0"));
}
TEST(pt2_dims, may_be_one_though_pytorch_traced_two_or_more) {
  const Model model = named_results({{"x.0", {LoadOptions::Bounds{1, 64}, ""}}});
  EXPECT_EQ(first_size(model).minimum, 1);
  ASSERT_EQ(model.notes().size(), 1u);
  EXPECT_THAT(model.notes()[0], HasSubstr("PyTorch traced it as 2 or more"));
  EXPECT_TRUE(named_results({{"x.0", {LoadOptions::Bounds{2, 64}, ""}}}).notes().empty());
}
TEST(pt2_dims, are_refused_with_a_reason) {
  const auto why = [](const std::string& key, const LoadOptions::DimOption& option) {
    return refusal([&] { named_results({{key, option}}); });
  };
  const LoadOptions::Bounds few{2, 8};
  EXPECT_THAT(why("x.0", {LoadOptions::Bounds{0, 8}, ""}), HasSubstr("or begin with 1"));
  EXPECT_THAT(why("x.0", {LoadOptions::Bounds{2, 65}, ""}),
              HasSubstr("2..64; export the model again"));
  EXPECT_THAT(why("x.1", {few, ""}), HasSubstr("dimension x.1 is 4 and cannot change"));
  EXPECT_THAT(why("x.0", {few, "a b"}), HasSubstr("a name consists of letters"));
  EXPECT_THAT(why("s25*", {few, ""}), HasSubstr("no expression over sizes"));
  EXPECT_THAT(why("s25*2", {few, "name"}), HasSubstr("is an expression"));
  EXPECT_THAT(refusal([&] {
                named_results({{"x.0", {few, ""}}, {"s25", {LoadOptions::Bounds{2, 9}, ""}}});
              }),
              HasSubstr("s25 and x.0 are one size, which --dim sets in two ways"));
}
TEST(pt2_dims, are_refused_where_expressions_contradict) {
  const auto load = [](const std::string& other, int64_t most) {
    return refusal([&] {
      LoadOptions options;
      options.dims["u0*u1"].bounds = LoadOptions::Bounds{1, 12};
      options.dims[other].bounds = LoadOptions::Bounds{1, most};
      Model::load(tests::test_data("pt2/product_of_sizes.pt2"), options);
    });
  };
  EXPECT_THAT(load("u1*u0", 13), HasSubstr("another --dim sets differently"));
  EXPECT_EQ(load("u1*u0", 12), "nothing was refused");
  EXPECT_THAT(load("3*4", 13), HasSubstr("names no size"));
}
// Its only size is 2 n: the size itself gets the name that a caller can see.
TEST(pt2_dims, are_named_by_place_where_only_an_expression_occurs) {
  LoadOptions options;
  options.dims["x.0"].name = "batch";
  const Model model = Model::load(tests::test_data("pt2_refused/unbounded.pt2"), options);
  EXPECT_EQ(first_size(model).name, "batch");
  EXPECT_EQ(model.inputs().at(1).sizes.at(0).to_string(), "pairs.0");
}
// The size of pairs.0 is 2 s44, and s44 lies in 2..8.
TEST(pt2_dims, bound_a_place_whose_size_is_linear_in_a_symbol) {
  const auto load = [](const std::string& key, const LoadOptions::DimOption& option) {
    return Model::load(tests::test_data("pt2_refused/unbounded.pt2"),
                       {.dims = {{"x.0", {{}, "batch"}}, {key, option}}});
  };
  const auto size = [&](int64_t low, int64_t high) {
    return load("pairs.0", {LoadOptions::Bounds{low, high}, ""}).inputs().at(1).sizes.at(0);
  };
  EXPECT_EQ(size(6, 10).lower(), 6);
  EXPECT_EQ(size(6, 10).upper(), 10);
  EXPECT_EQ(size(5, 11).lower(), 6);
  EXPECT_EQ(size(5, 11).upper(), 10);
  EXPECT_EQ(size(5, 11).to_string(), "pairs.0");
  EXPECT_EQ(size(6, 6).value(), 6);
  const auto why = [&](const std::string& key, const LoadOptions::DimOption& option) {
    return refusal([&] { load(key, option); });
  };
  EXPECT_THAT(why("pairs.0", {LoadOptions::Bounds{5, 5}, ""}),
              HasSubstr("pairs.0 is s44*2, and no such size lies in 5..5; give other bounds"));
  EXPECT_THAT(why("pairs.0", {LoadOptions::Bounds{6, 18}, ""}),
              HasSubstr("the bounds 3..9 of s44 (pairs.0 is s44*2) do not lie inside those of the "
                        ".pt2, 2..8"));
  EXPECT_THAT(why("pairs.0", {LoadOptions::Bounds{6, 10}, "pairs"}),
              HasSubstr("pairs.0 is s44*2, which cannot be called pairs"));
  EXPECT_THAT(why("s44", {LoadOptions::Bounds{3, 5}, "half"}),
              HasSubstr("s44 cannot be called half: no input has this size alone, so reports show "
                        "pairs.0"));
  EXPECT_THAT(why("pairs.0 + x.0", {LoadOptions::Bounds{6, 10}, ""}),
              HasSubstr("give bounds of s44 instead: --dim s44=LOW..HIGH. It stands in pairs.0"));
}
TEST(pt2_dims, bound_expressions_of_places_and_of_given_names) {
  const auto load = [](const std::string& size) {
    LoadOptions options;
    options.dims["x.0"].name = "rows";
    options.dims[size + " + u0"].bounds = LoadOptions::Bounds{1, 12};
    return Model::load(tests::test_data("pt2/position_in_cache.pt2"), options);
  };
  for (const char* size : {"x.0", "rows"}) {
    Model model = load(size);
    EXPECT_THAT(model.unknown_dims(), ElementsAre()) << size;
    const auto position = [](int64_t at) { return Tensor::from(std::vector<int64_t>{at}, {}); };
    EXPECT_THAT(refusal([&] {
                  model.forward({eager::ones({8, 2}), position(5)});
                }),
                HasSubstr(std::string(size) + " + u0 must lie in 1..12"));
    EXPECT_EQ(refusal([&] {
                model.forward({eager::ones({8, 2}), position(4)});
              }),
              "nothing was refused");
    const eager::NoGrad guard;
    Exporter exporter;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
    EXPECT_THAT(ir::to_string(exporter.graph("forward")),
                HasSubstr("Runtime assertion failed for expression rows + u0 <= 16"));
  }
  EXPECT_THAT(load("y.0").unknown_dims(), ElementsAre("y.0 + u0"));
}
// The product of two sizes that data decides is bounded by a check of the program.
TEST(pt2_dims, bound_expressions) {
  const auto load = [](int64_t most) {
    LoadOptions options;
    options.dims["u0*u1"].bounds = LoadOptions::Bounds{1, most};
    return Model::load(tests::test_data("pt2/product_of_sizes.pt2"), options);
  };
  Model model = load(12);
  const auto call = [&](int64_t rows, int64_t columns) {
    return refusal([&] {
      model.forward({Tensor::from(std::vector<int64_t>{rows, columns}, {2}), eager::ones({16})});
    });
  };
  EXPECT_EQ(call(3, 4), "nothing was refused");
  EXPECT_THAT(call(4, 4), HasSubstr("u0*u1 must lie in 1..12"));

  const eager::NoGrad guard;
  const auto activations = [&](int64_t most) {
    Model bounded = load(most);
    Exporter exporter;
    exporter.method("forward", bounded.function(), bounded.input_specs(), bounded.output_names());
    EXPECT_THAT(ir::to_string(exporter.graph("forward")),
                HasSubstr("check u0*u1 <= " + std::to_string(most)));
    emit::Report report;
    exporter.write(ExportOptions{}, &report);
    return report.methods[0].activation_bytes;
  };
  EXPECT_LT(activations(12), 16 * 16 * 4);
}

}  // namespace
}  // namespace taper::pt2
