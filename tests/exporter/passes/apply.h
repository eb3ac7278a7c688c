// Graphs of tests as text, and one pass on one graph.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "taper/exporter/dim/type.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

using Run = int (*)(ir::Graph&, PassContext&);
inline int apply(Run pass, ir::Graph& graph) {
  PassContext context;
  return pass(graph, context);
}

using eager::Tensor;

inline std::shared_ptr<const ir::Payload> random_payload(std::vector<int64_t> sizes, unsigned seed,
                                                         float low = -1, float high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(low, high);
  size_t n = 1;
  for (int64_t s : sizes) n *= static_cast<size_t>(s);
  std::vector<float> elements(n);
  for (float& e : elements) e = numbers(random);
  return ir::Payload::from(elements, std::move(sizes));
}
inline Tensor random_tensor(const std::vector<int64_t>& sizes, unsigned seed) {
  return ir::tensor_of(random_payload(sizes, seed)).clone();
}

/// A constant's line.
inline std::string constant(const std::string& name, const std::shared_ptr<const ir::Payload>& p,
                            ir::Payloads& payloads) {
  const std::string key = ir::digest(*p);
  payloads[key] = p;
  ir::Type type = ir::dense_type(p->dtype, {p->sizes.begin(), p->sizes.end()});
  return "constant \"" + name + "\" = %" + name + ": " + ir::to_string(type) + " " + key + "\n";
}

inline std::vector<std::string> operators(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& n : graph.nodes()) names.emplace_back(name_of(*n.op));
  return names;
}

inline std::vector<float> run(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<float>();
}
inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

}  // namespace taper::passes
