#include "taper/exporter/optim/adaptive.h"

#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {

// ---- Adagrad ----

Adagrad::Adagrad(const std::vector<ParameterGroup<AdagradOptions>>& groups, Location here)
    : PerParameter({"Adagrad", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const AdagradOptions& o) {
    check().not_negative({{"eps", o.eps},
                          {"lr_decay", o.lr_decay},
                          {"weight_decay", o.weight_decay},
                          {"initial_accumulator_value", o.initial_accumulator_value}});
    return AdagradState{make_full("sum", p, p.sizes(), o.initial_accumulator_value)};
  });
}

void Adagrad::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const AdagradOptions& o = options(group);
  Tensor& sum = state(group, index).sum;
  const Tensor g = decayed(gradient, o.maximize, parameter, o.weight_decay);
  Tensor lr = lr_tensor(group);
  if (o.lr_decay != 0) lr = lr / (step_count() * o.lr_decay + (1 - o.lr_decay));
  sum.add_(g * g);
  parameter.sub_(g / (eager::sqrt(sum) + o.eps) * lr);
}

// ---- RMSprop ----

RMSprop::RMSprop(const std::vector<ParameterGroup<RMSpropOptions>>& groups, Location here)
    : PerParameter({"RMSprop", here}) {
  add_groups(groups, [&](const Tensor& p, const RMSpropOptions& o) {
    check().not_negative({{"eps", o.eps},
                          {"alpha", o.alpha},
                          {"momentum", o.momentum},
                          {"weight_decay", o.weight_decay}});
    RMSpropState s{make_zeros("square_avg", p), {}, {}};
    if (o.centered) s.mean = make_zeros("grad_avg", p);
    if (o.momentum != 0) s.momentum = make_zeros("momentum", p);
    return s;
  });
}

void RMSprop::set_momentum(double value, size_t group, Location here) {
  Check{"RMSprop", here}.require(options(group).momentum != 0, made_without_momentum(group));
  options(group).momentum = value;
}

void RMSprop::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const RMSpropOptions& o = options(group);
  RMSpropState& s = state(group, index);
  const Tensor g = decayed(gradient, o.maximize, parameter, o.weight_decay);
  average(s.square, o.alpha, g * g);
  Tensor variance = s.square;
  if (o.centered) {
    average(s.mean, o.alpha, g);
    variance = variance - s.mean * s.mean;
  }
  Tensor d = g / (eager::sqrt(variance) + o.eps);
  if (s.momentum.defined()) d = s.momentum.mul_(o.momentum).add_(d);
  parameter.sub_(d * lr_tensor(group));
}

// ---- Adadelta ----

Adadelta::Adadelta(const std::vector<ParameterGroup<AdadeltaOptions>>& groups, Location here)
    : PerParameter({"Adadelta", here}) {
  add_groups(groups, [&](const Tensor& p, const AdadeltaOptions& o) {
    check().not_negative({{"eps", o.eps}, {"weight_decay", o.weight_decay}});
    check().share("rho", o.rho);
    return AdadeltaState{make_zeros("square_avg", p), make_zeros("acc_delta", p)};
  });
}

void Adadelta::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const AdadeltaOptions& o = options(group);
  AdadeltaState& s = state(group, index);
  const Tensor g = decayed(gradient, o.maximize, parameter, o.weight_decay);
  average(s.square, o.rho, g * g);
  const Tensor d = eager::sqrt(s.delta + o.eps) / eager::sqrt(s.square + o.eps) * g;
  average(s.delta, o.rho, d * d);
  parameter.sub_(d * lr_tensor(group));
}

// ---- Adamax ----

Adamax::Adamax(const std::vector<ParameterGroup<AdamaxOptions>>& groups, Location here)
    : WithBetas({"Adamax", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const AdamaxOptions& o) {
    check().not_negative({{"eps", o.eps}, {"weight_decay", o.weight_decay}});
    check().betas(o.betas);
    return Moments{make_zeros("exp_avg", p), make_zeros("exp_inf", p)};
  });
}

void Adamax::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const AdamaxOptions& o = options(group);
  auto& [mean, greatest] = state(group, index);
  const Tensor g = decayed(gradient, o.maximize, parameter, o.weight_decay);
  average(mean, o.betas.first, g);
  greatest.copy_(eager::maximum(greatest * o.betas.second, eager::abs(g) + o.eps));
  const Tensor rate = lr_tensor(group) / one_minus_power(o.betas.first, step_count());
  parameter.sub_(mean / greatest * rate);
}

// ---- NAdam ----

NAdam::NAdam(const std::vector<ParameterGroup<NAdamOptions>>& groups, Location here)
    : PerParameter({"NAdam", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const NAdamOptions& o) {
    check().not_negative(
        {{"eps", o.eps}, {"weight_decay", o.weight_decay}, {"momentum_decay", o.momentum_decay}});
    check().betas(o.betas);
    return Moments{make_zeros("exp_avg", p), make_zeros("exp_avg_sq", p)};
  });
  for (size_t group = 0; group < groups.size(); ++group) {
    products_.push_back(
        make_counter(group == 0 ? "mu_product" : "mu_product." + std::to_string(group)));
    products_.back().fill_(Scalar(1));
  }
  factors_.resize(groups.size());
}

void NAdam::begin_step() {
  for (size_t group = 0; group < group_count(); ++group) {
    const NAdamOptions& o = options(group);
    const auto momentum_at = [&](const Tensor& t) {
      const Tensor decay = eager::exp(t * (std::log(0.96) * o.momentum_decay));  // 0.96^(t ψ)
      return decay * (-o.betas.first / 2) + o.betas.first;
    };
    const Tensor now = momentum_at(step_count()), next = momentum_at(step_count() + 1.0);
    Tensor& product = products_[group].mul_(now);
    factors_[group] = {one_minus_power(o.betas.second, step_count()),
                       one_minus(now) / one_minus(product), next / one_minus(product * next)};
  }
}

void NAdam::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const NAdamOptions& o = options(group);
  Moments& moments = state(group, index);
  const Tensor& lr = lr_tensor(group);
  const Tensor g = update_moments(o, o.decoupled_weight_decay, parameter, gradient, lr, moments);
  const auto& [mean, square] = moments;
  const Factors& f = factors_[group];
  const Tensor denominator = eager::sqrt(square / f.correction) + o.eps;
  parameter.sub_((g * f.gradient + mean * f.mean) / denominator * lr);
}

// ---- RAdam ----

RAdam::RAdam(const std::vector<ParameterGroup<RAdamOptions>>& groups, Location here)
    : PerParameter({"RAdam", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const RAdamOptions& o) {
    check().not_negative({{"eps", o.eps}, {"weight_decay", o.weight_decay}});
    check().betas(o.betas);
    return Moments{make_zeros("exp_avg", p), make_zeros("exp_avg_sq", p)};
  });
  factors_.resize(groups.size());
}

void RAdam::begin_step() {
  const Tensor t = step_count().to(DType::f64);  // ρ is a small difference of large numbers
  for (size_t group = 0; group < group_count(); ++group) {
    const auto [beta1, beta2] = options(group).betas;
    const double limit = 2 / (1 - beta2) - 1;
    const Tensor correction2 = one_minus_power(beta2, t);
    const Tensor rho = t * one_minus(correction2) / correction2 * -2.0 + limit;
    const Tensor squared = (rho - 4.0) * (rho - 2.0) * (limit / ((limit - 4) * (limit - 2))) / rho;
    const Tensor is_rectified = eager::gt(rho, 5);
    const Tensor positive = eager::where(is_rectified, squared, squared * 0.0);
    const DType dtype = lr_tensor(group).dtype();
    factors_[group] = {one_minus_power(beta1, t).to(dtype),
                       eager::sqrt(positive * correction2).to(dtype), is_rectified};
  }
}

void RAdam::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const RAdamOptions& o = options(group);
  Moments& moments = state(group, index);
  const Tensor& lr = lr_tensor(group);
  update_moments(o, o.decoupled_weight_decay, parameter, gradient, lr, moments);
  const auto& [mean, square] = moments;
  const Factors& f = factors_[group];
  const Tensor direction = mean / f.correction;
  const Tensor scaled = direction * f.rectified / (eager::sqrt(square) + o.eps);
  parameter.sub_(eager::where(f.is_rectified, scaled, direction) * lr);
}

}  // namespace taper::optim
