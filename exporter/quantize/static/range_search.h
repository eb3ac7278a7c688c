// Searches the range that fits the values of a histogram best.
#pragma once
#include "taper/exporter/quantize/static/grid.h"
#include "taper/exporter/quantize/static/histogram.h"

namespace taper::quantize {

/// `percent` percent of the values lie below the upper end, and as many above the lower one.
Grid grid_of_percentile(const Histogram& histogram, double percent);

/// The range inside [low, high] whose grid has the least squared error. `ends_apart`: each end is
/// chosen. Otherwise one limit clips the magnitudes at both ends.
Grid grid_of_least_error(const Histogram& histogram, float low, float high, bool ends_apart);

/// The range inside [low, high], clipped by one limit, whose grid keeps the distribution best:
/// least Kullback-Leibler divergence between the clipped values and those on the grid. Method of S.
/// Migacz, "8-bit Inference with TensorRT", GTC 2017.
Grid grid_of_least_divergence(const Histogram& histogram, float low, float high);

}  // namespace taper::quantize
