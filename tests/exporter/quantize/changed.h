// Small graphs with weights, before and after their quantization.
#pragma once
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::quantize {

using passes::constant;
using passes::random_payload;
using passes::run;

inline Recipe recipe_of(const std::string& scheme, const std::string& match = "*") {
  return parse_recipe(R"([{"match": ")" + match + R"(", "scheme": )" + scheme + "}]", "recipe");
}
inline Recipe int8() { return recipe_of("\"int8\""); }

/// A graph of text with constants.
struct Model {
  ir::Payloads payloads;
  std::string constants, nodes;

  Model& add(const std::string& name, std::shared_ptr<const ir::Payload> payload) {
    constants += constant(name, payload, payloads);
    return *this;
  }
  std::unique_ptr<ir::Graph> graph() const {
    return ir::parse("graph f\n" + constants + nodes, payloads);
  }
};

/// Quantizes the model, and compares its results with those before.
struct Changed {
  std::unique_ptr<ir::Graph> graph;
  Report report;

  Changed(const Model& model, const Recipe& recipe, const std::vector<eager::Tensor>& inputs,
          double tolerance, const Options& options = {})
      : graph(model.graph()), report(quantize({graph.get()}, recipe, options)) {
    ir::verify(*graph);
    const std::vector<float> want = run(*model.graph(), inputs), got = run(*graph, inputs);
    float most = 0;
    for (const float v : want) most = std::max(most, std::fabs(v));
    EXPECT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * most);
    EXPECT_NE(got, want);
  }
  std::vector<Layout> layouts() const {
    std::vector<Layout> all;
    for (const ir::Constant& c : graph->constants()) all.push_back(c.payload->layout);
    return all;
  }
};

inline std::string refusal(const Model& model, const Recipe& recipe, const Options& options = {}) {
  const std::unique_ptr<ir::Graph> graph = model.graph();
  try {
    quantize({graph.get()}, recipe, options);
  } catch (const ExportError& e) {
    return e.what();
  }
  return "accepted";
}

inline Model linear_model(int64_t rows, int64_t depth) {
  Model m;
  m.add("w", random_payload({rows, depth}, 1)).add("b", random_payload({rows}, 2));
  m.nodes = "input \"x\" = %x: f32[3, " + std::to_string(depth) + "]\n" + "%y: f32[3, " +
            std::to_string(rows) + "] = linear(%x, %w, %b)\noutput \"y\" = %y\n";
  return m;
}

}  // namespace taper::quantize
