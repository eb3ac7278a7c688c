// Optimizers that follow the sign of gradients, and averaged gradient descent.
#pragma once
#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

struct LionOptions {
  double lr = 1e-4;
  std::pair<double, double> betas{0.9, 0.99};
  double weight_decay = 0;  ///< decoupled, as AdamW's
  bool maximize = false;
};
struct LionState {
  Tensor mean;
};
/// Chen et al., "Symbolic discovery of optimization algorithms", 2023:
///   u = sign(β₁ m + (1 - β₁) g),   p = p - lr · weight_decay · p - lr u,   m = β₂ m + (1 - β₂) g
/// States: lr, exp_avg.<parameter>.
class Lion : public WithBetas<LionOptions, LionState> {
 public:
  explicit Lion(const std::vector<Tensor>& parameters, LionOptions options = {},
                Location here = Location::current())
      : Lion(std::vector{ParameterGroup<LionOptions>{parameters, options}}, here) {}
  explicit Lion(const std::vector<ParameterGroup<LionOptions>>& groups,
                Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

struct RpropOptions {
  double lr = 1e-2;                                ///< the first step of every element
  std::pair<double, double> etas{0.5, 1.2};        ///< factors of a step that turned, or did not
  std::pair<double, double> step_sizes{1e-6, 50};  ///< the least and the greatest step
  bool maximize = false;
};
struct RpropState {
  Tensor previous, step_size;
};
/// Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning", 1993.
/// Every element has a step size. It grows while the gradient keeps its sign. When the sign
/// changes, the step size shrinks and the element stays. lr is read only at construction. States:
/// lr, prev.<parameter>, step_size.<parameter>.
class Rprop : public PerParameter<RpropOptions, RpropState> {
 public:
  explicit Rprop(const std::vector<Tensor>& parameters, RpropOptions options = {},
                 Location here = Location::current())
      : Rprop(std::vector{ParameterGroup<RpropOptions>{parameters, options}}, here) {}
  explicit Rprop(const std::vector<ParameterGroup<RpropOptions>>& groups,
                 Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

struct ASGDOptions {
  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;  ///< steps before averaging begins
  double weight_decay = 0;
  bool maximize = false;
};
struct ASGDState {
  Tensor average;
};
/// Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992. With
/// η_t = lr / (1 + λ lr (t - 1))^α and μ_t = 1 / max(1, t - 1 - t0):
///   p = p - λ η_t p - η_t g,   a = a + μ_t (p - a)
/// States: lr, step, ax.<parameter>: the averages, which `average` gives.
class ASGD : public PerParameter<ASGDOptions, ASGDState> {
 public:
  explicit ASGD(const std::vector<Tensor>& parameters, ASGDOptions options = {},
                Location here = Location::current())
      : ASGD(std::vector{ParameterGroup<ASGDOptions>{parameters, options}}, here) {}
  explicit ASGD(const std::vector<ParameterGroup<ASGDOptions>>& groups,
                Location here = Location::current());

  /// The average of parameter `index` of `group` since step t0.
  const Tensor& average(size_t index, size_t group = 0) { return state(group, index).average; }

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

}  // namespace taper::optim
