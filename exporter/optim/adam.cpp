#include "taper/exporter/optim/adam.h"

#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups, bool decoupled_weight_decay,
           Location here)
    : WithBetas({decoupled_weight_decay ? "AdamW" : "Adam", here}),
      decoupled_(decoupled_weight_decay) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const AdamOptions& o) {
    check().not_negative({{"eps", o.eps}, {"weight_decay", o.weight_decay}});
    check().betas(o.betas);
    AdamState s{make_zeros("exp_avg", p), make_zeros("exp_avg_sq", p), {}};
    if (o.amsgrad) s.greatest_square = make_zeros("max_exp_avg_sq", p);
    return s;
  });
  corrections_.resize(groups.size());
}

void Adam::begin_step() {
  for (size_t group = 0; group < group_count(); ++group) {
    const auto [beta1, beta2] = options(group).betas;
    corrections_[group] = {one_minus_power(beta1, step_count()),
                           eager::sqrt(one_minus_power(beta2, step_count()))};
  }
}

void Adam::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const AdamOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  AdamState& s = state(group, index);
  update_moments(o, decoupled_, parameter, gradient, lr, s);
  if (o.amsgrad) s.greatest_square.copy_(eager::maximum(s.greatest_square, s.square));
  const Corrections& c = corrections_[group];
  const Tensor root = eager::sqrt(o.amsgrad ? s.greatest_square : s.square) / c.root;
  parameter.sub_(s.mean / (root + o.eps) * (lr / c.mean));
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
