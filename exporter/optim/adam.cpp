#include "taper/exporter/optim/adam.h"

#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups, bool decoupled_weight_decay)
    : decoupled_(decoupled_weight_decay) {
  step_ = make_counter("step");
  for (const ParameterGroup<AdamOptions>& group : groups) {
    const AdamOptions& o = group.options;
    const auto is_beta = [](double b) { return b >= 0 && b < 1; };
    if (!is_beta(o.betas.first) || !is_beta(o.betas.second))
      throw ExportError("Adam: betas are in [0, 1)");
    add_group(group.parameters, o.lr);
    std::vector<Moments> moments;
    for (const Tensor& parameter : group.parameters) {
      Moments m{make_zeros("exp_avg", parameter), make_zeros("exp_avg_sq", parameter), {}};
      if (o.amsgrad) m.greatest_square = make_zeros("max_exp_avg_sq", parameter);
      moments.push_back(m);
    }
    options_.push_back(o);
    moments_.push_back(std::move(moments));
  }
  corrections_.resize(groups.size());
}

void Adam::begin_step(Location here) {
  step_.add_(Scalar(1), here);
  for (size_t group = 0; group < options_.size(); ++group) {
    const auto [beta1, beta2] = options_[group].betas;
    corrections_[group] = {one_minus_power(beta1, step_, here),
                           eager::sqrt(one_minus_power(beta2, step_, here), here)};
  }
}

void Adam::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                  Location here) {
  const AdamOptions& o = options_[group];
  const Tensor& lr = lr_tensor(group);
  Moments& m = moments_[group][index];
  Tensor g = o.maximize ? eager::neg(gradient, here) : gradient;
  if (o.weight_decay != 0) {
    if (decoupled_)
      parameter.mul_(
          eager::add(eager::mul(lr, Scalar(-o.weight_decay), here), Scalar(1), Scalar(1), here),
          here);
    else
      g = eager::add(g, parameter, Scalar(o.weight_decay), here);
  }
  m.mean.mul_(Scalar(o.betas.first), here).add_(g, Scalar(1 - o.betas.first), here);
  m.square.mul_(Scalar(o.betas.second), here)
      .add_(eager::mul(g, g, here), Scalar(1 - o.betas.second), here);
  if (o.amsgrad) m.greatest_square.copy_(eager::maximum(m.greatest_square, m.square, here), here);
  const auto& [correction1, root_correction2] = corrections_[group];
  const Tensor root = eager::div(eager::sqrt(o.amsgrad ? m.greatest_square : m.square, here),
                                 root_correction2, here);
  const Tensor denominator = eager::add(root, Scalar(o.eps), Scalar(1), here);
  parameter.sub_(
      eager::mul(eager::div(m.mean, denominator, here), eager::div(lr, correction1, here), here),
      Scalar(1), here);
}

std::vector<ParameterGroup<AdamOptions>> AdamW::as_adam(
    const std::vector<ParameterGroup<AdamWOptions>>& groups) {
  std::vector<ParameterGroup<AdamOptions>> result;
  for (const auto& [parameters, o] : groups)
    result.push_back({parameters,
                      {.lr = o.lr,
                       .betas = o.betas,
                       .eps = o.eps,
                       .weight_decay = o.weight_decay,
                       .amsgrad = o.amsgrad,
                       .maximize = o.maximize}});
  return result;
}

}  // namespace taper::optim
