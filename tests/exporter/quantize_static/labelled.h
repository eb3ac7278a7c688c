// Trained classifiers with labelled pictures: what quantization costs them.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/data/images.h"
#include "taper/exporter/data/loader.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/quantize/static/static.h"
#include "taper/exporter/trace/trace.h"

namespace taper::quantize {

inline std::unique_ptr<ir::Graph> graph_of(const std::filesystem::path& file) {
  pt2::Model model = pt2::Model::load(file);
  const eager::NoGrad guard;
  auto graph = trace("forward", model.function(), model.input_specs(), model.output_names());
  bake_read_only_states({graph.get()});
  return graph;
}

/// The graph of a .pt2 file in the form that quantization takes.
inline std::unique_ptr<ir::Graph> float_graph(const std::filesystem::path& file) {
  auto graph = graph_of(file);
  prepare_static(*graph);
  return graph;
}

/// A classifier and its pictures.
struct Classifier {
  std::filesystem::path model;
  data::Images pictures;
  std::string logits;  ///< the value in the graph

  /// Batches of the pictures [begin, end).
  Examples batches(int64_t begin, int64_t end, int64_t batch_size) const {
    std::vector<std::vector<eager::Tensor>> calls;
    data::Loader loader(pictures.range(begin, end), {.batch_size = batch_size});
    for (auto [images, labels] : loader) calls.push_back({images});
    return calls;
  }
};

/// The logits of all batches, one behind the other. `before` is the value of the logits in the
/// float graph. In a quantized graph, its dequantized integers count.
inline std::vector<float> logits_of(const ir::Graph& graph, const Examples& batches,
                                    const std::string& name) {
  const ir::Value* wanted = nullptr;
  for (const ir::Node& node : graph.nodes()) {
    if (node.result()->name == name) wanted = node.result();
    const bool follows = wanted != nullptr && node.op->category == Category::composite &&
                         std::get_if<ir::Value*>(&node.arguments[0]) != nullptr &&
                         std::get<ir::Value*>(node.arguments[0]) == wanted &&
                         (node.op == &ops::quantized_decomposed_quantize_per_tensor ||
                          node.op == &ops::quantized_decomposed_dequantize_per_tensor);
    if (follows) wanted = node.result();
  }
  std::vector<float> logits;
  const eager::NoGrad guard;
  for (size_t i = 0; i < batches.count; ++i) {
    ir::Interpreter interpreter(graph);
    interpreter.observe([&](const ir::Value& v, const eager::Tensor& t) {
      if (&v != wanted) return;
      const std::vector<float> batch = t.to_vector<float>();
      logits.insert(logits.end(), batch.begin(), batch.end());
    });
    interpreter.run(batches.at(i));
  }
  return logits;
}

struct LabelledScore {
  double top1 = 0, agrees = 0, squared_error = 0, sqnr_db = 0;
};

inline size_t largest(const std::vector<float>& logits, size_t picture, size_t classes) {
  const auto row = logits.begin() + static_cast<std::ptrdiff_t>(picture * classes);
  return static_cast<size_t>(std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) -
                             row);
}

/// `first`: the number of the first picture.
inline LabelledScore score(const std::vector<float>& got, const std::vector<float>& want,
                           const data::Images& pictures, int64_t first, size_t classes = 10) {
  LabelledScore s;
  const size_t count = got.size() / classes;
  double signal = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t answer = largest(got, i, classes);
    s.agrees += answer == largest(want, i, classes) ? 1 : 0;
    s.top1 += static_cast<int64_t>(answer) == pictures.label(first + static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < got.size(); ++i) {
    s.squared_error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    signal += std::pow(static_cast<double>(want[i]), 2);
  }
  s.sqnr_db = 10 * std::log10(signal / s.squared_error);
  s.squared_error /= static_cast<double>(got.size());
  s.top1 /= static_cast<double>(count), s.agrees /= static_cast<double>(count);
  return s;
}

}  // namespace taper::quantize
