#include "taper/exporter/cli/quantization.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <sstream>

#include "taper/exporter/cli/calibration_data.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/quantize_html.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/exporter/quantize/static/static.h"
#include "taper/exporter/quantize/static_recipe.h"

namespace taper::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// "quantizing fc1.weight, 12 of 40, 0:09 left"
class Shown {
 public:
  explicit Shown(Stages& stages) : stages_(stages) {}
  void operator()(const std::string& what, int64_t done, int64_t all) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    std::string text = what + ", " + std::to_string(done) + " of " + std::to_string(all);
    if (done > 0 && seconds > 1) {
      const auto left = static_cast<int64_t>(seconds / static_cast<double>(done) *
                                             static_cast<double>(all - done));
      const int64_t rest = left % 60;
      text += ", " + std::to_string(left / 60) + (rest < 10 ? ":0" : ":") + std::to_string(rest) +
              " left";
    }
    stages_.show(io::printable(text));
  }

 private:
  Stages& stages_;
  Clock::time_point begin_ = Clock::now();
};

quantize::Progress shown_as(const char* what, Stages& stages) {
  return [what, shown = Shown(stages)](size_t done, size_t all) {
    shown(what, static_cast<int64_t>(done), static_cast<int64_t>(all));
  };
}

}  // namespace

struct Quantization::Parts {
  QuantizeChoice choice;
  std::string model;
  std::optional<quantize::Recipe> recipe;
  std::optional<quantize::StaticOptions> static_options;
  quantize::Report report;
  std::ostringstream static_report;

  void run(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    if (static_options) return run_static(graphs, stages);
    quantize::Options options;
    if (!choice.calibrate.empty()) {
      options.samples = examples_for(*graphs.front());
      require_variety(options.samples);
    }
    options.progress = Shown(stages);
    report = quantize::quantize(graphs, *recipe, options);
  }

  quantize::Examples examples_for(const ir::Graph& graph) const {
    CalibrationOptions options{.pictures = choice.pictures,
                               .most = static_cast<size_t>(choice.samples),
                               .language_model = model};
    if (const auto& inputs = graph.inputs(); !inputs.empty() && inputs[0].value != nullptr)
      if (const ir::Type& type = inputs[0].value->type; type.rank == 2)  // (texts, tokens)
        options.window = std::min(options.window, static_cast<size_t>(type.sizes[1].upper()));
    return read_calibration(choice.calibrate, inputs_of(graph), options);
  }

  /// Throws if all floating elements of the examples are the same number.
  void require_variety(const quantize::Examples& examples) const {
    std::optional<float> first;
    for (size_t i = 0; i < examples.count; ++i)
      for (const eager::Tensor& input : examples.at(i)) {
        if (input.dtype() != DType::f32) continue;
        for (const float x : input.contiguous().to_vector<float>()) {
          if (first && x != *first) return;
          first = x;
        }
      }
    if (first)
      throw ExportError(choice.calibrate +
                        ": all elements are the same number, which teaches nothing; give data like "
                        "those that the model will get");
  }

  void run_static(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    if (graphs.size() != 1)
      throw ExportError("recipe " + recipe->name + ": static activations are for one method");
    ir::Graph& graph = *graphs.front();
    const quantize::Examples examples = examples_for(graph);
    for (const std::string& line : quantize::prepare_static(graph))
      static_report << "  " << io::printable(line) << '\n';
    const quantize::Ranges ranges =
        quantize::calibrate(graph, examples, *static_options, shown_as("calibrating", stages));
    for (const ir::Input& input : graph.inputs())
      if (const auto range = ranges.values.find(input.value == nullptr ? "" : input.value->name);
          range != ranges.values.end() && range->second.low == range->second.high)
        throw ExportError(choice.calibrate + ": every element of the input " + input.name +
                          " is the same number, which shows no ranges; give data like those that "
                          "the model will get");
    if (choice.sensitivity)
      quantize::print(static_report,
                      quantize::measure_sensitivity(graph, ranges, examples, *static_options,
                                                    shown_as("measuring", stages)));
    const quantize::StaticResult result = quantize::quantize_static(graph, ranges, *static_options);
    quantize::print(static_report, result.decisions);
    for (const auto* warnings : {&ranges.warnings, &result.warnings})
      for (const std::string& w : *warnings)
        static_report << "  warning: " << io::printable(w) << '\n';
    static_report << "  " << io::printable(recipe->name) << ": calibrated with "
                  << io::counted(static_cast<int64_t>(examples.count), "call") << '\n';
  }
};

Option add_quantize_options(Command& command, QuantizeChoice& choice) {
  const Option recipe =
      command.option("--recipe RECIPE", choice.recipe,
                     "Quantizes: int8, int8-weights, int8-dynamic, int4-g32, mixed, or a file");
  command.option("--calibrate DATA", choice.calibrate,
                 "Inputs that the recipe learns from: a .safetensors or .npy file, a folder of "
                 "pictures, or a .txt file for a language model");
  add_picture_options(command, choice.pictures);
  command.flag("--sensitivity", choice.sensitivity,
               "Recipes with static activations: runs the model for each node, and lists the nodes "
               "that do most harm");
  command.option("--samples N", choice.samples, "The most calls of the calibration data")
      .shows_default();
  command
      .option("--report FILE.html", choice.report,
              "Writes a page about the weights, from the most harmed")
      .checked_by(check_page);
  return recipe;
}

Quantization::Quantization(const QuantizeChoice& choice, std::string model)
    : parts_(std::make_unique<Parts>()) {
  parts_->choice = choice, parts_->model = std::move(model);
  if (!choice.recipe.empty()) parts_->recipe = quantize::find_recipe(choice.recipe);
  if (choice.samples < 1) throw UsageError("--samples", "it must be positive");
  for (const auto& [given, name] :
       {std::pair(&choice.calibrate, "--calibrate"), std::pair(&choice.report, "--report")})
    if (!given->empty() && !parts_->recipe) throw UsageError(name, "it needs --recipe");
  if (parts_->recipe) parts_->static_options = quantize::static_options(*parts_->recipe);
  if (choice.sensitivity && !parts_->static_options)
    throw UsageError("--sensitivity", "it is for recipes with static activations, such as int8");
  if (!parts_->static_options) return;
  if (choice.calibrate.empty())
    throw UsageError("--calibrate", "the recipe " + choice.recipe +
                                        " needs inputs, which show what ranges activations have");
  if (!choice.report.empty())
    throw UsageError("--report", "static recipes have no page; --sensitivity prints a table");
}
Quantization::~Quantization() = default;

int Quantization::stages() const { return parts_->recipe ? 1 : 0; }

void Quantization::add_to(ExportOptions& options, Stages& stages) {
  if (!parts_->recipe) return;
  options.before_passes = [this, &stages](const std::vector<ir::Graph*>& graphs) {
    stages.begin("quantizing");
    parts_->run(graphs, stages);
  };
}

void Quantization::print(std::ostream& out, bool all) const {
  if (!parts_->recipe) return;
  out << parts_->static_report.view();
  if (parts_->static_options) return;
  if (all)
    out << parts_->report;
  else
    quantize::print_sum(out, parts_->report);
  if (parts_->choice.report.empty()) return;
  std::ostringstream page;
  write_quantize_html(
      page, std::filesystem::path(parts_->model).filename().string() + ", " + parts_->recipe->name,
      parts_->report);
  io::write_file(parts_->choice.report, std::as_bytes(std::span(page.view())));
  out << "wrote " << io::printable(parts_->choice.report) << '\n';
}

}  // namespace taper::cli
