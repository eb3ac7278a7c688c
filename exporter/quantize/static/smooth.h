// SmoothQuant.
#pragma once
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

/// Makes channels of activations smaller where they are large, and the weights behind them larger.
/// Then one scale fits all channels better. A channel is divided by
///
///   max|x|^strength / max|w|^(1 - strength)
///
/// where a norm, a product or a vector before it can take the division. `strength` is in [0, 1];
/// 0.5 is usual. Helps language models, whose activations have a few large channels. Method of
/// G. Xiao and others, "SmoothQuant", 2022, arXiv:2211.10438. Call it after `prepare_static` and
/// before calibration. Returns how many activations it divided. Throws ExportError as `calibrate`.
int smooth(ir::Graph& graph, const Examples& examples, double strength,
           const Progress& progress = {});

}  // namespace taper::quantize
