#include <algorithm>
#include <iomanip>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/inspect/extras.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/recorded_calls.h"

namespace taper::cli {
namespace {

struct Options {
  std::string file, recorded, method;
  ImportChoice import;
  std::optional<double> tolerance;
  int threads = 0;
};
constexpr double usual_tolerance = 1e-4;

/// The largest difference of one result over all calls.
struct Worst {
  io::Difference difference;
  size_t call = 0;

  void take(const io::Difference& d, size_t k) {
    if (d.relative > difference.relative || (!d.other.empty() && difference.other.empty()))
      difference = d, call = k;
  }
};

std::vector<int> keys(const std::map<int, io::Array>& recorded) {
  std::vector<int> result;
  for (const auto& [i, array] : recorded) result.push_back(i);
  return result;
}

/// Throws ExportError unless the recording has as many of `what` a call as the method.
void require_count(size_t recorded, size_t of_method, const char* what, const Options& options) {
  if (recorded != of_method)
    throw ExportError(options.recorded + " records " + std::to_string(recorded) + " " + what +
                      " a call, the method has " + std::to_string(of_method) +
                      "; constant arguments are counted in the .pt2, check that");
}

/// Which of the recorded results the method's first ones are, in order; the arguments that it
/// writes follow them.
std::vector<int> result_positions(const io::RecordedCall& call, size_t of_method,
                                  const Options& options,
                                  const std::optional<CallPositions>& known) {
  const std::vector<int> at = known ? known->outputs : keys(call.outputs);
  for (const auto& [i, array] : call.outputs)
    if (std::ranges::find(at, i) == at.end())
      throw ExportError(options.recorded + " records result " + std::to_string(i) +
                        ", which the model does not have");
  if (!known)
    require_count(at.size() + call.mutated.size(), of_method, "results and changed arguments",
                  options);
  else if (!call.mutated.empty())
    require_count(call.mutated.size(), of_method - at.size(), "changed arguments", options);
  return at;
}

bool fits(const io::Array& array, const Callable::Input& input) {
  if (input.is_number) return array.numel() == 1 && is_integral(array.dtype);
  const auto same = [](int64_t given, int64_t wanted) {
    return wanted == any_extent || given == wanted;
  };
  return array.dtype == input.dtype && std::ranges::equal(array.sizes, input.sizes, same);
}

/// A recording has the constants of the call, too, which are no inputs of a program: those of its
/// arguments that can be the inputs, in order. Nothing unless there is exactly one way to choose.
std::optional<std::vector<int>> choose_inputs(const std::map<int, io::Array>& recorded,
                                              const std::vector<Callable::Input>& inputs) {
  // ways[n]: to give the first n inputs with the arguments so far; 2 stands for several
  std::vector<int> ways(inputs.size() + 1, 0);
  std::vector<std::vector<int>> chosen(inputs.size() + 1);
  ways[0] = 1;
  for (const auto& [position, array] : recorded)
    for (size_t n = inputs.size(); n > 0; --n) {
      if (ways[n - 1] == 0 || !fits(array, inputs[n - 1])) continue;
      if (ways[n] == 0) {
        chosen[n] = chosen[n - 1];
        chosen[n].push_back(position);
      }
      ways[n] = std::min(2, ways[n] + ways[n - 1]);
    }
  return ways.back() == 1 ? std::optional(chosen.back()) : std::nullopt;
}

void set_inputs(Callable& callable, const io::RecordedCall& call, const Options& options,
                const std::optional<CallPositions>& known) {
  std::vector<int> at = known ? known->inputs : keys(call.inputs);
  if (!known && at.size() > callable.inputs().size())
    at = choose_inputs(call.inputs, callable.inputs()).value_or(at);
  require_count(at.size(), callable.inputs().size(), "arguments", options);
  for (size_t i = 0; i < at.size(); ++i) {
    const auto found = call.inputs.find(at[i]);
    if (found == call.inputs.end())
      throw ExportError(options.recorded + ": argument " + std::to_string(at[i]) + " (" +
                        callable.inputs()[i].name + ") is not recorded");
    callable.set_input(static_cast<index_t>(i), found->second);
  }
}

std::string difference_text(const io::Difference& d, bool fits, const std::string& where) {
  if (!d.other.empty()) return d.other;
  std::ostringstream text;
  text << std::setprecision(3) << d.relative << " of the largest magnitude";
  if (!fits)
    text << ": element " << d.element << where << " is " << std::setprecision(8) << d.got
         << ", not " << d.want;
  return text.str();
}

/// Prints one result's line. Returns `fits`.
bool print_result(std::ostream& out, const std::string& name, const io::Difference& d, bool fits,
                  const std::string& where = "") {
  out << (fits ? "ok    " : "WRONG ") << io::printable(name) << "  "
      << io::printable(difference_text(d, fits, where)) << '\n';
  return fits;
}

void check_recorded(const Options& options, std::ostream& out) {
  const double tolerance = options.tolerance.value_or(usual_tolerance);
  const std::vector<io::RecordedCall> calls =
      io::read_recorded_calls(options.recorded, options.import.model);
  if (calls.empty()) throw ExportError(options.recorded + " records no call");
  const std::optional<CallPositions> known = call_positions(options.file, options.import);
  const std::unique_ptr<Callable> callable =
      open_callable(options.file, options.method, options.import);

  std::map<std::string, Worst> results;
  const auto compare = [&](const std::string& name, const io::Array& got, const io::Array& want,
                           size_t k, bool any_float = false) {
    results[name].take(io::difference(got, want, any_float), k);
  };
  for (size_t k = 0; k < calls.size(); ++k) {
    set_inputs(*callable, calls[k], options, known);
    const std::vector<Callable::Output> outputs = callable->call();
    size_t next = 0;
    for (const int i : result_positions(calls[k], outputs.size(), options, known)) {
      const Callable::Output& output = outputs.at(next++);
      if (const auto want = calls[k].outputs.find(i); want != calls[k].outputs.end())
        compare(output.name, output.value, want->second, k);
    }
    for (const auto& [i, want] : calls[k].mutated)
      compare("argument " + std::to_string(i) + " afterwards", outputs.at(next++).value, want, k);
    for (const auto& [path, want] : calls[k].buffers)
      compare("state " + path, callable->state(path), want, k, /*any_float=*/true);
  }

  if (results.empty())
    throw ExportError(options.recorded +
                      " records no result to compare with; expected "
                      "set<k>.output.<i>");
  bool passed = true;
  for (const auto& [name, worst] : results) {
    const io::Difference& d = worst.difference;
    const bool fits = d.other.empty() && d.relative <= tolerance;
    passed = print_result(out, name, d, fits, " of call " + std::to_string(worst.call)) && passed;
  }
  if (!passed)
    throw ExportError(options.file + " does not give what " + options.recorded + " recorded");
  out << io::counted(static_cast<int64_t>(calls.size()), "recorded call") << " within " << tolerance
      << '\n';
}

/// One of the calls that the file carries, by a session of its own.
bool run_test(const io::BundledTest& test, const std::vector<std::byte>& program,
              const Options& options, std::ostream& out) {
  RunningMethod running(options.file, program, test.method, eager::threads());
  if (test.inputs.size() != running.inputs().size() ||
      test.outputs.size() != static_cast<size_t>(running.method().output_count()))
    throw ExportError(options.file + ": a test of " + test.method +
                      " has another number of inputs or outputs than the method");
  for (size_t i = 0; i < test.inputs.size(); ++i)
    running.set_input(static_cast<index_t>(i), test.inputs[i]);
  const std::vector<Callable::Output> outputs = running.call();
  bool passed = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const io::Difference d = io::difference(outputs[i].value, test.outputs[i]);
    const double tolerance = options.tolerance.value_or(test.relative_tolerance);
    const bool fits =
        d.other.empty() && (d.relative <= tolerance || d.absolute <= test.absolute_tolerance);
    passed = print_result(out, test.method + ", " + outputs[i].name, d, fits) && passed;
  }
  return passed;
}

void check_bundled(const Options& options, std::ostream& out) {
  ImportChoice import = options.import;
  import.tests = true;
  const std::vector<std::byte> program = program_bytes(options.file, import);
  const inspect::ProgramFile file(options.file, program, eager::all_kernels(), cpu_has);
  std::vector<io::BundledTest> tests = inspect::bundled_tests(file);
  if (!options.method.empty()) {
    (void)inspect::find_method(file.program(), options.method);
    std::erase_if(tests, [&](const io::BundledTest& t) { return t.method != options.method; });
  }
  if (tests.empty())
    throw ExportError(options.file + " carries no test" +
                      (options.method.empty() ? "" : " of " + options.method) +
                      "; give recorded calls, `taper check FILE RECORDED`");
  bool passed = true;
  for (const io::BundledTest& test : tests)
    passed = run_test(test, program, options, out) && passed;
  if (!passed) throw ExportError(options.file + " does not give what its tests expect");
  out << io::counted(static_cast<int64_t>(tests.size()), "test") << " passed\n";
}

void check_program(const Options& options, std::ostream& out) {
  if (options.threads > 0) eager::set_threads(options.threads);
  if (options.recorded.empty())
    check_bundled(options, out);
  else
    check_recorded(options, out);
}

}  // namespace

void add_check_command(CommandLine& line, std::ostream& out) {
  Command command = line.add(
      "check",
      "Runs recorded calls, or a program's own tests, and says how far the results are from the "
      "expected ones");
  auto options = std::make_shared<Options>();
  command.option("file", options->file, "The program (.taper), or the model (.pt2)").required();
  command.option("recorded", options->recorded,
                 "The calls: set<k>.input.<i>, set<k>.output.<i>, in a .safetensors file; "
                 "without it, the tests that the program carries");
  command.option("--method", options->method, "Which method; default: forward, or the only one");
  command
      .option("--tolerance", options->tolerance,
              "The largest difference allowed, relative to the result's largest magnitude; "
              "integers: absolute. Default: 0.0001, of tests their own")
      .checked_by(check_tolerance);
  add_import_options(command, options->import);
  add_threads_option(command, options->threads);
  command.does([options, &out] { check_program(*options, out); });
}

}  // namespace taper::cli
