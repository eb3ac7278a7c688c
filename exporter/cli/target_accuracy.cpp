#include "taper/exporter/cli/target_accuracy.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <ostream>
#include <random>
#include <sstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/emit/emit.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/passes/passes.h"

namespace taper::cli {
namespace {

using quantize::Metric;
using std::filesystem::path;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1);
}

/// The last word of a text as a number.
std::optional<double> last_number(const std::string& text) {
  const std::string whole = trimmed(text);
  const size_t blank = whole.find_last_of(" \t\n\r");
  return number_of<double>(blank == std::string::npos ? whole : whole.substr(blank + 1));
}

/// A word of a shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// What a command prints. Throws ExportError if it fails.
std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw ExportError(command + ": it cannot be started");
  std::string text;
  std::array<char, 4096> part;
  while (const size_t n = std::fread(part.data(), 1, part.size(), pipe))
    text.append(part.data(), n);
  const int status = ::pclose(pipe);
  if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw ExportError("the command `" + io::printable(command) + "` failed");
  return text;
}

/// A program in a file that goes again.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("taper-" + std::to_string(random()) + std::to_string(random()) + ".taper");
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  std::string name() const { return path_.string(); }

 private:
  path path_;
};

std::vector<int64_t> labels_of(const path& file) {
  const io::SafeTensors content = io::read_safetensors(file);
  const auto found = content.tensors.find("labels");
  if (found == content.tensors.end() || !is_integral(found->second.dtype))
    throw ExportError(file.string() +
                      ": top-1 needs a tensor `labels` of integers beside the inputs");
  return eager::tensor_of(found->second).to(DType::i64).to_vector<int64_t>();
}

/// A folder of pictures for each class.
quantize::TestData pictures_of_classes(const path& folder,
                                       const std::vector<Callable::Input>& inputs,
                                       const CalibrationOptions& options) {
  std::vector<path> classes;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) classes.push_back(entry.path());
  std::ranges::sort(classes);
  if (classes.empty())
    throw ExportError(folder.string() + ": top-1 needs a folder of pictures for each class");
  quantize::TestData data;
  std::vector<quantize::Examples> parts;
  std::vector<std::pair<size_t, size_t>> places;  // of each example: the class, and which of it
  for (size_t c = 0; c < classes.size(); ++c) {
    parts.push_back(read_calibration(classes[c], inputs, options));
    for (size_t i = 0; i < parts[c].count; ++i)
      places.emplace_back(c, i), data.labels.push_back(static_cast<int64_t>(c));
  }
  data.examples = {places.size(), [parts, places](size_t i) {
                     return parts[places[i].first].at(places[i].second);
                   }};
  return data;
}

/// The graph whose logits are those of every token, if there are several.
size_t measured_graph(const std::vector<ir::Graph*>& graphs, Metric metric) {
  if (metric != Metric::perplexity) return 0;
  for (size_t i = 0; i < graphs.size(); ++i)
    if (graphs[i]->name().ends_with("_all")) return i;
  return 0;
}

}  // namespace

std::string AccuracyGoal::metric_name() const {
  return metric == Metric::other ? command : name_of(metric);
}

AccuracyGoal parse_goal(const std::string& text) {
  const std::string error = check_goal(text);
  if (!error.empty()) throw UsageError("--target-accuracy", error);
  AccuracyGoal parsed;
  const size_t at = std::max(text.rfind(">=") + 1, text.rfind("<=") + 1) - 1;
  parsed.goal = {*number_of<double>(trimmed(text.substr(at + 2))), text[at] == '<'};
  parsed.command = trimmed(text.substr(0, at));
  parsed.metric = quantize::find_metric(parsed.command).value_or(Metric::other);
  return parsed;
}

std::string check_goal(const std::string& text) {
  // one more, so that "not found" is 0
  const size_t at = std::max(text.rfind(">=") + 1, text.rfind("<=") + 1);
  const std::string name = at == 0 ? "" : trimmed(text.substr(0, at - 1));
  const auto bound = at == 0 ? std::nullopt : number_of<double>(trimmed(text.substr(at + 1)));
  const std::string first = name.substr(0, name.find_first_of(" \t<>="));
  const bool is_more = quantize::find_metric(first) && first != name;  // "cosine >= 0.9 >= 0.8"
  if (name.empty() || is_more || !bound || !std::isfinite(*bound))
    return "\"" + text +
           "\" is no goal; examples: \"top-1 >= 0.98\", \"perplexity <= 6.2\", \"cosine >= "
           "0.999\", "
           "\"./score.sh >= 0.7\"";
  const auto metric = quantize::find_metric(name);
  if (metric && (*metric == Metric::perplexity) != (text[at - 1] == '<'))
    return name + (*metric == Metric::perplexity ? " must be at most a number: <="
                                                 : " must be at least a number: >=");
  return "";
}

quantize::TestData read_test_data(const path& file, const std::vector<Callable::Input>& inputs,
                                  const CalibrationOptions& options, Metric metric) {
  if (metric != Metric::top_1) return {read_calibration(file, inputs, options), {}};
  if (std::filesystem::is_directory(file)) return pictures_of_classes(file, inputs, options);
  if (file.extension() != ".safetensors")
    throw ExportError(
        file.string() +
        ": top-1 needs labels: give a .safetensors file with the inputs and `labels`, "
        "or a folder of pictures for each class");
  return {read_calibration(file, inputs, options), labels_of(file)};
}

ProgramMeter::ProgramMeter(const AccuracyGoal& goal, quantize::TestData data,
                           const std::vector<ir::Graph*>& unchanged, const ExportOptions& options,
                           const quantize::Progress& progress)
    : goal_(goal), options_(options), measured_(measured_graph(unchanged, goal.metric)) {
  if (data.examples.count > 0)
    meter_ = std::make_unique<quantize::Meter>(goal.metric, std::move(data), *unchanged[measured_],
                                               progress);
}

quantize::Score ProgramMeter::run(const std::vector<ir::Graph*>& graphs) {
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (i != measured_ && goal_.metric != Metric::other) continue;
    passes::PassContext context(options_.target, options_.exact, options_.dtype);
    passes::run_passes(*graphs[i], context);
  }
  quantize::Score score;
  if (meter_ != nullptr) score = meter_->run(*graphs[measured_]);
  if (goal_.metric != Metric::other) return score;
  score.metric = result_of_command(graphs);
  if (!unchanged_result_) unchanged_result_ = score.metric;  // the model as it was comes first
  if (meter_ == nullptr) score.noise = std::fabs(score.metric - *unchanged_result_);
  return score;
}

double ProgramMeter::result_of_command(const std::vector<ir::Graph*>& graphs) const {
  const TemporaryFile program;
  std::vector<emit::Method> methods;
  for (ir::Graph* graph : graphs) methods.push_back({graph->name(), graph});
  emit::EmitOptions written;
  written.target = options_.target, written.debug = false;
  emit::write(program.name(), methods, written);
  const std::string command = goal_.command + " " + quoted(program.name());
  const std::optional<double> number = last_number(output_of(command));
  if (!number)
    throw ExportError("the command `" + io::printable(goal_.command) +
                      "` must print a number at the end");
  return *number;
}

void print_curve(std::ostream& out, const AccuracyGoal& goal, const quantize::SearchResult& result,
                 const std::string& what) {
  out << "  " << io::printable(goal.metric_name()) << ' ' << (goal.goal.at_most ? "<= " : ">= ")
      << goal.goal.bound << ", measured "
      << io::counted(static_cast<int64_t>(result.measured.size()), "time") << "; " << what << ":\n";
  for (const quantize::SearchPoint& p : result.curve(goal.goal)) {
    std::ostringstream metric;
    metric << std::setprecision(6) << p.score.metric;
    out << "  " << std::setw(10) << std::right << io::bytes_text(p.bytes) << "  " << metric.str()
        << (p.levels == result.best.levels        ? "  <- written"
            : goal.goal.is_met_by(p.score.metric) ? ""
                                                  : "  too much")
        << '\n';
  }
}

}  // namespace taper::cli
