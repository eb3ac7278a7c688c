#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iomanip>
#include <map>
#include <memory>
#include <sstream>

#include "taper/exporter/cli/chrome_trace.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/timing.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/inspect/format_text.h"
#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {

struct Options {
  std::string file, method, trace;
  InputOptions inputs;
  std::vector<std::string> dims;
  int repeat = 50, threads = 0;
  bool by_time = false;
};

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t sign = text.find('=');
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    if (sign == std::string::npos || std::from_chars(text.data() + sign + 1, end, value).ptr != end || sign + 1 == text.size())
      throw CLI::ValidationError("--dim", text + " is not NAME=NUMBER");
    dims[text.substr(0, sign)] = value;
  }
  return dims;
}

// "12.3 GFLOP/s" for matrix products and convolutions, "4.5 GB/s" for the others.
std::string rate_text(double us, const Work& work) {
  if (us <= 0) return "";
  std::ostringstream text;
  const bool computes = work.operations > 0;
  text << std::fixed << std::setprecision(1) << (computes ? work.operations : work.bytes) / us / 1e3 << (computes ? " GFLOP/s" : " GB/s");
  return text.str();
}

void print_row(std::ostream& out, double us, double total_us, const std::string& rate, const std::string& op, const std::string& rest) {
  out << std::fixed << std::setprecision(1) << std::setw(11) << us << std::setw(9) << inspect::percent_text(us, total_us) << std::setw(16) << rate << "  "
      << std::left << std::setw(28) << op << std::right << rest << '\n';
}

void print_instructions(std::ostream& out, const Timing& timing, double sum_us, bool by_time) {
  std::vector<const InstructionTiming*> order;
  for (const InstructionTiming& in : timing.instructions) order.push_back(&in);
  if (by_time) std::ranges::stable_sort(order, std::ranges::greater(), &InstructionTiming::median_us);
  out << "         us    share            rate  instruction\n";
  for (const InstructionTiming* in : order) {
    std::vector<std::string> notes{in->types};
    if (!in->source.empty()) notes.push_back(in->source);
    if (!in->module.empty()) notes.push_back(in->module);
    print_row(out, in->median_us, sum_us, rate_text(in->median_us, in->work), in->kernel.empty() ? in->op : in->kernel, inspect::joined(notes, "  "));
  }
}

void print_operators(std::ostream& out, const Timing& timing, double sum_us) {
  struct Sum {
    std::string op;
    double us = 0;
    int count = 0;
    Work work;
  };
  std::map<std::string, Sum> by_name;
  for (const InstructionTiming& in : timing.instructions) {
    Sum& sum = by_name[in.op];
    sum.op = in.op, sum.us += in.median_us, ++sum.count;
    sum.work.operations += in.work.operations, sum.work.bytes += in.work.bytes;
  }
  std::vector<Sum> sums;
  for (const auto& [name, sum] : by_name) sums.push_back(sum);
  std::ranges::stable_sort(sums, std::ranges::greater(), &Sum::us);
  out << "\n         us    share            rate  operator\n";
  for (const Sum& s : sums) print_row(out, s.us, sum_us, rate_text(s.us, s.work), s.op, inspect::counted(s.count, "instruction"));
}

void profile_program(const Options& options, std::ostream& out) {
  const std::map<std::string, int64_t> dims = parse_dims(options.dims);
  if (options.threads > 0) eager::set_threads(options.threads);
  const Threads* threads = eager::threads();
  RunningMethod running(options.file, options.method, threads);
  set_random_inputs(running, set_given_inputs(running, options.inputs), dims);
  const Timing timing = time_method(running, options.repeat);

  double sum_us = 0;
  Work work;
  for (const InstructionTiming& in : timing.instructions) sum_us += in.median_us, work.operations += in.work.operations;
  const Method& method = running.method();
  out << method.name() << ": " << std::fixed << std::setprecision(1) << timing.median_us << " us";
  if (work.operations > 0) out << ", " << rate_text(timing.median_us, work);
  out << "   median of " << inspect::counted(timing.runs, "run") << ", " << inspect::counted(threads == nullptr ? 1 : threads->count, "thread") << '\n';
  for (index_t i = 0; i < method.input_count(); ++i) {
    const TensorRef input = method.input(i);
    if (input.shape == nullptr) continue;
    std::vector<std::string> sizes;
    for (int d = 0; d < input.shape->rank; ++d) sizes.push_back(std::to_string(input.shape->sizes[d]));
    out << "  " << method.input_name(i) << ": " << name_of(input.dtype) << "[" << inspect::joined(sizes) << "]\n";
  }
  out << '\n';
  print_instructions(out, timing, sum_us, options.by_time);
  print_operators(out, timing, sum_us);

  if (!options.trace.empty()) {
    std::ostringstream trace;
    write_chrome_trace(trace, timing, method.name());
    io::write_file(options.trace, std::as_bytes(std::span(trace.view())));
    out << "\nwrote " << options.trace << "; open it in https://ui.perfetto.dev\n";
  }
}

}  // namespace

void add_profile_command(CLI::App& app, std::ostream& out) {
  CLI::App* command = app.add_subcommand("profile", "Measures each instruction of a method");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "The program")->required();
  command->add_option("--method", options->method, "Which method; may be left out if there is one");
  command->add_option("--dim", options->dims, "The value of a symbolic size, for inputs that are not given; default: 1, or its minimum")->type_name("NAME=NUMBER");
  add_input_options(*command, options->inputs);
  command->add_option("--repeat", options->repeat, "Runs that are measured; times are their medians")->capture_default_str()->check(CLI::PositiveNumber);
  command->add_option("--threads", options->threads, "Threads; default: as many as the machine has cores")->check(CLI::PositiveNumber);
  command->add_flag("--by-time", options->by_time, "The slowest instruction first, instead of the method's order");
  command->add_option("--trace", options->trace, "Writes every event to this file, for Perfetto or chrome://tracing")->type_name("FILE.json");
  command->footer("Inputs that are not given are random numbers; integers are zeros.");
  command->callback([options, &out] { profile_program(*options, out); });
}

}  // namespace taper::cli
