#include "taper/exporter/optim/sgd.h"

#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {

SGD::SGD(const std::vector<ParameterGroup<SGDOptions>>& groups, Location here)
    : PerParameter({"SGD", here}) {
  bool dampened = false;
  add_groups(groups, [&](const Tensor& p, const SGDOptions& o) {
    check().not_negative({{"momentum", o.momentum}, {"weight_decay", o.weight_decay}});
    check().require(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                    "nesterov needs momentum and no dampening");
    dampened = dampened || (o.momentum != 0 && o.dampening != 0);
    return o.momentum != 0 ? SGDState{make_zeros("momentum", p)} : SGDState{};
  });
  if (dampened) count_steps();
  gradient_share_.resize(groups.size());
}

void SGD::set_momentum(double value, size_t group, Location here) {
  Check{"SGD", here}.require(state(group, 0).momentum.defined(), made_without_momentum(group));
  options(group).momentum = value;
}

void SGD::begin_step() {
  if (!step_count().defined()) return;
  const Tensor first = eager::eq(step_count(), 1).to(DType::f32);
  for (size_t group = 0; group < group_count(); ++group) {
    const double dampening = options(group).dampening;  // 1 - dampening + dampening · first
    gradient_share_[group] = first * dampening + (1 - dampening);
  }
}

void SGD::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const SGDOptions& o = options(group);
  Tensor g = decayed(gradient, o.maximize, parameter, o.weight_decay);
  if (Tensor& m = state(group, index).momentum; m.defined()) {
    m.mul_(o.momentum).add_(o.dampening != 0 ? g * gradient_share_[group] : g);
    g = o.nesterov ? eager::add(g, m, o.momentum) : m;
  }
  parameter.sub_(g * lr_tensor(group));
}

}  // namespace taper::optim
