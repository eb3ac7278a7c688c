// What quantization did to each weight.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/quantize/matrix.h"

namespace taper::quantize {

struct WeightReport {
  std::string path;                  ///< "layers.0.mlp.up.weight"
  std::vector<std::string> readers;  ///< "linear in layers.0.mlp.up"
  std::vector<int64_t> sizes;
  std::string scheme;  ///< "q4_1 by gptq"; "": left as it is
  std::string why;     ///< why it was left
  int64_t bytes_before = 0, bytes_after = 0;
  Measure measure;
  int64_t padded_to = 0;  ///< rows got zeros up to this length; 0: they did not
  int64_t zero_rows = 0;  ///< rows without anything but zeros

  bool is_quantized() const { return !scheme.empty(); }
};

struct Report {
  std::string recipe;
  std::vector<WeightReport> weights;
  std::vector<std::string> notes;  ///< such as a rule that matched nothing
  int64_t samples = 0, rows = 0;   ///< of the calibration data

  int64_t bytes_before() const;
  int64_t bytes_after() const;
  /// Bits for each element of the weights that were quantized.
  double bits() const;
  /// The weights from the most harmed to the least, those that were left at the end.
  std::vector<const WeightReport*> by_harm() const;
};

/// A table for a terminal.
std::ostream& operator<<(std::ostream& out, const Report& report);
/// Its last line: how many weights, and their bytes.
void print_sum(std::ostream& out, const Report& report);

}  // namespace taper::quantize
