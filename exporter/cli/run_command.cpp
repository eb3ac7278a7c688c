#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/outputs.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/inspect/method_outputs.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::cli {
namespace {

struct Options {
  std::string file, method, labels, load_states, save_states;
  InputOptions inputs;
  ImportChoice import;
  std::vector<std::string> outputs;
  int top = 3, threads = 0;
};

std::vector<std::string> read_lines(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  std::istringstream in(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "FILE.safetensors" takes all outputs; "FILE.npy" the only one; "NAME=FILE" the one of that name.
void write_output(const std::string& text, const Method& method,
                  const std::vector<io::Array>& arrays) {
  const size_t sign = text.find('=');
  index_t chosen =
      sign == std::string::npos ? -1 : method.find_output(text.substr(0, sign).c_str());
  if (sign != std::string::npos && chosen < 0)
    throw ExportError(std::string(method.name()) + " has no output " + text.substr(0, sign));
  const std::string path = sign == std::string::npos ? text : text.substr(sign + 1);
  if (path.ends_with(".safetensors")) {
    io::SafeTensors content;
    for (index_t i = 0; i < method.output_count(); ++i)
      if (chosen < 0 || i == chosen)
        content.tensors[method.output_name(i)] = arrays[static_cast<size_t>(i)];
    return io::write_safetensors(path, content);
  }
  if (!path.ends_with(".npy"))
    throw ExportError(path + ": outputs are written as .npy or .safetensors");
  if (chosen < 0 && arrays.size() != 1)
    throw ExportError("the method has " + io::counted(method.output_count(), "output") +
                      "; name one, --output NAME=" + path + ", or write .safetensors");
  io::write_npy(path, arrays[static_cast<size_t>(std::max<index_t>(chosen, 0))]);
}

void run_program(const Options& options, std::ostream& out) {
  if (options.threads > 0) eager::set_threads(options.threads);
  RunningMethod running(options.file, options.method, eager::threads(), options.import);
  if (!options.load_states.empty()) running.load_states(options.load_states);
  const std::vector<index_t> missing = set_given_inputs(running, options.inputs);
  if (!missing.empty()) {
    const std::string name = running.method().input_name(missing.front());
    throw ExportError("input " + input_text(running, missing.front()) +
                      " is missing; give --input " + name + "=FILE");
  }
  TopOptions top{options.top,
                 options.labels.empty() ? std::vector<std::string>{} : read_lines(options.labels)};

  running.execute();
  const Method& method = running.method();
  const std::vector<io::Array> arrays = inspect::read_outputs(method);
  for (const std::string& text : options.outputs) write_output(text, method, arrays);
  for (size_t i = 0; i < arrays.size(); ++i)
    print_output(out, method.output_name(static_cast<index_t>(i)), arrays[i], top);
  if (!options.save_states.empty()) running.save_states(options.save_states);
}

}  // namespace

void add_run_command(CLI::App& app, std::ostream& out) {
  CLI::App* command = app.add_subcommand("run", "Runs a method once and shows what it gives");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "The program (.taper), or a model of PyTorch (.pt2)")
      ->required();
  command->add_option("--method", options->method,
                      "Which method; default: forward, or the only one");
  add_import_options(*command, options->import);
  add_input_options(*command, options->inputs);
  command
      ->add_option("--output", options->outputs,
                   "Writes outputs: FILE.npy, NAME=FILE.npy, or FILE.safetensors for all")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--top", options->top, "Classes shown for an output of scores; 0 shows numbers")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  command
      ->add_option("--labels", options->labels, "The classes' names, a text file with one a line")
      ->type_name("FILE");
  add_threads_option(*command, options->threads);
  command
      ->add_option("--load-states", options->load_states,
                   "Reads states from this file before the run")
      ->type_name("FILE.safetensors");
  command
      ->add_option("--save-states", options->save_states,
                   "Writes all states to this file after the run")
      ->type_name("FILE.safetensors");
  command->callback([options, &out] { run_program(*options, out); });
}

}  // namespace taper::cli
