#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/compare/compare.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/inspect/method_outputs.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

struct CompareArguments {
  std::string a, b, method;
  InputOptions inputs;
  ImportChoice import;
  std::optional<double> tolerance;
  int threads = 1;
  bool all = false;
};

/// One of the two files. Exactly one of `model`, `program` and `recording` is set.
struct Side {
  std::string path;
  std::optional<EagerModel> model;
  std::unique_ptr<RunningMethod> program;
  std::optional<compare::Recording> recording;
};

Side open_side(const std::string& path, const CompareArguments& options) {
  const std::string extension = std::filesystem::path(path).extension().string();
  Side side{path, {}, {}, {}};
  if (is_exported_model(path))
    side.model = load_model(path, options.import);
  else if (extension == ".taper")
    side.program =
        std::make_unique<RunningMethod>(path, options.method, eager::threads(), options.import);
  else if (extension == ".safetensors" || extension == ".npy")
    side.recording = compare::read_recording(path, options.import.model);
  else
    throw ExportError(path +
                      " cannot be compared; give a PyTorch model (.pt2), a program (.taper) or "
                      "recorded outputs (.safetensors, .npy)");
  return side;
}

/// Both files, which get the same inputs.
class Sides {
 public:
  Sides(const CompareArguments& options, std::ostream& out)
      : options_(options),
        out_(out),
        sides_{open_side(options.a, options), open_side(options.b, options)} {
    for (Side& side : sides_) {  // if both are of one kind, the first counts
      if (side.model && model_ == nullptr) model_ = &side;
      if (side.program && program_ == nullptr) program_ = &side;
      if (side.recording && recorded_ == nullptr) recorded_ = &side;
    }
  }

  void set_inputs() {
    if (model_ == nullptr && program_ == nullptr) return;
    const bool none_given = options_.inputs.given.empty();
    if (none_given && recorded_ != nullptr) return take_recorded_inputs();
    if (none_given && model_ != nullptr && take_example_inputs()) return;
    take_given_inputs();
  }

  compare::Run run(size_t i) {
    Side& side = sides_[i];
    try {
      compare::Run run = side.model ? side.model->run(inputs_)
                         : side.program
                             ? compare::run_program(side.program->program(), side.program->method())
                             : std::move(side.recording->run);
      run.title = side.path;
      return run;
    } catch (const ExportError& e) {
      std::string message = e.what();
      if (message.find(side.path) == message.npos) message = side.path + ": " + message;
      throw ExportError(message + hint_);
    }
  }

 private:
  /// Uses the arguments of the recorded call, without those that are built into the model.
  void take_recorded_inputs() {
    const std::map<int, io::Array>& arguments = recorded_->recording->inputs;
    if (arguments.empty())
      throw ExportError(recorded_->path +
                        " records no inputs; give the inputs of its outputs with --input");
    std::optional<CallPositions> known;
    if (model_ != nullptr) known = call_positions(model_->path, options_.import);
    for (const auto& [i, array] : arguments)
      if (!known || std::ranges::find(known->inputs, i) != known->inputs.end())
        inputs_.push_back(array);
    for (Side& side : sides_) give_inputs(side);
    out_ << "inputs: recorded in " << io::printable(recorded_->path) << '\n';
  }

  /// Uses the inputs that the model was exported with. Returns false if there are none or they
  /// cannot be read.
  bool take_example_inputs() {
    try {
      inputs_ = model_->model->example_inputs();
    } catch (const io::FileError&) {
    }
    if (inputs_.empty()) return false;
    for (Side& side : sides_) give_inputs(side);
    out_ << "inputs: the example inputs of " << io::printable(model_->path) << '\n';
    return true;
  }

  /// Uses the inputs from the command line, and random numbers for the others. They are read as
  /// inputs of a program, so a model is exported for this. Then the other side gets the same
  /// inputs.
  void take_given_inputs() {
    std::unique_ptr<RunningMethod> imported;
    if (program_ == nullptr)
      imported =
          std::make_unique<RunningMethod>(model_->path, "", eager::threads(), options_.import);
    RunningMethod& reader = program_ != nullptr ? *program_->program : *imported;
    const std::vector<index_t> random = fill(reader);
    const Method& method = reader.method();
    for (index_t i = 0; i < method.input_count(); ++i) {
      const TensorRef input = method.input(i);
      if (input.shape == nullptr && model_ != nullptr)
        throw ExportError("input " + text_of(reader, i) +
                          " is a number, but PyTorch models take tensors");
      inputs_.push_back(input.shape == nullptr ? io::Array() : inspect::array_of(input));
    }
    tell_random(method, random);
    for (Side& side : sides_) {
      if (side.program == nullptr || &side == program_) continue;
      fill(*side.program);  // sets the inputs that are numbers
      give_inputs(side);
    }
  }

  void give_inputs(Side& side) {
    if (side.program == nullptr) return;
    const index_t wanted = side.program->method().input_count();
    if (static_cast<size_t>(wanted) != inputs_.size())
      throw ExportError(side.path + " takes " + io::counted(wanted, "input") + ", not " +
                        std::to_string(inputs_.size()) +
                        (recorded_ != nullptr
                             ? "; compare the .pt2 instead, which knows the constant arguments"
                             : ""));
    for (index_t i = 0; i < wanted; ++i)
      if (const io::Array& array = inputs_[static_cast<size_t>(i)]; array.bytes != nullptr)
        side.program->set_input(i, array);
  }

  /// Sets the given inputs, and the others at random. Returns the indices of the random ones.
  std::vector<index_t> fill(RunningMethod& program) {
    std::vector<index_t> missing = set_given_inputs(program, options_.inputs);
    if (recorded_ != nullptr && !missing.empty())
      throw ExportError("input " + text_of(program, missing.front()) +
                        " is missing; give all inputs of " + recorded_->path +
                        " with --input NAME=FILE");
    set_random_inputs(program, missing, {});
    return missing;
  }

  static const std::string& text_of(const Callable& callable, index_t input) {
    return callable.inputs()[static_cast<size_t>(input)].text;
  }

  void tell_random(const Method& method, const std::vector<index_t>& random) {
    if (random.empty()) return;
    std::vector<std::string> texts;
    for (const index_t i : random) {
      const io::Array& array = inputs_[static_cast<size_t>(i)];
      texts.push_back(method.input_name(i) + (array.bytes ? ": " + array.describe() : ""));
    }
    out_ << "inputs: random numbers (always the same), zeros for integers: "
         << io::printable(io::joined(texts, "; ")) << '\n';
    hint_ = "; the inputs were random, use --input to give your own";
  }

  const CompareArguments& options_;
  std::ostream& out_;
  Side sides_[2];
  Side *model_ = nullptr, *program_ = nullptr, *recorded_ = nullptr;
  std::vector<io::Array> inputs_;  ///< of the call, in order; a number of a program has no bytes
  std::string hint_;               ///< added to the message of a run that fails
};

void compare_files(const CompareArguments& options, std::ostream& out) {
  eager::set_threads(options.threads);
  Sides sides(options, out);
  sides.set_inputs();
  const compare::Run want = sides.run(0), got = sides.run(1);
  const compare::Comparison comparison = compare::compare(want, got, options.tolerance);
  compare::print(out, comparison, {.all = options.all});
  if (comparison.fits()) return;
  std::ostringstream message;
  message << options.b << " differs from " << options.a << ": an output is beyond the tolerance of "
          << comparison.tolerance;
  throw ExportError(message.str());
}

}  // namespace

void add_compare_command(CommandLine& line, std::ostream& out) {
  Command command = line.add(
      "compare", "Runs two files on the same inputs and compares the results of their nodes");
  auto options = std::make_shared<CompareArguments>();
  command
      .option("A", options->a,
              "The reference: a PyTorch model (.pt2), a program (.taper), or recorded outputs "
              "(.safetensors, .npy)")
      .required();
  command.option("B", options->b, "The file to compare with A, of any of these kinds").required();
  command.option("--method", options->method,
                 "The method of a program; default: forward, or the only method");
  add_import_options(command, options->import);
  add_input_options(command, options->inputs);
  command
      .option("--tolerance", options->tolerance,
              "The largest allowed difference, relative to the largest magnitude of A's "
              "result; for integers absolute. Default: by the dtypes of the runs, 0.0001 for f32")
      .checked_by(check_tolerance);
  command.flag("--all", options->all, "Shows every node in order, instead of the worst");
  add_threads_option(command, options->threads);
  add_verify_option(command, options->import);
  add_read_option(command, options->import);
  command.footer(
      R"(Without --input, the inputs are those of a recording. If there is none, they are the example
inputs of the .pt2. Otherwise they are random numbers, or zeros for integers.

Examples:
  taper compare model.pt2 model.taper
  taper compare model.pt2 model.taper --input x=photo.npy --all)");
  command.does([options, &out] { compare_files(*options, out); });
}

}  // namespace taper::cli
