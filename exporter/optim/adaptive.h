// Optimizers that scale each element's step by its own past gradients. g is the gradient plus
// weight_decay · p, negated with `maximize`; t = 1, 2, … counts steps.
#pragma once
#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};
struct AdagradState {
  Tensor sum;
};
/// Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization",
/// 2011:
///   s = s + g²,   p = p - lr / (1 + (t - 1) lr_decay) · g / (√s + eps)
/// States: lr, step, sum.<parameter>.
class Adagrad : public PerParameter<AdagradOptions, AdagradState> {
 public:
  explicit Adagrad(const std::vector<Tensor>& parameters, AdagradOptions options = {},
                   Location here = Location::current())
      : Adagrad(std::vector{ParameterGroup<AdagradOptions>{parameters, options}}, here) {}
  explicit Adagrad(const std::vector<ParameterGroup<AdagradOptions>>& groups,
                   Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< how much of the running mean of g² a step keeps
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  ///< divide by the deviation instead of the root of the mean square
  bool maximize = false;
};
struct RMSpropState {
  Tensor square, mean, momentum;
};
/// Tieleman and Hinton, "Lecture 6.5: RMSProp", 2012:
///   v = α v + (1 - α) g²,   m = α m + (1 - α) g
///   d = g / (√v + eps), centered: g / (√(v - m²) + eps)
///   p = p - lr d, with momentum: b = momentum · b + d,  p = p - lr b
/// States: lr, square_avg.<parameter>, grad_avg.<parameter>, momentum.<parameter>.
class RMSprop : public PerParameter<RMSpropOptions, RMSpropState> {
 public:
  explicit RMSprop(const std::vector<Tensor>& parameters, RMSpropOptions options = {},
                   Location here = Location::current())
      : RMSprop(std::vector{ParameterGroup<RMSpropOptions>{parameters, options}}, here) {}
  explicit RMSprop(const std::vector<ParameterGroup<RMSpropOptions>>& groups,
                   Location here = Location::current());

  double momentum(size_t group = 0) const override { return options(group).momentum; }
  /// Throws EagerError if the group was made without momentum.
  void set_momentum(double value, size_t group = 0, Location here = Location::current()) override;

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;  ///< how much of the running means a step keeps
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
};
struct AdadeltaState {
  Tensor square, delta;
};
/// Zeiler, "ADADELTA: an adaptive learning rate method", 2012:
///   v = ρ v + (1 - ρ) g²,   d = √(u + eps) / √(v + eps) · g,   u = ρ u + (1 - ρ) d²
///   p = p - lr d
/// States: lr, square_avg.<parameter>, acc_delta.<parameter>.
class Adadelta : public PerParameter<AdadeltaOptions, AdadeltaState> {
 public:
  explicit Adadelta(const std::vector<Tensor>& parameters, AdadeltaOptions options = {},
                    Location here = Location::current())
      : Adadelta(std::vector{ParameterGroup<AdadeltaOptions>{parameters, options}}, here) {}
  explicit Adadelta(const std::vector<ParameterGroup<AdadeltaOptions>>& groups,
                    Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

/// The running means of g and g² of Adam's relatives.
struct Moments {
  Tensor mean, square;
};

struct AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
};
/// Kingma and Ba, "Adam: a method for stochastic optimization", 2015, section 7:
///   m = β₁ m + (1 - β₁) g,   u = max(β₂ u, |g| + eps),   p = p - lr / (1 - β₁ᵗ) · m / u
/// States: lr, step, exp_avg.<parameter>, exp_inf.<parameter>.
class Adamax : public WithBetas<AdamaxOptions, Moments> {
 public:
  explicit Adamax(const std::vector<Tensor>& parameters, AdamaxOptions options = {},
                  Location here = Location::current())
      : Adamax(std::vector{ParameterGroup<AdamaxOptions>{parameters, options}}, here) {}
  explicit Adamax(const std::vector<ParameterGroup<AdamaxOptions>>& groups,
                  Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  ///< p = p - lr · weight_decay · p instead, as AdamW
  bool maximize = false;
};
/// Dozat, "Incorporating Nesterov momentum into Adam", 2016, with μ_t = β₁ (1 - 0.96^(t ψ) / 2),
/// ψ = momentum_decay, and Π_t = μ₁ … μ_t:
///   p = p - lr / (√(v / (1 - β₂ᵗ)) + eps) · ((1 - μ_t) / (1 - Π_t) g + μ_{t+1} / (1 - Π_{t+1}) m)
/// m and v as in Adam. States: lr, step, mu_product, exp_avg.<parameter>, exp_avg_sq.<parameter>.
class NAdam : public PerParameter<NAdamOptions, Moments> {
 public:
  explicit NAdam(const std::vector<Tensor>& parameters, NAdamOptions options = {},
                 Location here = Location::current())
      : NAdam(std::vector{ParameterGroup<NAdamOptions>{parameters, options}}, here) {}
  explicit NAdam(const std::vector<ParameterGroup<NAdamOptions>>& groups,
                 Location here = Location::current());

 protected:
  void begin_step() override;
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;

 private:
  /// The factors of a group in this step: 1 - β₂ᵗ, and those of g and m.
  struct Factors {
    Tensor correction, gradient, mean;
  };
  std::vector<Tensor> products_;  // of each group
  std::vector<Factors> factors_;
};

struct RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  ///< p = p - lr · weight_decay · p instead, as AdamW
  bool maximize = false;
};
/// Liu et al., "On the variance of the adaptive learning rate and beyond", 2020. With
/// ρ∞ = 2 / (1 - β₂) - 1 and ρ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ):
///   p = p - lr / (1 - β₁ᵗ) · m · r √(1 - β₂ᵗ) / (√v + eps),
///   r = √((ρ - 4) (ρ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρ));   while ρ <= 5: p - lr / (1 - β₁ᵗ) · m
/// m and v as in Adam. States: lr, step, exp_avg.<parameter>, exp_avg_sq.<parameter>.
class RAdam : public PerParameter<RAdamOptions, Moments> {
 public:
  explicit RAdam(const std::vector<Tensor>& parameters, RAdamOptions options = {},
                 Location here = Location::current())
      : RAdam(std::vector{ParameterGroup<RAdamOptions>{parameters, options}}, here) {}
  explicit RAdam(const std::vector<ParameterGroup<RAdamOptions>>& groups,
                 Location here = Location::current());

 protected:
  void begin_step() override;
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;

 private:
  /// The numbers of a group in this step: 1 - β₁ᵗ, r √(1 - β₂ᵗ), and whether ρ > 5.
  struct Factors {
    Tensor correction, rectified, is_rectified;
  };
  std::vector<Factors> factors_;
};

}  // namespace taper::optim
