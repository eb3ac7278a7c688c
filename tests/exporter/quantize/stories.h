// stories260K, a Llama with 260 thousand weights: the perplexity of its programs in a few bits, and
// what other implementations reach.
#pragma once
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/tests/models/imported.h"

namespace taper::quantize {

/// The model, the tokens of a children's story, and what others reach.
class Stories {
 public:
  /// `folder` is `quant` of the golden data.
  void open(const std::filesystem::path& model, const std::filesystem::path& folder) {
    model_ = model;
    tokens_ = io::read_safetensors(folder / "stories260K_tokens.safetensors").tensors;
    // the file has them as i16
    for (auto& [name, ids] : tokens_)
      if (is_integral(ids.dtype)) ids = eager::array_of(eager::tensor_of(ids).to(DType::i64));
    bars_ = nlohmann::json::parse(std::ifstream(folder / "accuracy.json"))["stories260K"]["rows"];
  }

  const nlohmann::json& bars() const { return bars_; }
  double bar(const std::string& method) const {
    for (const auto& row : bars_)
      if (row["method"] == method) return row["ppl_tinystories"];
    throw std::runtime_error("no bar for " + method);
  }

  /// The bars leave the embedding as float, and quantize the head. The model shares their weight.
  static void part_head_from_embedding(ir::Graph& graph) {
    for (ir::Node& node : graph.nodes()) {
      if (node.op != &ops::embedding) continue;
      const auto* weight = std::get<ir::Value*>(node.arguments[0]);
      for (ir::Constant& c : graph.constants()) {
        if (c.value.get() != weight) continue;
        const auto copy = ir::Payload::copy(DType::f32, c.payload->sizes, c.payload->bytes.get());
        return graph.set_argument(&node, 0, graph.add_constant("embedding", copy));
      }
    }
  }

  Examples calibration(int64_t most = 16) const {
    const eager::Tensor ids = eager::tensor_of(tokens_.at("calibration"));
    return {static_cast<size_t>(std::min(most, ids.size(0).value())), [ids](size_t i) {
              const auto row = static_cast<int64_t>(i);
              return std::vector{ids.slice(0, row, row + 1).contiguous()};
            }};
  }

  struct How {
    bool calibrated = false;
    bool exact = true;   ///< products of floats, as the bars have
    bool parted = true;  ///< only the head is quantized, and not the embedding
  };
  using Edit = std::function<void(const std::vector<ir::Graph*>&)>;
  /// Of the program of an edited model.
  double of_edited(const Edit& edit, bool exact) {
    pt2::Model model = pt2::Model::load(model_);
    const eager::NoGrad guard;
    Exporter exporter;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
    ExportOptions options{.exact = exact};
    options.before_passes = edit;
    const std::vector<std::byte> program = exporter.write(options);
    Result<Module> module =
        Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())));
    if (!module.ok()) throw std::runtime_error("load");
    return perplexity_of(module.value());
  }
  /// Of the program with a recipe.
  double of(const std::optional<Recipe>& recipe, const How& how) {
    const auto edit = [&](const std::vector<ir::Graph*>& graphs) {
      if (how.parted) part_head_from_embedding(*graphs[0]);
      Options data;
      if (how.calibrated) data.samples = calibration();
      if (recipe) report_ = quantize(graphs, *recipe, data);
    };
    return of_edited(edit, how.exact);
  }
  /// All products with weights of this scheme, and the embedding as it is.
  double of_scheme(const std::string& scheme, bool calibrated = false, bool exact = true) {
    const std::string rules = R"([{"match": "embedding", "scheme": "float"},
                                  {"match": "*", "scheme": )" +
                              scheme + "}]";
    return of(parse_recipe(rules, "recipe"), {.calibrated = calibrated, .exact = exact});
  }
  double of_method(const std::string& format, const std::string& method) {
    return of_scheme(R"({"weights": ")" + format + R"(", "method": ")" + method + "\"}",
                     method.starts_with("gptq"));
  }
  const Report& report() const { return report_; }

  io::ArrayMap tokens_;

 private:
  double perplexity_of(Module& module) const {
    const io::Array& windows = tokens_.at("tinystories");
    const int64_t count = windows.sizes[1];
    double sum = 0;
    for (int64_t w = 0; w < windows.sizes[0]; ++w) {
      std::vector<int64_t> ids(static_cast<size_t>(count));
      for (size_t i = 0; i < ids.size(); ++i)
        ids[i] = windows.values<int64_t>()[static_cast<size_t>(w * count) + i];
      const auto logits = module.execute("forward", {Input(ids.data(), {1, count})});
      if (!logits.ok()) throw std::runtime_error("execute");
      sum += surprise(logits.value()[0], ids);
    }
    return std::exp(sum / static_cast<double>(windows.sizes[0] * (count - 1)));
  }
  /// The sum of -log p over all tokens but the first.
  static double surprise(const OwnedTensor& logits, const std::vector<int64_t>& ids) {
    const auto vocabulary = static_cast<size_t>(logits.sizes.back());
    double sum = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const float* row = logits.data<float>() + i * vocabulary;
      double all = 0;
      for (size_t v = 0; v < vocabulary; ++v) all += std::exp(static_cast<double>(row[v]));
      sum += std::log(all) - row[ids[i + 1]];
    }
    return sum;
  }

  std::filesystem::path model_;
  nlohmann::json bars_;
  Report report_;
};

}  // namespace taper::quantize
