#include "taper/exporter/optim/sgd.h"

#include "taper/exporter/eager/ops/pointwise.h"

namespace taper::optim {

SGD::SGD(const std::vector<ParameterGroup<SGDOptions>>& groups) {
  for (const ParameterGroup<SGDOptions>& group : groups) {
    const SGDOptions& o = group.options;
    if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
      throw ExportError("SGD: nesterov needs momentum and no dampening");
    add_group(group.parameters, o.lr);
    std::vector<Tensor> momenta;
    if (o.momentum != 0)
      for (const Tensor& parameter : group.parameters)
        momenta.push_back(make_zeros("momentum", parameter));
    if (o.momentum != 0 && o.dampening != 0 && !step_.defined()) step_ = make_counter("step");
    options_.push_back(o);
    momenta_.push_back(std::move(momenta));
  }
  gradient_share_.resize(groups.size());
}

void SGD::set_momentum(double value, size_t group) {
  if (momenta_.at(group).empty()) throw ExportError("SGD: this group was made without momentum");
  options_[group].momentum = value;
}

void SGD::begin_step(Location here) {
  if (!step_.defined()) return;
  const Tensor first = eager::eq(step_, Scalar(0), here).to(DType::f32, here);
  for (size_t group = 0; group < options_.size(); ++group) {
    const double dampening = options_[group].dampening;  // 1 - dampening + dampening · first
    gradient_share_[group] = eager::add(eager::mul(first, Scalar(dampening), here),
                                        Scalar(1 - dampening), Scalar(1), here);
  }
  step_.add_(Scalar(1), here);
}

void SGD::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                 Location here) {
  const SGDOptions& o = options_[group];
  Tensor g = o.maximize ? eager::neg(gradient, here) : gradient;
  if (o.weight_decay != 0) g = eager::add(g, parameter, Scalar(o.weight_decay), here);
  if (!momenta_[group].empty()) {
    Tensor& m = momenta_[group][index];
    m.mul_(Scalar(o.momentum), here);
    m.add_(o.dampening != 0 ? eager::mul(g, gradient_share_[group], here) : g, Scalar(1), here);
    g = o.nesterov ? eager::add(g, m, Scalar(o.momentum), here) : m;
  }
  parameter.sub_(eager::mul(g, lr_tensor(group), here), Scalar(1), here);
}

}  // namespace taper::optim
