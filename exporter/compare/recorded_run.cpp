// Reads results that were recorded elsewhere as a run.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "taper/exporter/compare/compare.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::compare {
namespace {

/// Whether the key belongs to a recorded call: "set0.input.1", "MODEL.set0.input.1".
bool is_of_a_call(std::string_view key) {
  constexpr std::string_view set = "set";
  for (;;) {
    const std::string_view part = key.substr(0, key.find('.'));
    if (part.size() > set.size() && part.starts_with(set) &&
        std::isdigit(static_cast<unsigned char>(part[set.size()])))
      return true;
    if (part.size() == key.size()) return false;
    key.remove_prefix(part.size() + 1);
  }
}

Recording first_call(const std::filesystem::path& path, const std::string& model) {
  const std::vector<io::RecordedCall> calls = io::read_recorded_calls(path, model);
  if (calls.empty()) throw io::FileError(path.string() + " records no call");
  const io::RecordedCall& call = calls.front();
  Recording recording;
  recording.inputs = call.inputs;
  for (const auto& [i, array] : call.outputs)
    recording.run.outputs.push_back({"", "output " + std::to_string(i), array});
  for (const auto& [i, array] : call.mutated)
    recording.run.outputs.push_back({"", "input " + std::to_string(i) + " afterwards", array});
  return recording;
}

}  // namespace

Recording read_recording(const std::filesystem::path& path, const std::string& model) {
  Recording recording;
  if (path.extension() == ".npy") {
    recording.run.outputs.push_back({"", "", io::read_npy(path)});
  } else {
    const io::SafeTensors file = io::read_safetensors(path);
    const bool calls = std::ranges::any_of(
        file.tensors, [](const auto& entry) { return is_of_a_call(entry.first); });
    if (calls) {
      recording = first_call(path, model);
    } else {
      recording.run.by_name = true;
      for (const auto& [name, array] : file.tensors) {
        recording.run.outputs.push_back({name, "", array});
        recording.run.nodes.push_back({name, 0, "", "", "", "", array, false, false});
      }
    }
  }
  for (auto& [i, input] : recording.inputs) input.settle_bools();
  for (Output& output : recording.run.outputs) output.value.settle_bools();
  return recording;
}

}  // namespace taper::compare
