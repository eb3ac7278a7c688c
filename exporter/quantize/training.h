// Quantization-aware training: a model trains with the numbers that its quantized form will have.
//
//   prepare_static(*graph);                                  // batch norms are folded
//   const Ranges ranges = calibrate(*graph, examples, {});
//   QatModel model(*graph, ranges, {});                      // weights and activations in 8 bits
//   optim::AdamW optimizer(model.parameters(), {.lr = 1e-4});
//   for (auto [images, labels] : loader) {
//     optimizer.zero_grad();
//     cross_entropy(model({images})[0], labels).backward();
//     optimizer.step();
//   }
//   const auto trained = model.convert();
//   quantize_static(*trained, model.ranges(), {});
//
// Rounding has no useful gradient, so gradients go through it as if it were not there (Bengio and
// others, arXiv:1308.3432), and are zero where a value was clamped.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/nn/module.h"
#include "taper/exporter/quantize/recipe.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

struct GridGroup;

struct QatOptions {
  /// How far a batch moves the ranges of activations. 0: they stay as they are.
  double averaging = 0.01;
  /// The scales of activations are parameters, too, and batches do not move them. Method of Bhalgat
  /// and others, "LSQ+", 2020, arXiv:2004.09576.
  bool learns_scales = false;
};

/// A graph whose weights and biases are parameters. It is a module: parameters, buffers and their
/// names are those of the graph.
class QatModel : public nn::Module {
 public:
  /// Static integers: weights have a scale for each channel, and activations one each. The graph,
  /// ranges and options are those of `quantize_static`. Throws ExportError as it does, and if no
  /// weight can be trained.
  QatModel(const ir::Graph& graph, const Ranges& ranges, const StaticOptions& options,
           const QatOptions& training = {});
  /// Weights in blocks, as a recipe says. They round to the numbers that `quantize` gives them by
  /// the method `nearest`, or `mse` if the recipe says so. Activations stay f32. Such a step does
  /// not export.
  QatModel(const ir::Graph& graph, const Recipe& recipe);
  ~QatModel() override;

  /// Runs the model with rounded weights and activations. While it trains, batches move the ranges
  /// of activations afterwards.
  std::vector<eager::Tensor> forward(const std::vector<eager::Tensor>& inputs);
  std::vector<eager::Tensor> operator()(const std::vector<eager::Tensor>& inputs) {
    return forward(inputs);
  }
  /// From now on, the ranges of activations stay as they are.
  void freeze_observers() { observes_ = false; }

  /// The float graph with the trained weights. `quantize_static` with `ranges`, or `quantize` with
  /// the recipe, makes a model of it that computes what `forward` does.
  std::unique_ptr<ir::Graph> convert() const;
  /// What activations are like now. Empty for a recipe of blocks.
  Ranges ranges() const;

  void visit_members(nn::Members& members) override;

 private:
  struct Weight;
  struct Activation;
  class Builder;

  void add_activation(const GridGroup& group);
  void require_weights();
  eager::Tensor rounded(const Weight& weight) const;
  void move(Activation& activation) const;

  std::unique_ptr<ir::Graph> source_, graph_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::vector<std::unique_ptr<Activation>> activations_;
  std::map<std::string, Activation*> grids_;  ///< by the names of values
  Ranges ranges_;
  QatOptions options_;
  StaticOptions integers_;
  bool observes_ = true;
};

}  // namespace taper::quantize
