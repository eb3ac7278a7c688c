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
#include "taper/exporter/cli/module_times.h"
#include "taper/exporter/cli/prune_html.h"
#include "taper/exporter/cli/quantize_html.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/cli/static_html.h"
#include "taper/exporter/cli/target_accuracy.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/awq.h"
#include "taper/exporter/quantize/prune.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/exporter/quantize/static/static.h"
#include "taper/exporter/quantize/static_recipe.h"
#include "taper/exporter/quantize/target.h"

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
  std::optional<quantize::StaticRecipe> integers;  ///< static activations
  std::optional<quantize::Pruning> pruning;
  std::optional<AccuracyGoal> goal;
  std::optional<ProgramMeter> meter;  ///< of the goal
  ExportOptions exported;             ///< how the program is written
  std::string data_warning;           ///< about the data; "": there is none
  quantize::PruneReport prune_report;
  quantize::Report report;
  std::ostringstream static_report, search_report, static_page;

  void run(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    if (goal) meter.emplace(meter_for(graphs, stages));  // beside the whole model
    if (pruning) prune(graphs, stages);
    if (!recipe) return;
    if (integers) return run_static(graphs, stages);
    quantize::Options options;
    if (!choice.calibrate.empty()) options.samples = varied_examples_for(*graphs.front());
    if (goal) search_recipe(graphs, options, stages);
    options.progress = Shown(stages);
    report = quantize::quantize(graphs, *recipe, options);
  }

  quantize::Examples examples_for(const ir::Graph& graph) {
    CalibrationOptions options = data_options(graph);
    options.most = static_cast<size_t>(choice.samples);
    quantize::Examples examples = read_calibration(choice.calibrate, inputs_of(graph), options);
    if (std::filesystem::path(choice.calibrate).extension() == ".txt" && examples.count == 1)
      warn_of_short_text(examples.at(0).at(0).numel().value(), options.window);
    return examples;
  }

  void warn_of_short_text(int64_t tokens, size_t window) {
    if (tokens >= static_cast<int64_t>(window)) return;
    data_warning = "warning: " + choice.calibrate + " has only " + io::counted(tokens, "token") +
                   "; the model learns little below " + std::to_string(window);
  }

  quantize::Examples varied_examples_for(const ir::Graph& graph) {
    quantize::Examples examples = examples_for(graph);
    require_variety(examples);
    return examples;
  }

  bool learns_zeros() const {
    return pruning && pruning->method != quantize::Pruning::Method::magnitude;
  }
  void prune(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    quantize::Examples examples;
    if (learns_zeros()) examples = varied_examples_for(*graphs.front());
    prune_report = quantize::prune(graphs, *pruning, examples, shown_as("pruning", stages));
  }

  CalibrationOptions data_options(const ir::Graph& graph) const {
    CalibrationOptions options{.pictures = choice.pictures, .language_model = model};
    if (const auto& inputs = graph.inputs(); !inputs.empty() && inputs[0].value != nullptr)
      if (const ir::Type& type = inputs[0].value->type; type.rank == 2)  // (texts, tokens)
        options.window = std::min(options.window, static_cast<size_t>(type.sizes[1].upper()));
    return options;
  }

  // ---- --target-accuracy

  ProgramMeter meter_for(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    const std::string& data = choice.evaluate.empty() ? choice.calibrate : choice.evaluate;
    const ir::Graph& graph = *graphs.front();
    quantize::TestData tests;
    if (!data.empty())
      tests = read_test_data(data, inputs_of(graph), data_options(graph), goal->metric);
    warn_of_one_class(data, tests.labels);
    return {*goal, std::move(tests), graphs, exported, shown_as("measuring the model", stages)};
  }

  /// A model that always gives this class would be right.
  void warn_of_one_class(const std::string& data, const std::vector<int64_t>& labels) {
    if (labels.size() < 2 || std::ranges::any_of(labels, [&](int64_t l) { return l != labels[0]; }))
      return;
    data_warning = "warning: all " + io::counted(static_cast<int64_t>(labels.size()), "label") +
                   " of " + data + " are the same class, so top-1 says little";
  }

  quantize::Target target_of(Stages& stages) {
    return {goal->goal, [this](const std::vector<ir::Graph*>& g) { return meter->run(g); },
            shown_as("searching", stages)};
  }

  void search_recipe(const std::vector<ir::Graph*>& graphs, const quantize::Options& options,
                     Stages& stages) {
    quantize::scale_for_activations(graphs, *recipe, options);
    for (quantize::Rule& rule : recipe->rules) rule.scheme.awq = false;  // that is done
    quantize::BlockTarget found = quantize::recipe_for(graphs, *recipe, options, target_of(stages));
    print_curve(search_report, *goal, found.search, "weights that can be quantized");
    *recipe = std::move(found.recipe);
  }

  void search_static(ir::Graph& graph, const quantize::Ranges& ranges, Stages& stages) {
    quantize::StaticTarget found =
        quantize::static_options_for(graph, ranges, integers->options, target_of(stages));
    print_curve(search_report, *goal, found.search, "weights and results of nodes");
    integers->options = std::move(found.options);
  }

  /// Throws if all floating elements of the examples are the same number; without floats, if all
  /// elements of each input are.
  void require_variety(const quantize::Examples& examples) const {
    std::optional<float> first;
    std::vector<std::optional<double>> of_input;  // its first integer
    bool has_integers = false, integers_vary = false;
    for (size_t i = 0; i < examples.count; ++i) {
      const std::vector<eager::Tensor> example = examples.at(i);
      of_input.resize(example.size());
      for (size_t k = 0; k < example.size(); ++k) {
        const eager::Tensor input = example[k].contiguous();
        if (input.dtype() == DType::f32) {
          for (const float x : input.to_vector<float>()) {
            if (first && x != *first) return;
            first = x;
          }
        } else if (!integers_vary && input.numel().value() > 0) {
          const std::vector<double> values = input.to(DType::f64).to_vector<double>();
          if (of_input[k]) has_integers = true;  // more than one example
          if (!of_input[k]) of_input[k] = values[0];
          has_integers |= values.size() > 1;
          integers_vary = std::ranges::any_of(values, [&](double x) { return x != *of_input[k]; });
        }
      }
    }
    if (first || (has_integers && !integers_vary))
      throw ExportError(choice.calibrate +
                        ": all elements are the same number, which teaches nothing; give data like "
                        "those that the model will get");
  }

  void read_goal() {
    if (choice.target.empty()) {
      if (!choice.evaluate.empty()) throw UsageError("--evaluate", "it needs --target-accuracy");
      return;
    }
    goal = parse_goal(choice.target);
    goal->goal.is_pruned = pruning.has_value();
    if (goal->metric != quantize::Metric::other && choice.evaluate.empty() &&
        choice.calibrate.empty())
      throw UsageError("--evaluate", goal->metric_name() + " is measured on data; name them");
  }

  /// Brings a graph into the form that calibration takes.
  void prepare(ir::Graph& graph, const quantize::Examples& examples, Stages& stages) {
    for (const std::string& line : quantize::prepare_static(graph))
      static_report << "  " << io::printable(line) << '\n';
    if (integers->equalize)
      static_report << "  equalized " << io::counted(quantize::equalize(graph), "pair")
                    << " of products\n";
    if (!integers->smooth) return;
    const int inputs =
        quantize::smooth(graph, examples, *integers->smooth, shown_as("smoothing", stages));
    static_report << "  smoothed " << io::counted(inputs, "input") << " of products\n";
  }

  void require_variety(const ir::Graph& graph, const quantize::Ranges& ranges) const {
    for (const ir::Input& input : graph.inputs())
      if (const auto range = ranges.values.find(input.value == nullptr ? "" : input.value->name);
          range != ranges.values.end() && range->second.low == range->second.high)
        throw ExportError(choice.calibrate + ": every element of the input " + input.name +
                          " is the same number, which shows no ranges; give data like those that "
                          "the model will get");
  }

  void run_static(const std::vector<ir::Graph*>& graphs, Stages& stages) {
    if (graphs.size() != 1)
      throw ExportError("recipe " + recipe->name + ": static activations are for one method");
    ir::Graph& graph = *graphs.front();
    const quantize::Examples examples = varied_examples_for(graph);
    prepare(graph, examples, stages);
    const quantize::Ranges ranges =
        quantize::calibrate(graph, examples, integers->options, shown_as("calibrating", stages));
    require_variety(graph, ranges);
    if (goal) search_static(graph, ranges, stages);
    std::optional<quantize::Sensitivity> sensitivity;
    if (choice.sensitivity || !choice.report.empty())
      sensitivity = quantize::measure_sensitivity(graph, ranges, examples, integers->options,
                                                  shown_as("measuring", stages));
    if (choice.sensitivity) quantize::print(static_report, *sensitivity);
    const quantize::StaticResult result =
        quantize::quantize_static(graph, ranges, integers->options);
    quantize::print(static_report, result.decisions);
    std::vector<std::string> facts;
    for (const auto* warnings : {&ranges.warnings, &result.warnings})
      for (const std::string& w : *warnings) facts.push_back("warning: " + w);
    facts.push_back(recipe->name + ": calibrated with " +
                    io::counted(static_cast<int64_t>(examples.count), "call"));
    if (integers->options.weight_bits < 4)
      facts.push_back("warning: weights of " + std::to_string(integers->options.weight_bits) +
                      " bits that were not trained for it harm most models; measure it with "
                      "--target-accuracy or --sensitivity");
    for (const std::string& fact : facts) static_report << "  " << io::printable(fact) << '\n';
    if (!choice.report.empty())
      write_static_html(static_page, title(), facts, ranges, *sensitivity, result.decisions);
  }

  /// Of the page: "lenet.pt2, wanda 2:4, int8".
  std::string title() const {
    std::string title = std::filesystem::path(model).filename().string();
    if (pruning) title += ", " + prune_report.how;
    if (recipe) title += ", " + recipe->name;
    return title;
  }

  void write_page(std::ostream& out, const std::string& program) const {
    if (choice.report.empty()) return;
    std::ostringstream page;
    if (!recipe)
      write_prune_html(page, title(), prune_report);
    else if (integers)
      page << static_page.view();
    else
      write_quantize_html(page, title(), report, module_times(program));
    io::write_file(choice.report, std::as_bytes(std::span(page.view())));
    out << "wrote " << io::printable(choice.report) << '\n';
  }
};

void add_quantize_options(Command& command, QuantizeChoice& choice) {
  const std::string recipes = "Quantizes: " + io::joined(quantize::recipe_names()) +
                              ", or a file; kv-int8 and kv-int4 quantize the caches of a language "
                              "model";
  command.option("--recipe RECIPE", choice.recipe, recipes.c_str());
  command.option("--calibrate DATA", choice.calibrate,
                 "Inputs that the recipe learns from: a .safetensors or .npy file, a folder of "
                 "pictures, or a .txt file for a language model");
  add_picture_options(command, choice.pictures);
  add_prune_options(command, choice.prune);
  command.flag("--sensitivity", choice.sensitivity,
               "Recipes with static activations: runs the model for each node, and lists the nodes "
               "that do most harm");
  command.option("--samples N", choice.samples, "The most calls of the calibration data")
      .shows_default();
  command
      .option(
          "--target-accuracy GOAL", choice.target,
          "Gives layers more bits than the recipe, as far as this goal needs it: \"top-1 >= "
          "0.98\", \"perplexity <= 6.2\", \"cosine >= 0.999\", or \"COMMAND >= 0.7\" for a command "
          "that gets the name of a program, and prints a number")
      .checked_by(check_goal);
  command.option(
      "--evaluate DATA", choice.evaluate,
      "Data to measure --target-accuracy on; default: those of --calibrate. For top-1, a "
      ".safetensors file with `labels`, or a folder of pictures for each class");
  command
      .option("--report FILE.html", choice.report,
              "Writes a page about the weights or nodes, from the most harmed")
      .checked_by(check_page);
}

Quantization::Quantization(const QuantizeChoice& choice, std::string model)
    : parts_(std::make_unique<Parts>()) {
  parts_->choice = choice, parts_->model = std::move(model);
  if (!choice.recipe.empty()) parts_->recipe = quantize::find_recipe(choice.recipe);
  if (choice.samples < 1) throw UsageError("--samples", "it must be positive");
  parts_->pruning = pruning_of(choice.prune, !choice.calibrate.empty());
  if (!choice.report.empty() && !parts_->recipe && !parts_->pruning)
    throw UsageError("--report", "it needs --recipe or --prune");
  if (!choice.target.empty() && !parts_->recipe)
    throw UsageError("--target-accuracy", "it needs --recipe");
  if (!choice.calibrate.empty() && !parts_->recipe && !parts_->learns_zeros())
    throw UsageError("--calibrate", parts_->pruning
                                        ? "magnitude learns nothing from data; add --recipe, or "
                                          "leave the data out"
                                        : "it needs --recipe or --prune");
  parts_->read_goal();
  if (parts_->recipe) parts_->integers = quantize::static_recipe(*parts_->recipe);
  if (choice.sensitivity && !parts_->integers)
    throw UsageError("--sensitivity", "it is for recipes with static activations, such as int8");
  if (!parts_->integers) return;
  if (choice.calibrate.empty())
    throw UsageError("--calibrate", "the recipe " + choice.recipe +
                                        " needs inputs, which show what ranges activations have");
}
Quantization::~Quantization() = default;

int Quantization::stages() const { return parts_->recipe || parts_->pruning ? 1 : 0; }

void Quantization::add_to(ExportOptions& options, Stages& stages) {
  if (this->stages() == 0) return;
  parts_->exported = options;
  options.before_passes = [this, &stages](const std::vector<ir::Graph*>& graphs) {
    stages.begin(parts_->recipe ? "quantizing" : "pruning");
    parts_->run(graphs, stages);
  };
}

void Quantization::print(std::ostream& out, bool all, const std::string& program) const {
  if (!parts_->data_warning.empty()) out << "  " << io::printable(parts_->data_warning) << '\n';
  if (parts_->pruning && all) out << parts_->prune_report;
  if (parts_->pruning && !all) quantize::print_sum(out, parts_->prune_report);
  if (!parts_->recipe) return parts_->write_page(out, program);
  out << parts_->search_report.view() << parts_->static_report.view();
  if (!parts_->integers) {
    if (all)
      out << parts_->report;
    else
      quantize::print_sum(out, parts_->report);
  }
  parts_->write_page(out, program);
}

}  // namespace taper::cli
