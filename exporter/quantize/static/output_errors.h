// How far the outputs of a model are from those that they stand for. Internal.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/quantize/static/signal_error.h"

namespace taper::quantize {

using Numbers = std::vector<float>;

/// The f32 outputs of a run.
inline std::vector<Numbers> float_outputs(const ir::Interpretation& run) {
  std::vector<Numbers> outputs;
  for (const eager::Tensor& t : run.outputs)
    if (t.defined() && t.dtype() == DType::f32) outputs.push_back(t.to_vector<float>());
  return outputs;
}

/// The errors of several outputs.
class OutputErrors {
 public:
  void add(const std::vector<Numbers>& got, const std::vector<Numbers>& want) {
    errors_.resize(want.size());
    for (size_t i = 0; i < want.size(); ++i) errors_[i].add(got[i], want[i]);
  }
  /// The mean over the outputs.
  double noise() const {
    double sum = 0;
    for (const SignalError& e : errors_) sum += e.noise();
    return errors_.empty() ? 0 : sum / static_cast<double>(errors_.size());
  }
  /// The least of all outputs; NaN if one has NaN.
  double cosine() const {
    double least = 1;
    for (const SignalError& e : errors_) {
      if (std::isnan(e.cosine())) return e.cosine();
      least = std::min(least, e.cosine());
    }
    return least;
  }

 private:
  std::vector<SignalError> errors_;
};

}  // namespace taper::quantize
