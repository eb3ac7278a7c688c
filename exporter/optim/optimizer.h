// The base of all optimizers. An update is ordinary eager code, in place and off the tape. So a
// whole training step can be traced. All state tensors exist from construction on. In a program
// they become states with names such as "optimizer.lr", "optimizer.step",
// "optimizer.momentum.conv1.weight".
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/eager/named_tensors.h"
#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/optim/check.h"

namespace taper::optim {

using eager::NamedTensors;
using eager::Tensor;

/// Parameters that share options: `optim::AdamW optimizer({{weights, {.weight_decay = 0.1}},
/// {biases, {.weight_decay = 0}}})`.
template <class Options>
struct ParameterGroup {
  std::vector<Tensor> parameters;
  Options options;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter that has a gradient. Parameters without a gradient keep their values
  /// and states.
  void step(Location here = Location::current());
  /// Clears the gradients.
  void zero_grad();

  size_t group_count() const { return groups_.size(); }
  const std::vector<Tensor>& parameters(size_t group = 0) const {
    return groups_.at(group).parameters;
  }
  /// The learning rate that `set_lr` or a scheduler set last. An exported program has its own state
  /// "optimizer.lr"; on the device, write that state.
  double lr(size_t group = 0) const { return groups_.at(group).lr_value; }
  void set_lr(double value, size_t group = 0, Location here = Location::current());
  /// The rate from which schedulers compute: the rate when the first scheduler was made.
  double initial_lr(size_t group = 0);

  /// The momentum of SGD, or the first beta of Adam; OneCycleLR and CyclicLR change it. It is a
  /// number: a traced step keeps the value of its trace. Throws EagerError if the optimizer has
  /// none.
  virtual double momentum(size_t group = 0) const;
  virtual void set_momentum(double value, size_t group = 0, Location here = Location::current());

  /// The state tensors by name. `load_state_dict` copies values and throws EagerError if names or
  /// shapes differ.
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state, Location here = Location::current());

 protected:
  struct Group {
    std::vector<Tensor> parameters;
    Tensor lr;  ///< 0-dim: f64 if the parameters are, else f32
    double lr_value = 0;
    std::optional<double> initial_lr;
  };

  /// `made` is the class and the line that called its constructor, for errors.
  explicit Optimizer(Check made) : made_(made) {}
  const Check& check() const { return made_; }
  /// Throws EagerError if there are no parameters, if one is given twice, or if one is not a leaf
  /// that wants a gradient.
  void add_group(const std::vector<Tensor>& parameters, double lr);
  /// A new state tensor, "optimizer.<kind>".
  Tensor make_state(const std::string& kind, const Tensor& value);
  /// A new state tensor, "optimizer.<kind>.<parameter's name>".
  Tensor make_state(const std::string& kind, const Tensor& parameter, const Tensor& value) {
    return make_state(kind + "." + parameter_name(parameter), value);
  }
  Tensor make_zeros(const std::string& kind, const Tensor& like);
  /// The same with one value everywhere, and sizes of its own.
  Tensor make_full(const std::string& kind, const Tensor& like, const eager::Dims& sizes,
                   double value);
  /// A 0-dim f32 state of value 0.
  Tensor make_counter(const std::string& kind);
  /// From now on the state "step" counts steps, from 1 in the first.
  void count_steps() { step_count_ = make_counter("step"); }
  const Tensor& step_count() const { return step_count_; }

  /// Runs once a step, before the updates.
  virtual void begin_step() {}
  /// Changes parameter `index` of `group`, in place.
  virtual void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) = 0;

  const Tensor& lr_tensor(size_t group) const { return groups_[group].lr; }
  static std::string made_without_momentum(size_t group) {
    return "group " + std::to_string(group) + " was made without momentum";
  }

 private:
  std::string parameter_name(const Tensor& parameter) const;

  Check made_;
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, Tensor>> states_;
  Tensor step_count_;
};

/// An optimizer whose groups have `Options`, which include `lr`. Each parameter has a `State`.
template <class Options, class State>
class PerParameter : public Optimizer {
 protected:
  using Optimizer::Optimizer;
  /// Makes the states: `make(parameter, options)` gives a parameter's state. Constructors of
  /// derived classes call this.
  template <class Make>
  void add_groups(const std::vector<ParameterGroup<Options>>& groups, const Make& make) {
    for (const ParameterGroup<Options>& group : groups) {
      add_group(group.parameters, group.options.lr);
      std::vector<State> states;
      for (const Tensor& parameter : group.parameters)
        states.push_back(make(parameter, group.options));
      options_.push_back(group.options);
      states_.push_back(std::move(states));
    }
  }
  const Options& options(size_t group) const { return options_.at(group); }
  Options& options(size_t group) { return options_.at(group); }
  State& state(size_t group, size_t index) { return states_[group][index]; }

 private:
  std::vector<Options> options_;
  std::vector<std::vector<State>> states_;
};

/// An optimizer whose momentum is the first of its `betas`.
template <class Options, class State>
class WithBetas : public PerParameter<Options, State> {
 public:
  double momentum(size_t group = 0) const override { return this->options(group).betas.first; }
  void set_momentum(double value, size_t group = 0, Location = Location::current()) override {
    this->options(group).betas.first = value;
  }

 protected:
  using PerParameter<Options, State>::PerParameter;
};

/// Scales all gradients by one factor, in place, so that their common norm is at most `max_norm`.
/// norm_type: 1, 2, …, or INFINITY. Returns the norm before the scaling, a 0-dim tensor.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       Location here = Location::current());
/// Clips each element of all gradients to ±clip_value, in place.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value,
                      Location here = Location::current());

}  // namespace taper::optim
