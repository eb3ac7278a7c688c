#include "taper/exporter/optim/rare/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::optim {
namespace {

using Vector = LBFGS::Vector;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
double greatest(const Vector& a) {
  double value = 0;
  for (const double x : a) value = std::max(value, std::abs(x));
  return value;
}
/// a += factor · b
void add_to(Vector& a, const Vector& b, double factor) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}
Vector times(Vector a, double factor) {
  for (double& x : a) x *= factor;
  return a;
}

/// The loss at length t along a direction.
struct Trial {
  double t, loss;
  Vector gradient;
  double slope;  ///< along the direction
};

/// The minimum of the cubic through two trials with their slopes, within [low, high].
double cubic_minimum(const Trial& a, const Trial& b, double low, double high) {
  const Trial &left = a.t <= b.t ? a : b, &right = a.t <= b.t ? b : a;
  const double d1 = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.t - right.t);
  const double square = d1 * d1 - left.slope * right.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double t = right.t - (right.t - left.t) *
                                 ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(t, low), high);
}

/// A length that satisfies the strong Wolfe conditions (Nocedal and Wright, (3.7)):
///   loss(t) <= loss(0) + c1 t slope(0),   |slope(t)| <= -c2 slope(0)
class LineSearch {
 public:
  using Evaluate = std::function<Trial(double t)>;

  LineSearch(Trial start, double reach, double tolerance, int64_t most_trials, Evaluate evaluate)
      : start_(std::move(start)),
        reach_(reach),
        tolerance_(tolerance),
        most_(most_trials),
        evaluate_(std::move(evaluate)) {}

  Trial run(double t) {
    bracket(t);
    while (!found_ && trials_ <= most_ && std::abs(high_.t - low_.t) * reach_ >= tolerance_) zoom();
    return low_;
  }
  int64_t trials() const { return trials_; }

 private:
  Trial at(double t) {
    ++trials_;
    return evaluate_(t);
  }
  bool falls_enough(const Trial& x) const {
    return x.loss <= start_.loss + 1e-4 * x.t * start_.slope;
  }
  bool is_flat(const Trial& x) const { return std::abs(x.slope) <= -0.9 * start_.slope; }
  void order(Trial a, Trial b) {
    low_ = std::move(a), high_ = std::move(b);
    if (high_.loss < low_.loss) std::swap(low_, high_);
  }

  /// Goes on until there is a minimum between the last two trials (algorithm 3.5).
  void bracket(double t) {
    Trial before = start_, now = at(t);
    for (int64_t i = 0; i < most_; ++i) {
      if (!falls_enough(now) || (i > 1 && now.loss >= before.loss)) return order(before, now);
      if (is_flat(now)) {
        found_ = true;
        low_ = std::move(now);
        return;
      }
      if (now.slope >= 0) return order(before, now);
      const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), 10 * now.t);
      before = std::move(now);
      now = at(next);
    }
    order(start_, now);
    found_ = true;  // nothing better within the number of trials
  }

  /// Makes the bracket smaller (algorithm 3.6). A trial that twice comes near an end is moved a
  /// tenth of the bracket away from it, so that the bracket shrinks.
  void zoom() {
    const double left = std::min(low_.t, high_.t), right = std::max(low_.t, high_.t),
                 tenth = 0.1 * (right - left);
    double t = cubic_minimum(low_, high_, left, right);
    const bool near_end = std::min(right - t, t - left) < tenth;
    if (near_end && (was_near_end_ || t >= right || t <= left)) {
      t = right - t < t - left ? right - tenth : left + tenth;
      was_near_end_ = false;
    } else {
      was_near_end_ = near_end;
    }
    Trial now = at(t);
    if (!falls_enough(now) || now.loss >= low_.loss) {
      order(low_, std::move(now));
      return;
    }
    if (is_flat(now))
      found_ = true;
    else if (now.slope * (high_.t - low_.t) >= 0)
      high_ = low_;
    low_ = std::move(now);
  }

  Trial start_, low_, high_;
  double reach_, tolerance_;
  int64_t most_, trials_ = 0;
  Evaluate evaluate_;
  bool found_ = false, was_near_end_ = false;
};

}  // namespace

LBFGS::LBFGS(const std::vector<Tensor>& parameters, LBFGSOptions options, Location here)
    : Optimizer({"LBFGS", here}), options_(options) {
  check().at_least("max_iter", options.max_iter, 1);
  check().at_least("history_size", options.history_size, 1);
  if (options_.max_eval == 0) options_.max_eval = options.max_iter * 5 / 4;
  add_group(parameters, options.lr);
}

void LBFGS::update(size_t, size_t, Tensor, const Tensor&) {
  throw EagerError(place(), "LBFGS: step needs a closure that computes the loss");
}

LBFGS::Point LBFGS::evaluate(const Closure& closure) const {
  eager::NoGrad enabled(true);
  Point point{closure().item(), {}};
  for (const Tensor& p : parameters()) {
    const Tensor g = p.grad();
    const std::vector<double> values =
        g.defined() ? g.detach().to(DType::f64).to_vector<double>()
                    : std::vector<double>(static_cast<size_t>(p.numel().value()), 0.0);
    point.gradient.insert(point.gradient.end(), values.begin(), values.end());
  }
  return point;
}

LBFGS::Vector LBFGS::read() const {
  Vector all;
  for (const Tensor& p : parameters()) {
    const std::vector<double> values = p.detach().to(DType::f64).to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void LBFGS::write(const Vector& x, Location here) const {
  eager::NoGrad guard;
  auto from = x.begin();
  for (Tensor p : parameters()) {
    const int64_t n = p.numel().value();
    p.copy_(Tensor::from(std::vector<double>(from, from + n), {n}, here)
                .to(p.dtype(), here)
                .view(p.sizes(), here),
            here);
    from += n;
  }
}

void LBFGS::remember(Vector step, Vector change) {
  const double product = dot(step, change);
  if (product <= 1e-10) return;  // no positive curvature to learn from
  if (static_cast<int64_t>(history_.size()) == options_.history_size) history_.pop_front();
  scale_ = product / dot(change, change);
  history_.push_back({std::move(step), std::move(change), 1 / product});
}

// The product of the approximated inverse Hessian and the negative gradient, in two loops.
LBFGS::Vector LBFGS::direction(const Vector& gradient) const {
  Vector q = times(gradient, -1);
  std::vector<double> alpha(history_.size());
  for (size_t i = history_.size(); i-- > 0;) {
    const Pair& pair = history_[i];
    alpha[i] = pair.inverse * dot(pair.step, q);
    add_to(q, pair.change, -alpha[i]);
  }
  q = times(std::move(q), scale_);
  for (size_t i = 0; i < history_.size(); ++i) {
    const Pair& pair = history_[i];
    add_to(q, pair.step, alpha[i] - pair.inverse * dot(pair.change, q));
  }
  return q;
}

double LBFGS::step(const Closure& closure, Location here) {
  if (eager::recorder() != nullptr)
    throw EagerError(here,
                     "LBFGS: how often the closure runs depends on the loss, so a step cannot "
                     "be traced");
  const LBFGSOptions& o = options_;
  Point now = evaluate(closure);
  const double first_loss = now.loss;
  int64_t evaluations = 1;
  if (greatest(now.gradient) <= o.tolerance_grad) return first_loss;
  for (int64_t i = 1;; ++i) {
    if (++iterations_ > 1) {
      Vector change = now.gradient;
      add_to(change, last_gradient_, -1);
      remember(times(direction_, length_), std::move(change));
    }
    direction_ = direction(now.gradient);
    last_gradient_ = now.gradient;
    const double loss_before = now.loss, slope = dot(now.gradient, direction_);
    length_ = lr();
    if (iterations_ == 1) {
      double sum = 0;
      for (const double g : now.gradient) sum += std::abs(g);
      length_ *= std::min(1.0, 1 / sum);
    }
    if (slope > -o.tolerance_change) break;

    const Vector start = read();
    const auto move = [&](double t) {
      Vector x = start;
      add_to(x, direction_, t);
      write(x, here);
    };
    if (o.strong_wolfe) {
      LineSearch search({0, now.loss, now.gradient, slope}, greatest(direction_),
                        o.tolerance_change, o.max_eval - evaluations, [&](double t) -> Trial {
                          move(t);
                          Point p = evaluate(closure);
                          const double along = dot(p.gradient, direction_);
                          return {t, p.loss, std::move(p.gradient), along};
                        });
      Trial best = search.run(length_);
      length_ = best.t;
      move(length_);
      now = {best.loss, std::move(best.gradient)};
      evaluations += search.trials();
    } else {
      move(length_);
      if (i == o.max_iter) break;  // whoever goes on evaluates the loss first
      now = evaluate(closure);
      ++evaluations;
    }
    if (i == o.max_iter || evaluations >= o.max_eval ||
        greatest(now.gradient) <= o.tolerance_grad ||
        greatest(direction_) * std::abs(length_) <= o.tolerance_change ||
        std::abs(now.loss - loss_before) < o.tolerance_change)
      break;
  }
  return first_loss;
}

}  // namespace taper::optim
