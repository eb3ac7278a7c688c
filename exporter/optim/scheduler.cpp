#include "taper/exporter/optim/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace taper::optim {
namespace {

double cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}
double line(double from, double to, double part) { return from + (to - from) * part; }

}  // namespace

Scheduler::Scheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t group = 0; group < optimizer.group_count(); ++group) optimizer.initial_lr(group);
}

void Scheduler::start(Location here) {
  for (size_t group = 0; group < optimizer_.group_count(); ++group)
    optimizer_.set_lr(next(optimizer_.lr(group), optimizer_.initial_lr(group)), group, here);
  set_momentum(here);
}

void Scheduler::step(Location here) {
  ++epoch_;
  start(here);
}

void Scheduler::restart_at_zero(Location here) {
  epoch_ = 0;
  for (size_t group = 0; group < optimizer_.group_count(); ++group)
    optimizer_.set_lr(at(optimizer_.initial_lr(group)), group, here);
  set_momentum(here);
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma, Location here)
    : Scheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  Check{"StepLR", here}.at_least("step_size", step_size, 1);
  start(here);
}
double StepLR::next(double rate, double) const {
  return epoch() == 0 || epoch() % step_size_ != 0 ? rate : rate * gamma_;
}
double StepLR::at(double base) const {
  return base * std::pow(gamma_, static_cast<double>(epoch() / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma,
                         Location here)
    : Scheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  start(here);
}
double MultiStepLR::next(double rate, double) const {
  return rate * std::pow(gamma_, static_cast<double>(
                                     std::count(milestones_.begin(), milestones_.end(), epoch())));
}
double MultiStepLR::at(double base) const {
  const auto passed =
      std::upper_bound(milestones_.begin(), milestones_.end(), epoch()) - milestones_.begin();
  return base * std::pow(gamma_, static_cast<double>(passed));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters, Location here)
    : Scheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  const Check check{"ConstantLR", here};
  check.share("factor", factor);
  check.at_least("total_iters", total_iters, 0);
  start(here);
}
double ConstantLR::next(double rate, double) const {
  return epoch() == 0 ? rate * factor_ : epoch() == total_iters_ ? rate / factor_ : rate;
}
double ConstantLR::at(double base) const { return epoch() < total_iters_ ? base * factor_ : base; }

LinearLR::LinearLR(Optimizer& optimizer, LinearLROptions options, Location here)
    : Scheduler(optimizer), options_(options) {
  const Check check{"LinearLR", here};
  check.option(options.start_factor > 0 && options.start_factor <= 1, "start_factor",
               options.start_factor, "in (0, 1]");
  check.share("end_factor", options.end_factor);
  check.at_least("total_iters", options.total_iters, 1);
  start(here);
}
double LinearLR::next(double rate, double) const {
  if (epoch() == 0) return rate * options_.start_factor;
  if (epoch() > options_.total_iters) return rate;
  const double total = static_cast<double>(options_.total_iters),
               rise = options_.end_factor - options_.start_factor;
  return rate *
         (1 + rise / (total * options_.start_factor + static_cast<double>(epoch() - 1) * rise));
}
double LinearLR::at(double base) const {
  const double part = static_cast<double>(std::min(epoch(), options_.total_iters)) /
                      static_cast<double>(options_.total_iters);
  return base * line(options_.start_factor, options_.end_factor, part);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma, Location here)
    : Scheduler(optimizer), gamma_(gamma) {
  start(here);
}
double ExponentialLR::next(double rate, double) const {
  return epoch() == 0 ? rate : rate * gamma_;
}
double ExponentialLR::at(double base) const {
  return base * std::pow(gamma_, static_cast<double>(epoch()));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power, Location here)
    : Scheduler(optimizer), total_iters_(total_iters), power_(power) {
  Check{"PolynomialLR", here}.at_least("total_iters", total_iters, 1);
  start(here);
}
double PolynomialLR::next(double rate, double) const {
  if (epoch() == 0 || epoch() > total_iters_) return rate;
  const double total = static_cast<double>(total_iters_), e = static_cast<double>(epoch());
  return rate * std::pow((1 - e / total) / (1 - (e - 1) / total), power_);
}
double PolynomialLR::at(double base) const {
  return base * std::pow(1 - static_cast<double>(std::min(epoch(), total_iters_)) /
                                 static_cast<double>(total_iters_),
                         power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min,
                                     Location here)
    : Scheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  Check{"CosineAnnealingLR", here}.at_least("t_max", t_max, 1);
  start(here);
}
double CosineAnnealingLR::next(double rate, double base) const {
  if (epoch() == 0) return rate;
  const double step = std::numbers::pi / static_cast<double>(t_max_),
               e = static_cast<double>(epoch());
  // At the bottom the ratio below would be 0 / 0.
  if ((epoch() - 1 - t_max_) % (2 * t_max_) == 0)
    return rate + (base - eta_min_) * (1 - std::cos(step)) / 2;
  return (1 + std::cos(step * e)) / (1 + std::cos(step * (e - 1))) * (rate - eta_min_) + eta_min_;
}
double CosineAnnealingLR::at(double base) const {
  return cosine(base, eta_min_, static_cast<double>(epoch()) / static_cast<double>(t_max_));
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0,
                                                         int64_t t_mult, double eta_min,
                                                         Location here)
    : Scheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min) {
  const Check check{"CosineAnnealingWarmRestarts", here};
  check.at_least("t_0", t_0, 1);
  check.at_least("t_mult", t_mult, 1);
  start(here);
}
double CosineAnnealingWarmRestarts::at(double base) const {
  int64_t length = t_0_, within = epoch();
  for (; within >= length; length *= t_mult_) within -= length;
  return cosine(base, eta_min_, static_cast<double>(within) / static_cast<double>(length));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleLROptions options, Location here)
    : Scheduler(optimizer), options_(options) {
  const Check check{"OneCycleLR", here};
  check.at_least("total_steps", options.total_steps, 1);
  check.share("pct_start", options.pct_start);
  start(here);
}
void OneCycleLR::start(Location here) {
  Check{"OneCycleLR", here}.require(
      epoch() < options_.total_steps,
      "step() goes beyond total_steps " + std::to_string(options_.total_steps));
  Scheduler::start(here);
}
/// A value that goes from start to top and on to end (with three phases: back to start before).
double OneCycleLR::between(double start, double top, double end) const {
  const double total = static_cast<double>(options_.total_steps),
               rise_end = options_.pct_start * total - 1, at = static_cast<double>(epoch());
  const auto curve = options_.linear ? line : cosine;
  if (at <= rise_end) return curve(start, top, at / rise_end);
  if (!options_.three_phase) return curve(top, end, (at - rise_end) / (total - 1 - rise_end));
  const double fall_end = 2 * options_.pct_start * total - 2;
  if (at <= fall_end) return curve(top, start, (at - rise_end) / (fall_end - rise_end));
  return curve(start, end, (at - fall_end) / (total - 1 - fall_end));
}
double OneCycleLR::at(double) const {
  const double start = options_.max_lr / options_.div_factor;
  return between(start, options_.max_lr, start / options_.final_div_factor);
}
void OneCycleLR::set_momentum(Location here) {
  if (!options_.cycle_momentum) return;
  for (size_t group = 0; group < optimizer().group_count(); ++group)
    optimizer().set_momentum(
        between(options_.max_momentum, options_.base_momentum, options_.max_momentum), group, here);
}

CyclicLR::CyclicLR(Optimizer& optimizer, CyclicLROptions options, Location here)
    : Scheduler(optimizer), options_(options) {
  if (options_.step_size_down == 0) options_.step_size_down = options_.step_size_up;
  const Check check{"CyclicLR", here};
  check.at_least("step_size_up", options_.step_size_up, 1);
  check.at_least("step_size_down", options_.step_size_down, 1);
  start(here);
}
/// Where between base (0) and maximum (1) this step stands.
double CyclicLR::height() const {
  const double up = static_cast<double>(options_.step_size_up),
               total = up + static_cast<double>(options_.step_size_down), rise = up / total;
  const double cycle = std::floor(1 + static_cast<double>(epoch()) / total),
               x = 1 + static_cast<double>(epoch()) / total - cycle;
  const double triangle = x <= rise ? x / rise : (x - 1) / (rise - 1);
  switch (options_.mode) {
    case CyclicLROptions::Mode::triangular2:
      return triangle / std::pow(2, cycle - 1);
    case CyclicLROptions::Mode::exp_range:
      return triangle * std::pow(options_.gamma, static_cast<double>(epoch()));
    case CyclicLROptions::Mode::triangular:
      break;
  }
  return triangle;
}
double CyclicLR::at(double) const { return line(options_.base_lr, options_.max_lr, height()); }
void CyclicLR::set_momentum(Location here) {
  if (!options_.cycle_momentum) return;
  for (size_t group = 0; group < optimizer().group_count(); ++group)
    optimizer().set_momentum(line(options_.max_momentum, options_.base_momentum, height()), group,
                             here);
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor, Location here)
    : Scheduler(optimizer), factor_(std::move(factor)) {
  Check{"LambdaLR", here}.require(factor_ != nullptr, "factor is no function");
  start(here);
}
double LambdaLR::at(double base) const { return base * factor_(epoch()); }

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> factor,
                                   Location here)
    : Scheduler(optimizer), factor_(std::move(factor)) {
  Check{"MultiplicativeLR", here}.require(factor_ != nullptr, "factor is no function");
  start(here);
}
double MultiplicativeLR::next(double rate, double) const {
  return epoch() == 0 ? rate : rate * factor_(epoch());
}
double MultiplicativeLR::at(double base) const {
  for (int64_t e = 1; e <= epoch(); ++e) base *= factor_(e);
  return base;
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<Scheduler>> schedulers,
                           std::vector<int64_t> milestones, Location here)
    : Scheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  const Check check{"SequentialLR", here};
  check.require(schedulers_.size() == milestones_.size() + 1,
                std::to_string(schedulers_.size()) +
                    " schedulers need one milestone fewer, there are " +
                    std::to_string(milestones_.size()));
  for (const auto& scheduler : schedulers_)
    check.require(scheduler && &scheduler->optimizer_ == &optimizer,
                  "its schedulers must move its own optimizer");
  schedulers_[0]->restart_at_zero(here);  // their constructors have all set the rate
}
void SequentialLR::step(Location here) {
  ++steps_;
  const auto active = static_cast<size_t>(
      std::upper_bound(milestones_.begin(), milestones_.end(), steps_) - milestones_.begin());
  if (active > 0 && milestones_[active - 1] == steps_)
    schedulers_[active]->restart_at_zero(here);
  else
    schedulers_[active]->step(here);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options,
                                     Location here)
    : optimizer_(optimizer), options_(options), best_(std::numeric_limits<double>::infinity()) {
  const Check check{"ReduceLROnPlateau", here};
  check.option(options.factor < 1, "factor", options.factor, "below 1");
  check.at_least("patience", options.patience, 0);
  if (options.mode == ReduceLROnPlateauOptions::Mode::max) best_ = -best_;
}

bool ReduceLROnPlateau::better(double metric) const {
  const double sign = options_.mode == ReduceLROnPlateauOptions::Mode::min ? -1 : 1;
  const bool relative = options_.threshold_mode == ReduceLROnPlateauOptions::Threshold::relative;
  const double bound =
      relative ? best_ * (1 + sign * options_.threshold) : best_ + sign * options_.threshold;
  return sign < 0 ? metric < bound : metric > bound;
}

void ReduceLROnPlateau::step(double metric, Location here) {
  if (better(metric))
    best_ = metric, bad_epochs_ = 0;
  else
    ++bad_epochs_;
  if (cooldown_left_ > 0) --cooldown_left_, bad_epochs_ = 0;
  if (bad_epochs_ <= options_.patience) return;
  reduce(here);
  cooldown_left_ = options_.cooldown, bad_epochs_ = 0;
}

void ReduceLROnPlateau::reduce(Location here) {
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    const double rate = optimizer_.lr(group),
                 lower = std::max(rate * options_.factor, options_.min_lr);
    if (rate - lower > options_.eps) optimizer_.set_lr(lower, group, here);
  }
}

}  // namespace taper::optim
