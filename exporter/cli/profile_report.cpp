#include "taper/exporter/cli/profile_report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

using nlohmann::ordered_json;
using roofline::Bandwidth;
using roofline::Roof;

// An instruction, or all instructions of an operator.
struct Row {
  double us = 0, operations = 0, bytes = 0;
  Roof roof;
  std::string name, notes;
  std::vector<Row> below = {};  // nodes of a backend's part, or steps of a kernel
};

std::string number_text(double number) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << number;
  return text.str();
}

// "12.3 GFLOP/s" for matrix products and convolutions, "4.5 GB/s" for other operators.
std::string rate_text(double us, double operations, double bytes) {
  if (us <= 0) return "";
  if (operations <= 0 && bytes <= 0) return "";
  return operations > 0 ? number_text(operations / us / 1e3) + " GFLOP/s"
                        : number_text(bytes / us / 1e3) + " GB/s";
}

// "82 % compute": the roof's part of the time.
std::string roof_text(const Roof& roof, double us) {
  if (us <= 0 || roof.us <= 0) return "";
  return std::to_string(std::lround(100 * roof.us / us)) + " % " + name_of(roof.limit);
}

void print_rows(std::ostream& out, const char* title, const std::vector<Row>& rows, double total_us,
                bool with_roofs) {
  size_t width = 0;
  for (const Row& row : rows) {
    width = std::max(width, row.name.size());
    for (const Row& node : row.below) width = std::max(width, node.name.size());
  }
  const auto roof_column = [&](const std::string& text) {
    if (with_roofs) out << std::setw(16) << text;
  };
  out << "\n         us    share            rate";
  roof_column("of the roof");
  out << "  " << title << '\n';
  const auto print = [&](const Row& row) {
    out << std::setw(11) << number_text(row.us) << std::setw(9)
        << io::percent_text(row.us, total_us) << std::setw(16)
        << rate_text(row.us, row.operations, row.bytes);
    roof_column(roof_text(row.roof, row.us));
    out << "  " << std::left << std::setw(static_cast<int>(width) + 2) << row.name << std::right
        << row.notes << '\n';
  };
  for (const Row& row : rows) {
    print(row);
    for (const Row& node : row.below) print(node);
  }
}

std::vector<Row> instruction_rows(const Profile& profile) {
  std::vector<Row> rows;
  for (const InstructionTiming& in : profile.timing.instructions) {
    std::vector<std::string> notes{in.types};
    if (in.executions > 1) notes.push_back(std::to_string(in.executions) + " times");
    if (!in.source.empty()) notes.push_back(in.source);
    if (!in.module.empty()) notes.push_back(in.module);
    rows.push_back({in.median_us, in.operations(), in.bytes(), profile.roof(in),
                    in.kernel.empty() ? in.op : in.kernel, io::printable(io::joined(notes, "  "))});
    for (const NodeTiming& node : in.nodes)
      rows.back().below.push_back(
          {node.median_us, 0, 0, {}, "  " + node.name, io::printable(node.source)});
    for (const StepTiming& step : in.steps)
      rows.back().below.push_back({step.us,
                                   0,
                                   0,
                                   {},
                                   "  " + step.name,
                                   io::percent_text(step.us, in.median_us) + " of the kernel"});
  }
  return rows;
}

// The instructions of one operator.
struct OperatorSum {
  Row row;
  int instructions = 0;
};

// The slowest operator first.
std::vector<OperatorSum> operator_sums(const Profile& profile) {
  std::map<std::string, OperatorSum> sums;
  for (const InstructionTiming& in : profile.timing.instructions) {
    OperatorSum& sum = sums[in.op];
    ++sum.instructions;
    sum.row.us += in.median_us;
    sum.row.operations += in.operations(), sum.row.bytes += in.bytes();
  }
  std::vector<OperatorSum> list;
  for (auto& [op, sum] : sums) {
    std::vector<Roof> roofs;
    for (const InstructionTiming& in : profile.timing.instructions)
      if (in.op == op) roofs.push_back(profile.roof(in));
    sum.row.roof = roofline::sum_of(roofs);
    sum.row.name = op, sum.row.notes = io::counted(sum.instructions, "instruction");
    list.push_back(sum);
  }
  std::ranges::stable_sort(list, std::ranges::greater(), [](const auto& s) { return s.row.us; });
  return list;
}

// "up to 1.0 MB: 113.4 GB/s read, 176.0 GB/s read and written"
std::string bandwidth_text(const Bandwidth& b) {
  const std::string operands =
      std::isinf(b.up_to_bytes)
          ? "larger operands"
          : "operands up to " + io::bytes_text(static_cast<int64_t>(b.up_to_bytes));
  return operands + ": " + number_text(b.read_gbps) + " GB/s read, " +
         number_text(b.read_and_written_gbps) + " GB/s read and written";
}

ordered_json peaks_json(const roofline::Peaks& peaks) {
  ordered_json bandwidths = ordered_json::array();
  for (const Bandwidth& b : peaks.bandwidths)
    bandwidths.push_back({{"up_to_bytes", std::isinf(b.up_to_bytes) ? ordered_json(nullptr)
                                                                    : ordered_json(b.up_to_bytes)},
                          {"read_gbps", b.read_gbps},
                          {"read_and_written_gbps", b.read_and_written_gbps}});
  return {{"gflops", peaks.gflops}, {"bandwidths", bandwidths}};
}

// Adds the roof's name and its part of the time; null where nothing bounds or nothing ran.
void add_roof(ordered_json& object, const Roof& roof, double us) {
  const bool has_roof = roof.us > 0 && us > 0;
  object["roof"] = has_roof ? ordered_json(name_of(roof.limit)) : ordered_json(nullptr);
  object["roof_share"] = has_roof ? ordered_json(roof.us / us) : ordered_json(nullptr);
}

ordered_json instructions_json(const Profile& profile, bool by_time) {
  std::vector<InstructionTiming> timings = profile.timing.instructions;
  if (by_time)
    std::ranges::stable_sort(timings, std::ranges::greater(), &InstructionTiming::median_us);
  ordered_json list = ordered_json::array();
  for (const InstructionTiming& in : timings) {
    list.push_back({{"operator", in.op},
                    {"kernel", in.kernel},
                    {"types", in.types},
                    {"source", in.source},
                    {"module", in.module},
                    {"median_us", in.median_us},
                    {"best_us", in.best_us},
                    {"executions", in.executions},
                    {"operations", in.operations()},
                    {"bytes", in.bytes()}});
    if (profile.peaks) add_roof(list.back(), profile.roof(in), in.median_us);
    ordered_json nodes = ordered_json::array(), steps = ordered_json::array();
    for (const NodeTiming& node : in.nodes)
      nodes.push_back(
          {{"name", node.name}, {"source", node.source}, {"median_us", node.median_us}});
    for (const StepTiming& step : in.steps) steps.push_back({{"name", step.name}, {"us", step.us}});
    if (!nodes.empty()) list.back()["nodes"] = nodes;
    if (!steps.empty()) list.back()["steps"] = steps;
  }
  return list;
}

ordered_json operators_json(const Profile& profile) {
  ordered_json list = ordered_json::array();
  for (const auto& [row, instructions] : operator_sums(profile)) {
    list.push_back({{"operator", row.name},
                    {"instructions", instructions},
                    {"median_us", row.us},
                    {"operations", row.operations},
                    {"bytes", row.bytes}});
    if (profile.peaks) add_roof(list.back(), row.roof, row.us);
  }
  return list;
}

}  // namespace

Roof Profile::roof(const InstructionTiming& in) const {
  if (!peaks) return {};
  Roof roof = roofline::roof_of(*peaks, in.work);
  roof.us *= in.executions;
  return roof;
}

Roof Profile::roof() const {
  std::vector<Roof> roofs;
  for (const InstructionTiming& in : timing.instructions) roofs.push_back(roof(in));
  return roofline::sum_of(roofs);
}

std::vector<std::string> facts(const Profile& profile) {
  double operations = 0;
  for (const InstructionTiming& in : profile.timing.instructions) operations += in.operations();
  const double us = profile.timing.median_us;
  std::vector<std::string> whole{number_text(us) + " us"};
  if (operations > 0) whole.push_back(rate_text(us, operations, 0));
  if (const std::string text = roof_text(profile.roof(), us); !text.empty()) whole.push_back(text);
  std::vector<std::string> lines{io::printable(profile.method) + ": " + io::joined(whole) +
                                 "   median of " + io::counted(profile.timing.runs, "run") + ", " +
                                 io::counted(profile.threads, "thread")};
  for (const Profile::Input& input : profile.inputs)
    lines.push_back("  " + io::printable(input.name) + ": " + input.type);
  if (!profile.peaks) return lines;
  lines.push_back("  peak: " + number_text(profile.peaks->gflops) + " GFLOP/s");
  for (const Bandwidth& b : profile.peaks->bandwidths) lines.push_back("  " + bandwidth_text(b));
  return lines;
}

void print_text(std::ostream& out, const Profile& profile, bool by_time) {
  for (const std::string& line : facts(profile)) out << line << '\n';
  std::vector<Row> rows = instruction_rows(profile), sums;
  if (by_time) std::ranges::stable_sort(rows, std::ranges::greater(), &Row::us);
  for (const OperatorSum& sum : operator_sums(profile)) sums.push_back(sum.row);
  double sum_us = 0;
  for (const Row& row : rows) sum_us += row.us;
  print_rows(out, "instruction", rows, sum_us, profile.peaks.has_value());
  print_rows(out, "operator", sums, sum_us, profile.peaks.has_value());
}

void print_json(std::ostream& out, const Profile& profile, bool by_time) {
  ordered_json inputs = ordered_json::array();
  for (const Profile::Input& input : profile.inputs)
    inputs.push_back({{"name", input.name}, {"type", input.type}});
  ordered_json json{{"method", profile.method},
                    {"threads", profile.threads},
                    {"runs", profile.timing.runs},
                    {"median_us", profile.timing.median_us}};
  if (profile.peaks) {
    add_roof(json, profile.roof(), profile.timing.median_us);
    json["peaks"] = peaks_json(*profile.peaks);
  }
  json["inputs"] = inputs;
  json["instructions"] = instructions_json(profile, by_time);
  json["operators"] = operators_json(profile);
  out << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace taper::cli
