#include "taper/exporter/cli/profile_html.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "taper/exporter/inspect/html.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {

/// The page, made of page/ by the build.
extern const std::string_view profile_page;

namespace {

using nlohmann::json;

json page_instructions(const Profile& profile) {
  json list = json::array();
  for (const InstructionTiming& in : profile.timing.instructions) {
    json object{{"operator", io::printable(in.op)},   {"kernel", io::printable(in.kernel)},
                {"types", io::printable(in.types)},   {"source", io::printable(in.source)},
                {"module", io::printable(in.module)}, {"us", in.median_us},
                {"operations", in.operations()},      {"bytes", in.bytes()}};
    if (const roofline::Roof roof = profile.roof(in); roof.us > 0)
      object["roof"] = roofline::name_of(roof.limit), object["roof_us"] = roof.us;
    for (const StepTiming& step : in.steps)
      object["steps"].push_back({{"name", step.name}, {"us", step.us}});
    list.push_back(object);
  }
  return list;
}

// In microseconds since the first one began.
json page_events(const Timing& timing) {
  json list = json::array();
  const auto us = [&](uint64_t ns) {
    return static_cast<double>(ns - timing.median_run.front().begin) / 1000;
  };
  for (const ProfileEvent& e : timing.median_run)
    list.push_back({{"instruction", e.instruction}, {"begin", us(e.begin)}, {"end", us(e.end)}});
  return list;
}

}  // namespace

void write_profile_html(std::ostream& out, const std::string& title, const Profile& profile) {
  const json data{{"title", io::printable(title)},
                  {"facts", facts(profile)},
                  {"runs", profile.timing.runs},
                  {"instructions", page_instructions(profile)},
                  {"events", page_events(profile.timing)}};
  inspect::write_page(out, profile_page, data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::cli
