#include "taper/exporter/optim/optimizer.h"

#include <unordered_set>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::optim {

void Optimizer::step(Location here) {
  const PlaceScope scope(here);
  eager::NoGrad guard;
  if (step_count_.defined()) step_count_.add_(1);
  begin_step();
  for (size_t group = 0; group < groups_.size(); ++group)
    for (size_t i = 0; i < groups_[group].parameters.size(); ++i) {
      const Tensor& parameter = groups_[group].parameters[i];
      if (const Tensor gradient = parameter.grad(); gradient.defined())
        update(group, i, parameter, gradient);
    }
}

void Optimizer::zero_grad() {
  for (const Group& group : groups_)
    for (const Tensor& parameter : group.parameters) parameter.set_grad({});
}

void Optimizer::set_lr(double value, size_t group, Location here) {
  if (eager::recorder() != nullptr)
    throw EagerError(here,
                     "export: a learning rate that is set inside a traced function would become a "
                     "constant of the program; set it outside, and on the device write the "
                     "state \"" +
                         groups_.at(group).lr.name() + "\"");
  Group& g = groups_.at(group);
  g.lr_value = value;
  eager::NoGrad guard;
  g.lr.fill_(Scalar(value));
}

double Optimizer::initial_lr(size_t group) {
  Group& g = groups_.at(group);
  if (!g.initial_lr) g.initial_lr = g.lr_value;
  return *g.initial_lr;
}

double Optimizer::momentum(size_t) const {
  throw EagerError(made_.here, std::string(made_.type) + ": it has no momentum");
}
void Optimizer::set_momentum(double, size_t, Location here) {
  throw EagerError(here,
                   std::string(made_.type) + ": it has no momentum that a scheduler could move");
}

NamedTensors Optimizer::state_dict() const { return {states_.begin(), states_.end()}; }

void Optimizer::load_state_dict(const NamedTensors& state, Location here) {
  for (const auto& [name, tensor] : states_) {
    const auto given = state.find(name);
    if (given == state.end())
      throw EagerError(here, "Optimizer::load_state_dict: the state lacks '" + name + "'");
    if (!eager::same_sizes(given->second.sizes(), tensor.sizes()))
      throw EagerError(here, "Optimizer::load_state_dict: '" + name + "' is " +
                                 eager::to_string(given->second.sizes()) + " in the state, " +
                                 eager::to_string(tensor.sizes()) + " here");
  }
  eager::NoGrad guard;
  for (auto [name, tensor] : states_) tensor.copy_(state.at(name), here);
  for (Group& group : groups_) group.lr_value = group.lr.item();
}

void Optimizer::add_group(const std::vector<Tensor>& parameters, double lr) {
  const std::string of_group = groups_.empty() ? "" : " of group " + std::to_string(groups_.size());
  check().require(!parameters.empty(), "the list of parameters" + of_group + " is empty");
  check().not_negative({{"lr", lr}});
  std::unordered_set<const void*> known;
  for (const Group& group : groups_)
    for (const Tensor& parameter : group.parameters) known.insert(parameter.impl());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    std::string text = "parameter " + std::to_string(i) + of_group;
    check().require(parameter.defined(), text + " is undefined");
    if (!parameter.name().empty()) text += " '" + parameter.name() + "'";
    text += " " + eager::to_string(parameter.sizes());
    check().require(parameter.is_leaf(), text + " is the result of an operation, not a leaf");
    check().require(parameter.requires_grad(), text + " does not want a gradient");
    check().require(!is_complex(parameter.dtype()),
                    text +
                        " is complex; train its parts (view_as_real), and call view_as_complex "
                        "in the model");
    check().require(known.insert(parameter.impl()).second, text + " is given twice");
  }
  Group group;
  group.parameters = parameters;
  group.lr_value = lr;
  const DType dtype = parameters[0].dtype() == DType::f64 ? DType::f64 : DType::f32;
  const std::string number = groups_.empty() ? "" : "." + std::to_string(groups_.size());
  group.lr = make_state("lr" + number, eager::full({}, Scalar(lr), dtype));
  groups_.push_back(std::move(group));
}

std::string Optimizer::parameter_name(const Tensor& parameter) const {
  if (!parameter.name().empty()) return parameter.name();
  size_t number = 0;  // a parameter outside modules is called by its place
  for (const Group& group : groups_)
    for (const Tensor& other : group.parameters) {
      if (other.is_same(parameter)) return std::to_string(number);
      ++number;
    }
  return std::to_string(number);
}

Tensor Optimizer::make_state(const std::string& kind, const Tensor& value) {
  const std::string name = "optimizer." + kind;
  value.set_name(name);
  states_.emplace_back(name, value);
  return value;
}

Tensor Optimizer::make_zeros(const std::string& kind, const Tensor& like) {
  eager::NoGrad guard;
  return make_state(kind, like, eager::full(like.sizes(), Scalar(0), like.dtype()));
}

Tensor Optimizer::make_full(const std::string& kind, const Tensor& like, const eager::Dims& sizes,
                            double value) {
  eager::NoGrad guard;
  return make_state(kind, like, eager::full(sizes, Scalar(value), like.dtype()));
}

Tensor Optimizer::make_counter(const std::string& kind) {
  return make_state(kind, eager::full({}, Scalar(0), DType::f32));
}

}  // namespace taper::optim
