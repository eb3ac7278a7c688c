#pragma once
#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{
      0.9, 0.999};  ///< how much of the running means of g and g² a step keeps
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;  ///< divide by the greatest v so far
  bool maximize = false;
};
struct AdamState {
  Tensor mean, square, greatest_square;
};
/// Kingma and Ba, "Adam: a method for stochastic optimization", 2015:
///   g = gradient + weight_decay · p
///   m = β₁ m + (1 - β₁) g,   v = β₂ v + (1 - β₂) g²
///   p = p - lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + eps)                 t = 1, 2, …
/// States: lr, step, exp_avg.<parameter>, exp_avg_sq.<parameter>, with amsgrad
/// max_exp_avg_sq.<parameter>.
class Adam : public WithBetas<AdamOptions, AdamState> {
 public:
  explicit Adam(const std::vector<Tensor>& parameters, AdamOptions options = {},
                Location here = Location::current())
      : Adam(std::vector{ParameterGroup<AdamOptions>{parameters, options}}, here) {}
  explicit Adam(const std::vector<ParameterGroup<AdamOptions>>& groups,
                Location here = Location::current())
      : Adam(groups, false, here) {}

 protected:
  Adam(const std::vector<ParameterGroup<AdamOptions>>& groups, bool decoupled_weight_decay,
       Location here);
  void begin_step() override;
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;

 private:
  /// The factors of a group in this step: 1 - β₁ᵗ and √(1 - β₂ᵗ).
  struct Corrections {
    Tensor mean, root;
  };
  std::vector<Corrections> corrections_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019: Adam, but weight decay
/// does not enter the moments. Before the step, p = p - lr · weight_decay · p.
class AdamW : public Adam {
 public:
  explicit AdamW(const std::vector<Tensor>& parameters, AdamWOptions options = {},
                 Location here = Location::current())
      : AdamW(std::vector{ParameterGroup<AdamWOptions>{parameters, options}}, here) {}
  explicit AdamW(const std::vector<ParameterGroup<AdamWOptions>>& groups,
                 Location here = Location::current())
      : Adam(as_adam(groups), true, here) {}

 private:
  static std::vector<ParameterGroup<AdamOptions>> as_adam(
      const std::vector<ParameterGroup<AdamWOptions>>& groups);
};

}  // namespace taper::optim
