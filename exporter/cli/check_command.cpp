#include <memory>
#include <ostream>
#include <vector>

#include "taper/exporter/cli/check_result.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/language_model.h"
#include "taper/exporter/cli/recorded_check.h"
#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/inspect/extras.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

struct CheckArguments : RecordedCheck {
  CheckArguments() { import.verify = true; }
  int threads = 1;
};

/// Runs one of the calls that the file carries, in a session of its own.
bool run_test(const io::BundledTest& test, const std::vector<std::byte>& program,
              const CheckArguments& options, std::ostream& out) {
  RunningMethod running(options.file, program, test.method, eager::threads(), options.import);
  if (test.inputs.size() != running.inputs().size() ||
      test.outputs.size() != static_cast<size_t>(running.method().output_count()))
    throw ExportError(options.file + ": a test of " + test.method +
                      " has more or fewer inputs or outputs than the method; export it again");
  for (size_t i = 0; i < test.inputs.size(); ++i)
    running.set_input(static_cast<index_t>(i), test.inputs[i]);
  const std::vector<Callable::Output> outputs = running.call();
  io::Scale scale;
  for (const io::Array& want : test.outputs) scale.add(want);
  bool passed = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Checked result = check_result(outputs[i].value, test.outputs[i],
                                  options.tolerance.value_or(test.relative_tolerance));
    result.absolute_tolerance = test.absolute_tolerance;
    result.measure.scale = scale.value();
    passed = print_result(out, test.method + ", " + outputs[i].name, result) && passed;
  }
  return passed;
}

void check_bundled(const CheckArguments& options, std::ostream& out) {
  ImportChoice import = options.import;
  import.tests = true;
  const std::vector<std::byte> program = program_bytes(options.file, import);
  const inspect::ProgramFile file(options.file, program, eager::all_kernels());
  std::vector<io::BundledTest> tests = inspect::bundled_tests(file);
  if (!options.method.empty()) {
    (void)inspect::find_method(file.program(), options.method);
    std::erase_if(tests, [&](const io::BundledTest& t) { return t.method != options.method; });
  }
  if (tests.empty())
    throw ExportError(options.file + " carries no test" +
                      (options.method.empty() ? "" : " of " + options.method) +
                      "; give recorded calls: `taper check FILE RECORDED`");
  bool passed = true;
  for (const io::BundledTest& test : tests)
    passed = run_test(test, program, options, out) && passed;
  if (!passed) throw ExportError("the results of " + options.file + " differ from its tests");
  out << io::counted(static_cast<int64_t>(tests.size()), "test") << " passed\n";
}

void check_program(const CheckArguments& options, std::ostream& out) {
  eager::set_threads(options.threads);
  if (is_language_model(options.file)) {
    if (options.tolerance || !options.method.empty())
      throw UsageError("--tolerance, --method",
                       "golden results of a language model have their own");
    return check_language_model(options.file, options.recorded, out);
  }
  if (options.recorded.empty())
    check_bundled(options, out);
  else
    check_recorded(options, out);
}

}  // namespace

void add_check_command(CommandLine& line, std::ostream& out) {
  Command command = line.add(
      "check",
      "Runs recorded calls, or the tests of a program, and compares the results with the expected "
      "ones");
  auto options = std::make_shared<CheckArguments>();
  command
      .option("file", options->file,
              "The program (.taper), PyTorch model (.pt2), or language model (a folder with a "
              "config.json, or a .gguf file)")
      .required();
  command.option("recorded", options->recorded,
                 "A .safetensors file of calls: set<k>.input.<i>, set<k>.output.<i>; without it, "
                 "the tests that the program carries. For a language model its golden results: "
                 "input_ids, logits, greedy.tokens, …");
  command.option("--method", options->method, "The method; default: forward, or the only method");
  command
      .option("--tolerance", options->tolerance,
              "The largest allowed difference, relative to the largest magnitude of a result; for "
              "integers absolute. Default: by the dtypes of the run, 0.0001 for f32; tests have "
              "their own")
      .checked_by(check_tolerance);
  add_import_options(command, options->import);
  add_threads_option(command, options->threads);
  add_read_option(command, options->import);
  add_outside_options(command, options->import);
  command.footer(R"(Examples:
  taper check model.taper
  taper check model.pt2 recorded.safetensors
  taper check Llama-3.2-1B golden.safetensors)");
  command.does([options, &out] { check_program(*options, out); });
}

}  // namespace taper::cli
