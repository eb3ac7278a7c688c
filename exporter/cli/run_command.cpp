#include <algorithm>
#include <memory>
#include <span>
#include <sstream>

#include "taper/exporter/cli/callable.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/outputs.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::cli {
namespace {

struct RunArguments {
  std::string file, method, labels, load_states, save_states;
  InputOptions inputs;
  ImportChoice import;
  std::vector<std::string> outputs;
  int top = 3, threads = 1;
};

std::vector<std::string> read_lines(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  std::istringstream in(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "FILE.safetensors" gets all outputs, "FILE.npy" the only one, and "NAME=FILE" the output of this
// name.
void write_output(const std::string& text, const std::string& method,
                  std::span<const Callable::Output> outputs) {
  const size_t sign = text.find('=');
  if (sign != std::string::npos) {
    const auto at = std::ranges::find(outputs, text.substr(0, sign), &Callable::Output::name);
    if (at == outputs.end()) {
      std::vector<std::string> names;
      for (const Callable::Output& output : outputs) names.push_back(output.name);
      throw ExportError(method + " has no output " + text.substr(0, sign) +
                        "; the outputs are: " + io::joined(names));
    }
    outputs = outputs.subspan(static_cast<size_t>(at - outputs.begin()), 1);
  }
  const std::string path = sign == std::string::npos ? text : text.substr(sign + 1);
  if (path.ends_with(".safetensors")) {
    io::SafeTensors content;
    for (const Callable::Output& output : outputs) content.tensors[output.name] = output.value;
    return io::write_safetensors(path, content);
  }
  if (!path.ends_with(".npy"))
    throw ExportError(path + ": the name of an output file must end in .npy or .safetensors");
  if (outputs.size() != 1)
    throw ExportError(
        "the method has " + io::counted(static_cast<int64_t>(outputs.size()), "output") +
        "; choose one with --output NAME=" + path + ", or write all to a .safetensors file");
  io::write_npy(path, outputs[0].value);
}

/// Throws ExportError unless an output has as many classes as there are labels.
void require_labels(const std::string& path, size_t labels,
                    const std::vector<Callable::Output>& outputs) {
  const auto fits = [&](const Callable::Output& output) {
    return !output.value.sizes.empty() && output.value.sizes.back() == static_cast<int64_t>(labels);
  };
  if (!std::ranges::any_of(outputs, fits))
    throw ExportError(path + " has " + io::counted(static_cast<int64_t>(labels), "line") +
                      ", one for each class, but no output has as many classes: " +
                      outputs.front().name + " is " + outputs.front().value.describe());
}

void run(const RunArguments& options, std::ostream& out) {
  eager::set_threads(options.threads);
  const std::unique_ptr<Callable> callable =
      open_callable(options.file, options.method, options.import);
  if (!options.load_states.empty()) callable->load_states(options.load_states);
  if (const auto missing = set_given_inputs(*callable, options.inputs); !missing.empty()) {
    const Callable::Input& input = callable->inputs()[static_cast<size_t>(missing.front())];
    throw ExportError("input " + input.text + " is missing; give --input " + input.name +
                      (input.is_number ? "=NUMBER" : "=FILE") + input.ranges);
  }
  const TopOptions top{options.top, options.labels.empty() ? std::vector<std::string>{}
                                                           : read_lines(options.labels)};

  const std::vector<Callable::Output> outputs = callable->call();
  if (!top.labels.empty()) require_labels(options.labels, top.labels.size(), outputs);
  for (const std::string& text : options.outputs) write_output(text, callable->name(), outputs);
  for (const Callable::Output& output : outputs) print_output(out, output.name, output.value, top);
  if (!options.save_states.empty()) callable->save_states(options.save_states);
}

}  // namespace

void add_run_command(CommandLine& line, std::ostream& out) {
  Command command = line.add("run", "Runs a method once and prints its results");
  auto options = std::make_shared<RunArguments>();
  command.option("file", options->file, "The program (.taper) or PyTorch model (.pt2)").required();
  command.option("--method", options->method, "The method; default: forward, or the only method");
  add_import_options(command, options->import);
  add_input_options(command, options->inputs);
  command
      .option(
          "--output [NAME=]FILE", options->outputs,
          "Writes an output: NAME=FILE.npy, FILE.npy for the only one, FILE.safetensors for all")
      .one_value();
  command
      .option("--top", options->top,
              "For an output of scores: how many classes to print; 0 prints numbers")
      .shows_default()
      .in_range(0, 1'000'000);
  command.option("--labels FILE", options->labels,
                 "A text file with the name of each class, one on each line");
  add_threads_option(command, options->threads);
  add_verify_option(command, options->import);
  add_read_option(command, options->import);
  add_outside_options(command, options->import);
  command.option("--load-states FILE.safetensors", options->load_states,
                 "Reads states from this file before the run");
  command.option("--save-states FILE.safetensors", options->save_states,
                 "Writes all states to this file after the run");
  command.footer(R"(Examples:
  taper run lenet.taper --input digit.png
  taper run model.pt2 --input photo.jpg --resize 256 --crop 224 --imagenet --labels labels.txt
  taper run lenet.taper --method train_step --input images=x.npy --input labels=y.npy)");
  command.does([options, &out] { run(*options, out); });
}

}  // namespace taper::cli
