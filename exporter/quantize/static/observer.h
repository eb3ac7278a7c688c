// What observes an activation during calibration, and chooses the grid of its integers.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/quantize/static/grid.h"
#include "taper/exporter/quantize/static/histogram.h"

namespace taper::quantize {

enum class ObserverKind : uint8_t {
  min_max,         ///< from the least to the greatest value
  moving_average,  ///< the same, averaged over batches
  percentile,      ///< without the few smallest and greatest values
  histogram,       ///< least squared error; both ends are chosen
  mse,             ///< least squared error; one limit clips both ends
  kl,              ///< least Kullback-Leibler divergence
};

struct ObserverOptions {
  ObserverKind kind = ObserverKind::histogram;
  double percentile = 99.99;     ///< so many percent of the values lie below the upper end
  double new_batch_part = 0.01;  ///< of a moving average: the weight of a new batch
};

/// The names for options: "min-max", "moving-average", "percentile", "histogram", "mse", "kl".
std::vector<std::string> observer_names();
/// Throws ExportError, which lists the names.
ObserverKind observer_kind(std::string_view name);
std::string name_of(ObserverKind kind);

class Observer {
 public:
  virtual ~Observer() = default;
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Takes the values of one batch, which are f32 and finite. An empty batch changes nothing.
  void observe(const eager::Tensor& values);
  /// The grid for all values so far. Without any value it is that of the range [0, 0].
  virtual Grid qparams() const = 0;

  /// The counts of all values so far; nullptr: this kind does not count.
  virtual std::shared_ptr<const Histogram> histogram() const { return nullptr; }

  /// The least and the greatest value so far.
  float low() const { return low_; }
  float high() const { return high_; }
  bool is_empty() const { return is_empty_; }

 private:
  /// `elements` lie in [low, high], the range of this batch.
  virtual void add(std::span<const float> elements, float low, float high) = 0;

  float low_ = 0, high_ = 0;
  bool is_empty_ = true;
};

/// Throws ExportError for a percentile outside (50, 100] and a part outside (0, 1].
std::unique_ptr<Observer> make_observer(const ObserverOptions& options);

}  // namespace taper::quantize
