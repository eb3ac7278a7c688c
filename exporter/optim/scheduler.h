// Learning rates that change over time. A scheduler starts from the rates of an optimizer and sets
// new ones. Call step() after each epoch (for OneCycleLR and CyclicLR after each batch). The values
// are PyTorch's, computed in f64.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

/// Keeps the optimizer by reference: it must outlive the scheduler.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Goes to the next epoch and sets its rates.
  virtual void step(Location here = Location::current());
  int64_t epoch() const { return epoch_; }

 protected:
  /// Constructors of derived classes end with start().
  explicit Scheduler(Optimizer& optimizer);
  /// Sets the rates of epoch 0.
  virtual void start(Location here);
  /// The rate of this epoch, computed from the rate of the epoch before; in epoch 0, from the
  /// current rate. So schedulers can be chained.
  virtual double next(double rate, double base) const { return (void)rate, at(base); }
  /// The rate of this epoch, computed from the base rate alone.
  virtual double at(double base) const = 0;
  /// Changes the momentum, in schedulers that do so.
  virtual void set_momentum(Location) {}
  Optimizer& optimizer() const { return optimizer_; }

 private:
  friend class SequentialLR;
  void restart_at_zero(Location here);

  Optimizer& optimizer_;
  int64_t epoch_ = 0;
};

/// Multiplies the rate by gamma every `step_size` epochs.
class StepLR : public Scheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1,
         Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  int64_t step_size_;
  double gamma_;
};

/// Multiplies the rate by gamma at each epoch in `milestones`. An epoch that is named twice counts
/// twice.
class MultiStepLR : public Scheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1,
              Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// base · factor during the first `total_iters` epochs, then base.
class ConstantLR : public Scheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5,
             Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  double factor_;
  int64_t total_iters_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3, end_factor = 1;
  int64_t total_iters = 5;
};
/// Goes from base · start_factor in a straight line to base · end_factor, in `total_iters` epochs.
class LinearLR : public Scheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, LinearLROptions options = {},
                    Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  LinearLROptions options_;
};

/// Multiplies the rate by gamma every epoch.
class ExponentialLR : public Scheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma, Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  double gamma_;
};

/// base · (1 - epoch / total_iters)^power, then 0.
class PolynomialLR : public Scheduler {
 public:
  PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1,
               Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  int64_t total_iters_;
  double power_;
};

/// eta_min + (base - eta_min) (1 + cos(π epoch / t_max)) / 2. After t_max, the rate rises again.
class CosineAnnealingLR : public Scheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0,
                    Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  int64_t t_max_;
  double eta_min_;
};

/// The falling half of that cosine, again and again: t_0 epochs, then t_mult times as many, ….
/// Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.
class CosineAnnealingWarmRestarts : public Scheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1,
                              double eta_min = 0, Location here = Location::current());

 private:
  double at(double base) const override;
  int64_t t_0_, t_mult_;
  double eta_min_;
};

struct OneCycleLROptions {
  double max_lr = 0.1;
  int64_t total_steps = 0;
  double pct_start = 0.3;      ///< the part of the steps in which the rate rises
  bool linear = false;         ///< in straight lines instead of cosines
  bool cycle_momentum = true;  ///< the momentum falls from max to base while the rate rises
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25;         ///< starts at max_lr / div_factor
  double final_div_factor = 1e4;  ///< ends at that / final_div_factor
  bool three_phase = false;  ///< falls to the start in as many steps as it rose, then to the end
};
/// Rises to max_lr and falls to nearly 0, once. Smith and Topin, "Super-convergence", 2018. Throws
/// EagerError beyond total_steps.
class OneCycleLR : public Scheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLROptions options, Location here = Location::current());

 private:
  void start(Location here) override;
  double at(double base) const override;
  void set_momentum(Location here) override;
  double between(double start, double top, double end) const;
  OneCycleLROptions options_;
};

struct CyclicLROptions {
  double base_lr = 0.001, max_lr = 0.01;
  int64_t step_size_up = 2000;
  int64_t step_size_down = 0;  ///< 0: step_size_up
  enum class Mode {
    triangular,
    triangular2,
    exp_range
  } mode = Mode::triangular;  ///< as it is; halved each cycle; · gamma^step
  double gamma = 1;
  bool cycle_momentum = true;
  double base_momentum = 0.8, max_momentum = 0.9;
};
/// Rises and falls between base_lr and max_lr. Smith, "Cyclical learning rates for training neural
/// networks", 2017.
class CyclicLR : public Scheduler {
 public:
  CyclicLR(Optimizer& optimizer, CyclicLROptions options, Location here = Location::current());

 private:
  double at(double base) const override;
  void set_momentum(Location here) override;
  double height() const;
  CyclicLROptions options_;
};

/// base · factor(epoch)
class LambdaLR : public Scheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t epoch)> factor,
           Location here = Location::current());

 private:
  double at(double base) const override;
  std::function<double(int64_t)> factor_;
};

/// Multiplies the rate by factor(epoch), from epoch 1 on.
class MultiplicativeLR : public Scheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t epoch)> factor,
                   Location here = Location::current());

 private:
  double next(double rate, double base) const override;
  double at(double base) const override;
  std::function<double(int64_t)> factor_;
};

/// One scheduler after the other. The second one takes over at epoch milestones[0], and so on. Each
/// begins at its own epoch 0.
class SequentialLR : public Scheduler {
 public:
  /// Throws EagerError unless there is one milestone less than there are schedulers.
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<Scheduler>> schedulers,
               std::vector<int64_t> milestones, Location here = Location::current());
  void step(Location here = Location::current()) override;

 private:
  double at(double base) const override { return base; }
  std::vector<std::shared_ptr<Scheduler>> schedulers_;
  std::vector<int64_t> milestones_;
  int64_t steps_ = 0;
};

/// Several schedulers at once. Their factors multiply.
class ChainedScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<Scheduler>> schedulers)
      : schedulers_(std::move(schedulers)) {}
  void step(Location here = Location::current()) {
    for (const auto& scheduler : schedulers_) scheduler->step(here);
  }

 private:
  std::vector<std::shared_ptr<Scheduler>> schedulers_;
};

struct ReduceLROnPlateauOptions {
  enum class Mode {
    min,
    max
  } mode = Mode::min;  ///< what a better metric is: a smaller or a larger one
  double factor = 0.1;
  int64_t patience = 10;    ///< epochs without a better one that are borne
  double threshold = 1e-4;  ///< how much better counts
  enum class Threshold { relative, absolute } threshold_mode = Threshold::relative;
  int64_t cooldown = 0;  ///< epochs after a reduction that do not count as bad
  double min_lr = 0;
  double eps = 1e-8;  ///< a smaller change of the rate is left out
};
/// Multiplies the rate by factor when a metric has stopped improving.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {},
                             Location here = Location::current());
  void step(double metric, Location here = Location::current());

 private:
  bool better(double metric) const;
  void reduce(Location here);

  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooldown_left_ = 0;
};

}  // namespace taper::optim
