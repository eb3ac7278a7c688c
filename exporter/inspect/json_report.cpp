#include <nlohmann/json.hpp>

#include "taper/exporter/inspect/summary.h"

namespace taper::inspect {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const MethodSummary& m) {
  ordered_json symbols = ordered_json::array();
  for (const SymbolSummary& s : m.symbols)
    symbols.push_back(
        {{"name", s.name}, {"minimum", s.minimum}, {"maximum", s.maximum}, {"source", s.source}});
  return {{"name", m.name},
          {"inputs", m.inputs},
          {"outputs", m.outputs},
          {"symbols", symbols},
          {"checks", m.checks},
          {"instructions", m.instructions},
          {"operators", m.operators},
          {"states_written", m.states_written},
          {"memory",
           {{"activations", m.memory.activations},
            {"activations_lower_bound", m.lower_bound_bytes},
            {"io", m.memory.io},
            {"scratch", m.memory.scratch},
            {"metadata", m.memory.metadata},
            {"total", m.memory.total()}}}};
}

}  // namespace

void write_json(std::ostream& out, const Summary& s) {
  ordered_json methods = ordered_json::array(), states = ordered_json::array(),
               constants = ordered_json::array(), tests = ordered_json::array(),
               assets = ordered_json::array();
  ordered_json kernels = ordered_json::array(), parts = ordered_json::object();
  for (const MethodSummary& m : s.methods) methods.push_back(to_json(m));
  for (const StateSummary& state : s.states)
    states.push_back({{"path", state.path},
                      {"kind", state.kind},
                      {"type", state.type},
                      {"size_bytes", state.size_bytes}});
  for (const ConstantSummary& c : s.constants)
    constants.push_back({{"path", c.path},
                         {"type", c.type},
                         {"size_bytes", c.size_bytes},
                         {"outside", c.outside},
                         {"layout", c.layout}});
  for (const KernelSummary& k : s.kernels)
    kernels.push_back(
        {{"signature", k.signature}, {"record", k.record->name}, {"instructions", k.instructions}});
  for (const TestSummary& t : s.tests)
    tests.push_back({{"method", t.method},
                     {"name", t.name},
                     {"relative_tolerance", t.relative_tolerance},
                     {"size_bytes", t.size_bytes}});
  for (const AssetSummary& a : s.assets)
    assets.push_back(
        {{"name", a.name}, {"media_type", a.media_type}, {"size_bytes", a.size_bytes}});
  for (const PartSummary& p : s.parts)
    parts[p.name] = parts.value(p.name, int64_t{0}) + p.size_bytes;
  const ordered_json report{{"path", s.path},
                            {"name", s.name},
                            {"producer", s.producer},
                            {"format_version", s.format_version},
                            {"exact", s.exact},
                            {"targets", s.targets},
                            {"size_bytes", s.file_bytes},
                            {"parts", parts},
                            {"methods", methods},
                            {"states", states},
                            {"session_bytes", s.session_bytes},
                            {"packed_bytes", s.packed_bytes},
                            {"constants", constants},
                            {"kernels", kernels},
                            {"tests", tests},
                            {"assets", assets}};
  // a hostile file may have text that is not UTF-8
  out << report.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace taper::inspect
