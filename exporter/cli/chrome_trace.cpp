#include "taper/exporter/cli/chrome_trace.h"

#include <nlohmann/json.hpp>
#include <ostream>

namespace taper::cli {

void write_chrome_trace(std::ostream& out, const Timing& timing, const std::string& method) {
  using nlohmann::ordered_json;
  ordered_json events = ordered_json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "taper " + method}}}});
  const uint64_t start = timing.events.empty() ? 0 : timing.events.front().begin;
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1000; };
  for (const ProfileEvent& e : timing.events) {
    const InstructionTiming& in = timing.instructions[e.instruction];
    ordered_json arguments{{"instruction", e.instruction}, {"types", in.types}};
    if (!in.kernel.empty()) arguments["kernel"] = in.kernel;
    if (!in.source.empty()) arguments["source"] = in.source;
    if (!in.module.empty()) arguments["module"] = in.module;
    events.push_back({{"name", in.op},
                      {"cat", in.module.empty() ? "model" : in.module},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", e.queue},
                      {"ts", us(e.begin - start)},
                      {"dur", us(e.end - e.begin)},
                      {"args", arguments}});
  }
  const ordered_json trace{{"displayTimeUnit", "ns"}, {"traceEvents", events}};
  out << trace.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace taper::cli
