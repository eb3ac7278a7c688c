#pragma once
#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  /// The share of a gradient that does not enter the momentum, from the second step on.
  double dampening = 0;
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  bool nesterov = false;    ///< needs momentum and no dampening
  bool maximize = false;
};
struct SGDState {
  Tensor momentum;  ///< undefined without
};
/// Stochastic gradient descent:
///   g = gradient + weight_decay · p
///   m = momentum · m + (1 - dampening) · g          (m = g in the first step)
///   p = p - lr · m          (nesterov: lr · (g + momentum · m); without momentum: lr · g)
/// States: lr, momentum.<parameter>; step if there is dampening.
class SGD : public PerParameter<SGDOptions, SGDState> {
 public:
  explicit SGD(const std::vector<Tensor>& parameters, SGDOptions options = {},
               Location here = Location::current())
      : SGD(std::vector{ParameterGroup<SGDOptions>{parameters, options}}, here) {}
  explicit SGD(const std::vector<ParameterGroup<SGDOptions>>& groups,
               Location here = Location::current());

  double momentum(size_t group = 0) const override { return options(group).momentum; }
  /// Throws EagerError if the group was made without momentum.
  void set_momentum(double value, size_t group = 0, Location here = Location::current()) override;

 protected:
  void begin_step() override;
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;

 private:
  /// For each group with dampening: 1 in the first step, 1 - dampening later.
  std::vector<Tensor> gradient_share_;
};

}  // namespace taper::optim
