#pragma once
#include <deque>
#include <functional>

#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;           ///< iterations of one step
  int64_t max_eval = 0;            ///< evaluations of one step; 0: 5 / 4 max_iter
  double tolerance_grad = 1e-7;    ///< stops where no element of the gradient is greater
  double tolerance_change = 1e-9;  ///< stops where parameters or loss change by less
  int64_t history_size = 100;
  /// Searches along the line for the strong Wolfe conditions. Without it, every iteration moves by
  /// lr.
  bool strong_wolfe = false;
};

/// Limited-memory BFGS: Nocedal and Wright, "Numerical optimization", 2006, algorithm 7.5, with the
/// line search of algorithms 3.5 and 3.6. The first iteration moves by min(1, 1 / |g|₁) · lr.
///
///   optim::LBFGS optimizer(net.parameters());
///   optimizer.step([&] {
///     optimizer.zero_grad();
///     Tensor l = loss(net(x), y);
///     l.backward();
///     return l;
///   });
///
/// A step cannot be traced, because the number of calls of the closure depends on the loss.
/// state_dict() does not contain the history.
class LBFGS : public Optimizer {
 public:
  using Closure = std::function<Tensor()>;
  using Vector = std::vector<double>;

  explicit LBFGS(const std::vector<Tensor>& parameters, LBFGSOptions options = {},
                 Location here = Location::current());

  /// `closure` clears the gradients, computes the loss and its gradients, and returns the loss.
  /// `step` returns the loss before the step. Throws EagerError inside a trace.
  double step(const Closure& closure, Location here = Location::current());

 protected:
  /// LBFGS needs a closure.
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;

 private:
  /// The loss and its gradient, with all parameters in one vector.
  struct Point {
    double loss = 0;
    Vector gradient;
  };
  struct Pair {
    Vector step, change;  ///< of the parameters, and of the gradient with it
    double inverse;       ///< 1 / (step · change)
  };

  Point evaluate(const Closure& closure) const;
  Vector read() const;
  void write(const Vector& x, Location here) const;
  void remember(Vector step, Vector change);
  Vector direction(const Vector& gradient) const;

  LBFGSOptions options_;
  std::deque<Pair> history_;
  double scale_ = 1;  // of the first approximation of the inverse Hessian
  int64_t iterations_ = 0;
  double length_ = 0;  // of the last move along direction_
  Vector direction_, last_gradient_;
};

}  // namespace taper::optim
