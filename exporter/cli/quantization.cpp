#include "taper/exporter/cli/quantization.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <sstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/quantize_html.h"
#include "taper/exporter/cli/samples.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/quantize.h"

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

}  // namespace

struct Quantization::Parts {
  QuantizeChoice choice;
  std::string model;
  std::optional<quantize::Recipe> recipe;
  quantize::Report report;

  void run(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    quantize::Options options;
    if (!choice.calibrate.empty()) {
      options.samples = read_samples(choice.calibrate, model, *graphs.front(), choice.samples);
    }
    options.progress = Shown(stages);
    report = quantize::quantize(graphs, *recipe, options);
  }
};

Option add_quantize_options(Command& command, QuantizeChoice& choice) {
  const Option recipe =
      command.option("--recipe RECIPE", choice.recipe,
                     "Quantizes weights: int8-weights, int8-dynamic, int4-g32, mixed, or a file");
  command.option("--calibrate DATA", choice.calibrate,
                 "Inputs that the recipe learns from: a .safetensors or .npy file, or a .txt file "
                 "for a language model");
  command.option("--samples N", choice.samples, "The most calls of the calibration data")
      .shows_default();
  command
      .option("--report FILE.html", choice.report,
              "Writes a page about the weights, from the most harmed")
      .checked_by([](const std::string& file) -> std::string {
        return file.ends_with(".html") ? "" : file + ": the name of a page must end in .html";
      });
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
