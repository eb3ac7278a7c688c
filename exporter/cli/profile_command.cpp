#include <algorithm>
#include <iomanip>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "taper/exporter/cli/chrome_trace.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/timing.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

struct ProfileArguments {
  std::string file, method, trace;
  InputOptions inputs;
  ImportChoice import;
  std::vector<std::string> dims;
  int repeat = 50, threads = 1;
  bool by_time = false, json = false;
};

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t sign = text.find('=');
    const std::optional<int64_t> value =
        sign == std::string::npos ? std::nullopt : number_of<int64_t>(text.substr(sign + 1));
    if (!value || sign == 0) throw UsageError("--dim", text + " is not NAME=NUMBER");
    if (!dims.emplace(text.substr(0, sign), *value).second)
      throw UsageError("--dim", text.substr(0, sign) + " is given twice");
  }
  return dims;
}

// "12.3 GFLOP/s" for matrix products and convolutions, "4.5 GB/s" for other operators.
std::string rate_text(double us, const Work& work) {
  if (us <= 0) return "";
  std::ostringstream text;
  const bool computes = work.operations > 0;
  text << std::fixed << std::setprecision(1) << (computes ? work.operations : work.bytes) / us / 1e3
       << (computes ? " GFLOP/s" : " GB/s");
  return text.str();
}

struct Row {
  double us;
  Work work;
  std::string name, rest;
};

void print_rows(std::ostream& out, const char* title, const std::vector<Row>& rows,
                double total_us) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  out << "\n         us    share            rate  " << title << '\n';
  for (const Row& row : rows)
    out << std::fixed << std::setprecision(1) << std::setw(11) << row.us << std::setw(9)
        << io::percent_text(row.us, total_us) << std::setw(16) << rate_text(row.us, row.work)
        << "  " << std::left << std::setw(static_cast<int>(width) + 2) << row.name << std::right
        << row.rest << '\n';
}

std::vector<Row> instruction_rows(const Timing& timing) {
  std::vector<Row> rows;
  for (const InstructionTiming& in : timing.instructions) {
    std::vector<std::string> notes{in.types};
    if (!in.source.empty()) notes.push_back(in.source);
    if (!in.module.empty()) notes.push_back(in.module);
    rows.push_back({in.median_us, in.work, in.kernel.empty() ? in.op : in.kernel,
                    io::printable(io::joined(notes, "  "))});
  }
  return rows;
}

// One row for each operator, the slowest first.
std::vector<Row> operator_rows(const Timing& timing) {
  std::map<std::string, Row> sums;
  std::map<std::string, int> counts;
  for (const InstructionTiming& in : timing.instructions) {
    Row& sum = sums.try_emplace(in.op, Row{0, {}, in.op, ""}).first->second;
    sum.us += in.median_us;
    sum.work.operations += in.work.operations, sum.work.bytes += in.work.bytes;
    sum.rest = io::counted(++counts[in.op], "instruction");
  }
  std::vector<Row> rows;
  for (const auto& [op, row] : sums) rows.push_back(row);
  std::ranges::stable_sort(rows, std::ranges::greater(), &Row::us);
  return rows;
}

void print_json(std::ostream& out, const Timing& timing, const Method& method, int threads,
                bool by_time) {
  using nlohmann::ordered_json;
  ordered_json inputs = ordered_json::array(), instructions = ordered_json::array();
  for (index_t i = 0; i < method.input_count(); ++i) {
    const TensorRef input = method.input(i);
    if (input.shape != nullptr)
      inputs.push_back({{"name", method.input_name(i)}, {"type", type_text(input)}});
  }
  std::vector<InstructionTiming> timings = timing.instructions;
  if (by_time)
    std::ranges::stable_sort(timings, std::ranges::greater(), &InstructionTiming::median_us);
  for (const InstructionTiming& in : timings)
    instructions.push_back({{"operator", in.op},
                            {"kernel", in.kernel},
                            {"types", in.types},
                            {"source", in.source},
                            {"module", in.module},
                            {"median_us", in.median_us},
                            {"operations", in.work.operations},
                            {"bytes", in.work.bytes}});
  const ordered_json profile{{"method", method.name()}, {"threads", threads},
                             {"runs", timing.runs},     {"median_us", timing.median_us},
                             {"inputs", inputs},        {"instructions", instructions}};
  out << profile.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

void print_text(std::ostream& out, const Timing& timing, const Method& method, int threads,
                bool by_time) {
  double sum_us = 0;
  Work work;
  for (const InstructionTiming& in : timing.instructions)
    sum_us += in.median_us, work.operations += in.work.operations;
  out << io::printable(method.name()) << ": " << std::fixed << std::setprecision(1)
      << timing.median_us << " us";
  if (work.operations > 0) out << ", " << rate_text(timing.median_us, work);
  out << "   median of " << io::counted(timing.runs, "run") << ", "
      << io::counted(threads, "thread") << '\n';
  for (index_t i = 0; i < method.input_count(); ++i) {
    const TensorRef input = method.input(i);
    if (input.shape != nullptr)
      out << "  " << io::printable(method.input_name(i)) << ": " << type_text(input) << '\n';
  }
  std::vector<Row> rows = instruction_rows(timing);
  if (by_time) std::ranges::stable_sort(rows, std::ranges::greater(), &Row::us);
  print_rows(out, "instruction", rows, sum_us);
  print_rows(out, "operator", operator_rows(timing), sum_us);
}

void profile_program(const ProfileArguments& options, std::ostream& out) {
  const std::map<std::string, int64_t> dims = parse_dims(options.dims);
  eager::set_threads(options.threads);
  const Threads* threads = eager::threads();
  RunningMethod running(options.file, options.method, threads, options.import);
  set_random_inputs(running, set_given_inputs(running, options.inputs), dims);
  const Timing timing = time_method(running, options.repeat);

  const int count = threads == nullptr ? 1 : threads->count;
  if (options.json)
    print_json(out, timing, running.method(), count, options.by_time);
  else
    print_text(out, timing, running.method(), count, options.by_time);

  if (!options.trace.empty()) {
    std::ostringstream trace;
    write_chrome_trace(trace, timing, running.method().name());
    io::write_file(options.trace, std::as_bytes(std::span(trace.view())));
    if (!options.json)
      out << "\nwrote " << options.trace << "; open it in https://ui.perfetto.dev\n";
  }
}

}  // namespace

void add_profile_command(CommandLine& line, std::ostream& out) {
  Command command = line.add("profile", "Measures the time of each instruction of a method");
  auto options = std::make_shared<ProfileArguments>();
  command.option("file", options->file, "The program (.taper) or PyTorch model (.pt2)").required();
  command.option("--method", options->method, "The method; default: forward, or the only method");
  command
      .option("--dim NAME=NUMBER", options->dims,
              "Sets a symbolic size of inputs that are not given; default: 1, or its minimum")
      .one_value();
  add_input_options(command, options->inputs);
  command
      .option("--repeat", options->repeat,
              "The number of runs; the times are medians over these runs")
      .shows_default()
      .in_range(1, 100'000);
  add_threads_option(command, options->threads);
  add_verify_option(command, options->import);
  add_read_option(command, options->import);
  add_outside_options(command, options->import);
  command.flag("--by-time", options->by_time, "Sorts by time, the slowest instruction first");
  command.flag("--json", options->json, "Prints JSON instead of text; times are in microseconds");
  command.option("--trace FILE.json", options->trace,
                 "Writes every event to this file, for Perfetto or chrome://tracing");
  command.footer(R"(Inputs that are not given are random numbers, or zeros for integers.

Examples:
  taper profile lenet.taper --dim batch=64 --threads 4
  taper profile lenet.taper --by-time --trace lenet.json)");
  command.does([options, &out] { profile_program(*options, out); });
}

}  // namespace taper::cli
