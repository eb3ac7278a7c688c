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

void Lion::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                  Location here) {
  const At at{here};
  const LionOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  Tensor& mean = state(group, index).mean;
  const Tensor g = at.decayed(gradient, o.maximize, parameter, 0);
  const Tensor direction =
      eager::sign(at.add(at.mul(mean, o.betas.first), g, 1 - o.betas.first), here);
  at.shrink(parameter, lr, o.weight_decay);
  parameter.sub_(at.mul(direction, lr), Scalar(1), here);
  at.average(mean, o.betas.second, g);
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

void Rprop::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                   Location here) {
  const At at{here};
  const RpropOptions& o = options(group);
  auto& [previous, step_size] = state(group, index);
  Tensor g = at.decayed(gradient, o.maximize, parameter, 0);
  const Tensor agreement = at.mul(g, previous);
  const Tensor turned = eager::lt(agreement, Scalar(0), here),
               kept = eager::gt(agreement, Scalar(0), here);
  const Tensor one = eager::full_like(g, Scalar(1), {}, here);
  const Tensor factor =
      eager::where(turned, at.mul(one, o.etas.first),
                   eager::where(kept, at.mul(one, o.etas.second), one, here), here);
  step_size.copy_(eager::clamp(at.mul(step_size, factor), Scalar(o.step_sizes.first),
                               Scalar(o.step_sizes.second), here),
                  here);
  g = eager::masked_fill(g, turned, Scalar(0), here);
  parameter.sub_(at.mul(eager::sign(g, here), step_size), Scalar(1), here);
  previous.copy_(g, here);
}

ASGD::ASGD(const std::vector<ParameterGroup<ASGDOptions>>& groups, Location here)
    : PerParameter({"ASGD", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const ASGDOptions& o) {
    check().not_negative({{"weight_decay", o.weight_decay}});
    return ASGDState{make_zeros("ax", p)};
  });
}

void ASGD::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                  Location here) {
  const At at{here};
  const ASGDOptions& o = options(group);
  const Tensor &lr = lr_tensor(group), before = at.add(step_count(), -1.0);
  Tensor& average = state(group, index).average;
  const Tensor g = at.decayed(gradient, o.maximize, parameter, o.weight_decay);
  const Tensor slowed = at.add(at.mul(at.mul(before, o.lambd), lr), 1.0);
  const Tensor eta = at.mul(lr, eager::pow(slowed, Scalar(-o.alpha), here));
  at.shrink(parameter, eta, o.lambd);
  parameter.sub_(at.mul(g, eta), Scalar(1), here);
  const Tensor count = eager::clamp_min(at.add(before, -o.t0), Scalar(1), here);
  average.add_(at.div(at.sub(parameter, average), count), Scalar(1), here);
}

}  // namespace taper::optim
