#include "taper/exporter/quantize/static/observer.h"

#include <algorithm>
#include <array>

#include "taper/exporter/base/error.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/static/range_search.h"

namespace taper::quantize {
namespace {

struct Name {
  ObserverKind kind;
  std::string_view name;
};
constexpr std::array names = {
    Name{ObserverKind::min_max, "min-max"},
    Name{ObserverKind::moving_average, "moving-average"},
    Name{ObserverKind::percentile, "percentile"},
    Name{ObserverKind::histogram, "histogram"},
    Name{ObserverKind::mse, "mse"},
    Name{ObserverKind::kl, "kl"},
};

class MinMax : public Observer {
 public:
  Grid qparams() const override { return affine_grid(low(), high()); }

 private:
  void add(std::span<const float>, float, float) override {}
};

/// Averages the ends of the ranges of batches.
class MovingAverage : public Observer {
 public:
  explicit MovingAverage(double new_batch_part) : part_(static_cast<float>(new_batch_part)) {}
  Grid qparams() const override { return affine_grid(average_low_, average_high_); }

 private:
  void add(std::span<const float>, float low, float high) override {
    if (is_empty()) {
      average_low_ = low, average_high_ = high;
    } else {
      average_low_ += part_ * (low - average_low_);
      average_high_ += part_ * (high - average_high_);
    }
  }

  float part_, average_low_ = 0, average_high_ = 0;
};

/// Searches the range in a histogram.
class Searching : public Observer {
 public:
  explicit Searching(const ObserverOptions& options) : options_(options) {}
  Grid qparams() const override {
    switch (options_.kind) {
      case ObserverKind::percentile:
        return grid_of_percentile(*histogram_, options_.percentile);
      case ObserverKind::mse:
        return grid_of_least_error(*histogram_, low(), high(), /*ends_apart=*/false);
      case ObserverKind::kl:
        return grid_of_least_divergence(*histogram_, low(), high());
      default:
        return grid_of_least_error(*histogram_, low(), high(), /*ends_apart=*/true);
    }
  }

  std::shared_ptr<const Histogram> histogram() const override { return histogram_; }

 private:
  void add(std::span<const float> elements, float low, float high) override {
    histogram_->add(elements, low, high);
  }

  ObserverOptions options_;
  std::shared_ptr<Histogram> histogram_ = std::make_shared<Histogram>();
};

}  // namespace

std::vector<std::string> observer_names() {
  std::vector<std::string> list;
  for (const Name& n : names) list.emplace_back(n.name);
  return list;
}

ObserverKind observer_kind(std::string_view name) {
  const auto* found = std::ranges::find(names, name, &Name::name);
  if (found == names.end())
    throw ExportError("there is no observer " + std::string(name) + "; the observers are " +
                      io::joined(observer_names()));
  return found->kind;
}

std::string name_of(ObserverKind kind) {
  return std::string(std::ranges::find(names, kind, &Name::kind)->name);
}

void Observer::observe(const eager::Tensor& values) {
  const eager::Tensor dense = values.contiguous();
  const auto count = static_cast<size_t>(dense.numel().value());
  if (count == 0) return;
  const std::span<const float> elements(dense.data<float>(), count);
  float low = elements[0], high = elements[0];
  for (const float x : elements) low = std::min(low, x), high = std::max(high, x);
  add(elements, low, high);
  low_ = is_empty_ ? low : std::min(low_, low);
  high_ = is_empty_ ? high : std::max(high_, high);
  is_empty_ = false;
}

std::unique_ptr<Observer> make_observer(const ObserverOptions& options) {
  if (!(options.percentile > 50 && options.percentile <= 100))
    throw ExportError("a percentile must lie above 50 and be at most 100");
  if (!(options.new_batch_part > 0 && options.new_batch_part <= 1))
    throw ExportError("the part of a new batch in a moving average must lie in (0, 1]");
  switch (options.kind) {
    case ObserverKind::min_max:
      return std::make_unique<MinMax>();
    case ObserverKind::moving_average:
      return std::make_unique<MovingAverage>(options.new_batch_part);
    default:
      return std::make_unique<Searching>(options);
  }
}

}  // namespace taper::quantize
