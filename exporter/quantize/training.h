// Quantization-aware training: a model trains with the numbers that its quantized form will have.
//
//   const auto norms = prepare_qat(*graph);                  // batch norms are folded
//   const Ranges ranges = calibrate(*graph, examples, {});
//   QatModel model(*graph, ranges, {}, {.norms = norms});    // weights and activations in 8 bits
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
#include "taper/exporter/passes/folded_norms.h"
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
  /// Batch norms that train, from `prepare_qat`. Without them, what was folded trains as one weight
  /// and one bias.
  std::vector<passes::FoldedNorm> norms;
};

/// A graph whose weights and biases are parameters. It is a module: parameters, buffers and their
/// names are those of the graph.
///
/// A batch norm folds in every step: the weight that is rounded is weight * gamma / deviation, with
/// the running deviation. While it trains, the norm takes mean and deviation of the batch, and they
/// move the running ones, as in `prepare_qat_pt2e` of PyTorch (Krishnamoorthi, arXiv:1806.08342,
/// section 3.2.2).
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
  /// From now on, batch norms compute with their running statistics, which stay as they are. So the
  /// model trains with the numbers of the quantized one. Call it for the last part of the training.
  void freeze_norms() { norms_train_ = false; }

  /// The float graph with the trained weights. `quantize_static` with `ranges`, or `quantize` with
  /// the recipe, makes a model of it that computes what `forward` does.
  std::unique_ptr<ir::Graph> convert() const;
  /// What activations are like now. Empty for a recipe of blocks.
  Ranges ranges() const;

  void visit_members(nn::Members& members) override;

 private:
  struct Weight;
  struct Activation;
  struct Norm;
  class Builder;

  void add_activation(const GridGroup& group);
  void add_norms();
  /// The graph whose batch norms compute with the statistics of a batch.
  void build_batch_graph();
  eager::Tensor elements_of(const Weight& weight, bool of_batch) const;
  void require_weights();
  eager::Tensor rounded(const Weight& weight, bool of_batch) const;
  void move(Activation& activation) const;
  std::shared_ptr<const ir::Payload> trained(const Weight& weight, const ir::Payload& old) const;

  std::unique_ptr<ir::Graph> source_, graph_, batch_graph_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::vector<std::unique_ptr<Activation>> activations_;
  std::vector<std::unique_ptr<Norm>> norms_;
  std::map<std::string, Activation*> grids_;  ///< by the names of values
  Ranges ranges_;
  QatOptions options_;
  StaticOptions integers_;
  bool observes_ = true, norms_train_ = true;
};

}  // namespace taper::quantize
