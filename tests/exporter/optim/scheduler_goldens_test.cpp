// Schedulers against PyTorch's learning rates, epoch by epoch, in f64.
#include <functional>

#include "taper/exporter/optim/optim.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::tests {
namespace {

using namespace optim;
using SchedulerPtr = std::shared_ptr<Scheduler>;

SchedulerPtr make(const std::string& name, const Json& a, Optimizer& optimizer);

SchedulerPtr make_one_cycle(const Json& a, Optimizer& optimizer) {
  OneCycleLROptions o{.max_lr = a["max_lr"], .total_steps = a["total_steps"]};
  o.pct_start = a.value("pct_start", o.pct_start);
  o.linear = a.value("anneal_strategy", "cos") == "linear";
  o.div_factor = a.value("div_factor", o.div_factor);
  o.final_div_factor = a.value("final_div_factor", o.final_div_factor);
  o.three_phase = a.value("three_phase", false);
  return std::make_shared<OneCycleLR>(optimizer, o);
}

SchedulerPtr make_cyclic(const Json& a, Optimizer& optimizer) {
  CyclicLROptions o{
      .base_lr = a["base_lr"], .max_lr = a["max_lr"], .step_size_up = a["step_size_up"]};
  o.step_size_down = a.value("step_size_down", int64_t{0});
  const std::string mode = a["mode"];
  o.mode = mode == "triangular2" ? CyclicLROptions::Mode::triangular2
           : mode == "exp_range" ? CyclicLROptions::Mode::exp_range
                                 : CyclicLROptions::Mode::triangular;
  o.gamma = a.value("gamma", 1.0);
  return std::make_shared<CyclicLR>(optimizer, o);
}

std::vector<SchedulerPtr> make_all(const Json& list, Optimizer& optimizer) {
  std::vector<SchedulerPtr> schedulers;
  for (const Json& entry : list) schedulers.push_back(make(entry[0], entry[1], optimizer));
  return schedulers;
}

SchedulerPtr make(const std::string& name, const Json& a, Optimizer& optimizer) {
  if (name == "StepLR") return std::make_shared<StepLR>(optimizer, a["step_size"], a["gamma"]);
  if (name == "MultiStepLR")
    return std::make_shared<MultiStepLR>(optimizer, a["milestones"], a["gamma"]);
  if (name == "ExponentialLR") return std::make_shared<ExponentialLR>(optimizer, a["gamma"]);
  if (name == "ConstantLR")
    return std::make_shared<ConstantLR>(optimizer, a["factor"], a["total_iters"]);
  if (name == "LinearLR")
    return std::make_shared<LinearLR>(optimizer,
                                      LinearLROptions{.start_factor = a["start_factor"],
                                                      .end_factor = a.value("end_factor", 1.0),
                                                      .total_iters = a["total_iters"]});
  if (name == "PolynomialLR")
    return std::make_shared<PolynomialLR>(optimizer, a["total_iters"], a.value("power", 1.0));
  if (name == "CosineAnnealingLR")
    return std::make_shared<CosineAnnealingLR>(optimizer, a["T_max"], a.value("eta_min", 0.0));
  if (name == "CosineAnnealingWarmRestarts")
    return std::make_shared<CosineAnnealingWarmRestarts>(
        optimizer, a["T_0"], a.value("T_mult", int64_t{1}), a.value("eta_min", 0.0));
  if (name == "OneCycleLR") return make_one_cycle(a, optimizer);
  if (name == "CyclicLR") return make_cyclic(a, optimizer);
  if (name == "LambdaLR")
    return std::make_shared<LambdaLR>(
        optimizer, [](int64_t epoch) { return std::pow(0.95, epoch); });  // "0.95 ** epoch"
  if (name == "MultiplicativeLR")
    return std::make_shared<MultiplicativeLR>(optimizer, [](int64_t) { return 0.9; });  // "0.9"
  if (name == "SequentialLR")
    return std::make_shared<SequentialLR>(optimizer, make_all(a["schedulers"], optimizer),
                                          a["milestones"]);
  return nullptr;
}

ReduceLROnPlateauOptions plateau_options(const Json& a) {
  ReduceLROnPlateauOptions o;
  if (a.value("mode", "min") == "max") o.mode = ReduceLROnPlateauOptions::Mode::max;
  if (a.value("threshold_mode", "rel") == "abs")
    o.threshold_mode = ReduceLROnPlateauOptions::Threshold::absolute;
  o.factor = a.value("factor", o.factor);
  o.patience = a.value("patience", o.patience);
  o.threshold = a.value("threshold", o.threshold);
  o.cooldown = a.value("cooldown", o.cooldown);
  o.min_lr = a.value("min_lr", o.min_lr);
  o.eps = a.value("eps", o.eps);
  return o;
}

void expect_rates(const Json& c, const Optimizer& optimizer, size_t epoch) {
  const double expected = c["lr"][epoch];
  EXPECT_NEAR(optimizer.lr(), expected, 1e-12 + 1e-9 * expected) << "epoch " << epoch;
  if (c.contains("momentum_values")) {
    EXPECT_NEAR(optimizer.momentum(), c["momentum_values"][epoch].get<double>(), 1e-9)
        << "epoch " << epoch;
  }
}

TEST(schedulers, agree_with_pytorch_in_every_epoch) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/schedulers.json");
  const io::Bytes text = io::read_file(path);
  Coverage coverage("schedulers");
  for (const Json& c : Json::parse(reinterpret_cast<const char*>(text.data()),
                                   reinterpret_cast<const char*>(text.data()) + text.size())) {
    const std::string name = c["scheduler"];
    SCOPED_TRACE(c["id"].get<std::string>() + " " + c["args"].dump());
    const Tensor weight = Tensor::from<float>({1}, {1});
    weight.set_requires_grad();
    SGD optimizer({weight}, {.lr = c["base_lr"], .momentum = c["momentum"]});
    std::function<void(size_t)> step;
    if (name == "ReduceLROnPlateau") {
      step = [&,
              plateau = std::make_shared<ReduceLROnPlateau>(optimizer, plateau_options(c["args"]))](
                 size_t epoch) { plateau->step(c["metrics"][epoch]); };
    } else if (name == "ChainedScheduler") {
      step = [chained = std::make_shared<ChainedScheduler>(
                  make_all(c["args"]["schedulers"], optimizer))](size_t) { chained->step(); };
    } else if (const SchedulerPtr scheduler = make(name, c["args"], optimizer)) {
      step = [scheduler](size_t) { scheduler->step(); };
    } else {
      coverage.left_out(name);
      continue;
    }
    coverage.ran();
    expect_rates(c, optimizer, 0);
    // The one-cycle case has one rate more than steps: beyond its last step the schedule has no
    // rate.
    const size_t steps =
        name == "OneCycleLR"
            ? std::min<size_t>(c["lr"].size(), c["args"]["total_steps"].get<size_t>())
            : c["lr"].size();
    for (size_t epoch = 1; epoch < steps; ++epoch) {
      step(epoch - 1);
      expect_rates(c, optimizer, epoch);
      if (HasFailure()) break;
    }
  }
  coverage.expect_complete();
}

}  // namespace
}  // namespace taper::tests
