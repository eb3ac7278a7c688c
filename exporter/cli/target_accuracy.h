// `taper quantize --target-accuracy "top-1 >= 0.98"`: how good a quantized model must stay.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/calibration_data.h"
#include "taper/exporter/export_options.h"
#include "taper/exporter/quantize/metric.h"

namespace taper::cli {

struct AccuracyGoal {
  quantize::Metric metric = quantize::Metric::cosine;
  std::string command;  ///< Metric::other: prints a number about a program
  quantize::Goal goal;

  std::string metric_name() const;
};

/// "top-1 >= 0.98", "perplexity <= 6.2", "cosine >= 0.999", "./score.sh >= 0.7". Throws UsageError.
AccuracyGoal parse_goal(const std::string& text);
/// The error of such a text; "" if there is none.
std::string check_goal(const std::string& text);

/// Data to measure a model on. For top-1, a .safetensors file with the inputs and the integers
/// `labels`, or a folder with a folder of pictures for each class, in the order of their names.
quantize::TestData read_test_data(const std::filesystem::path& path,
                                  const std::vector<Callable::Input>& inputs,
                                  const CalibrationOptions& options, quantize::Metric metric);

/// Measures models as the programs that they become.
class ProgramMeter {
 public:
  /// `data` may be empty for a command. The export's target, exactness and dtype count.
  ProgramMeter(const AccuracyGoal& goal, quantize::TestData data,
               const std::vector<ir::Graph*>& unchanged, const ExportOptions& options,
               const quantize::Progress& progress);

  /// Runs the passes over the graphs.
  quantize::Score run(const std::vector<ir::Graph*>& graphs);

 private:
  double result_of_command(const std::vector<ir::Graph*>& graphs) const;

  AccuracyGoal goal_;
  ExportOptions options_;
  size_t measured_ = 0;  ///< the graph that gets the data
  std::unique_ptr<quantize::Meter> meter_;
  std::optional<double> unchanged_result_;  ///< of the command
};

/// The curve of size against metric. `what` has these sizes: "all weights".
void print_curve(std::ostream& out, const AccuracyGoal& goal, const quantize::SearchResult& result,
                 const std::string& what);

}  // namespace taper::cli
