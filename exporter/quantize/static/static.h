// The front door of static quantization: a float model becomes one that computes on 8-bit integers,
// with scales from calibration data.
//
//   prepare_static(graph);                                    // batch norms are folded
//   equalize(graph);                                          // helps weights with one scale each
//   smooth(graph, examples, 0.5);                             // helps activations of transformers
//   const StaticOptions options{.observer = {ObserverKind::histogram}};
//   const Ranges ranges = calibrate(graph, examples, options);
//   const StaticResult result = quantize_static(graph, ranges, options);
//   print(std::cout, result.decisions);                       // what stays float, and why
//
// Activations have one scale and zero point each, in -128..127. Weights are symmetric in -127..127
// and have a scale for each output channel. Biases stay f32.
#pragma once
#include "taper/exporter/quantize/static/calibrate.h"
#include "taper/exporter/quantize/static/equalize.h"
#include "taper/exporter/quantize/static/prepare.h"
#include "taper/exporter/quantize/static/quantize.h"
#include "taper/exporter/quantize/static/sensitivity.h"
#include "taper/exporter/quantize/static/smooth.h"
