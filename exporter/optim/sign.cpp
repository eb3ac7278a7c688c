#include "taper/exporter/optim/sign.h"

#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {

Lion::Lion(const std::vector<ParameterGroup<LionOptions>>& groups, Location here)
    : WithBetas({"Lion", here}) {
  add_groups(groups, [&](const Tensor& p, const LionOptions& o) {
    check().not_negative({{"weight_decay", o.weight_decay}});
    check().betas(o.betas);
    return LionState{make_zeros("exp_avg", p)};
  });
}

void Lion::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const LionOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  Tensor& mean = state(group, index).mean;
  const Tensor g = decayed(gradient, o.maximize, parameter, 0);
  const Tensor direction = eager::sign(eager::add(mean * o.betas.first, g, 1 - o.betas.first));
  shrink(parameter, lr, o.weight_decay);
  parameter.sub_(direction * lr);
  average(mean, o.betas.second, g);
}

Rprop::Rprop(const std::vector<ParameterGroup<RpropOptions>>& groups, Location here)
    : PerParameter({"Rprop", here}) {
  add_groups(groups, [&](const Tensor& p, const RpropOptions& o) {
    const auto [shrink, grow] = o.etas;
    check().require(0 < shrink && shrink < 1 && 1 < grow,
                    "etas must be one in (0, 1) and one above 1, got " + eager::to_text(shrink) +
                        " and " + eager::to_text(grow));
    return RpropState{make_zeros("prev", p), make_full("step_size", p, p.sizes(), o.lr)};
  });
}

void Rprop::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const RpropOptions& o = options(group);
  auto& [previous, step_size] = state(group, index);
  Tensor g = decayed(gradient, o.maximize, parameter, 0);
  const Tensor agreement = g * previous;
  const Tensor turned = eager::lt(agreement, 0), kept = eager::gt(agreement, 0);
  const Tensor one = eager::full_like(g, 1);
  const Tensor factor =
      eager::where(turned, one * o.etas.first, eager::where(kept, one * o.etas.second, one));
  step_size.copy_(eager::clamp(step_size * factor, o.step_sizes.first, o.step_sizes.second));
  g = eager::masked_fill(g, turned, 0);
  parameter.sub_(eager::sign(g) * step_size);
  previous.copy_(g);
}

ASGD::ASGD(const std::vector<ParameterGroup<ASGDOptions>>& groups, Location here)
    : PerParameter({"ASGD", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const ASGDOptions& o) {
    check().not_negative({{"weight_decay", o.weight_decay}});
    return ASGDState{make_zeros("ax", p)};
  });
}

void ASGD::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const ASGDOptions& o = options(group);
  const Tensor &lr = lr_tensor(group), before = step_count() - 1.0;
  Tensor& mean = state(group, index).average;
  const Tensor g = decayed(gradient, o.maximize, parameter, o.weight_decay);
  const Tensor eta = lr * eager::pow(before * o.lambd * lr + 1.0, -o.alpha);
  shrink(parameter, eta, o.lambd);
  parameter.sub_(g * eta);
  mean.add_((parameter - mean) / eager::clamp_min(before - o.t0, 1));
}

}  // namespace taper::optim
