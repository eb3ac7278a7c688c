#include "taper/exporter/cli/steps.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>

#include "taper/exporter/cli/sampler.h"
#include "taper/exporter/cli/symbols.h"

namespace taper::cli {
namespace {

constexpr double seconds = 1;
constexpr size_t most_samples = 1 << 18;

struct Step {
  std::string_view name;
  std::vector<std::string_view> functions;  // a part of the name of each
};
// The first step whose word is found counts. The words are those of kernels/optimized/.
const std::vector<Step>& known_steps() {
  static const std::vector<Step> steps{
      {"wait", {"ThreadPool::Workers"}},
      {"softmax", {"exponentials", "scale_and_add", "::divide"}},
      {"store", {"::finish", "::narrow", "::output", "round_block", "write_columns"}},
      {"pack", {"pack", "::turn", "::pad", "::input", "fill_planes", "widen", "gather"}},
      {"tiles", {"tile", "shared_rows", "depthwise", "::channel"}}};
  return steps;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// "void a::(anonymous namespace)::tile<3>(float const*)" -> "void a::tile<3>". The first
// parenthesis that is left begins the parameters, also those of a template's argument.
std::string without_parameters(std::string name) {
  for (const char* noise : {"(anonymous namespace)::", "(taper::optimized::CpuLevel)", "&("})
    replace_all(name, noise, "");
  return name.substr(0, name.find('('));
}

// Which execution a sample belongs to. Events do not overlap.
const ProfileEvent* event_at(std::span<const ProfileEvent> events, uint64_t ns) {
  auto after = std::ranges::upper_bound(events, ns, {}, &ProfileEvent::begin);
  if (after == events.begin() || ns >= (--after)->end) return nullptr;
  return &*after;
}

bool has_product(const InstructionTiming& in) {
  return !in.kernel.empty() && in.work.operations > 0;
}

// What the threads did in instruction i. A thread that waited all the time is not the method's.
std::map<std::string, int> sum_of(
    const std::map<int, std::vector<std::map<std::string, int>>>& counts, size_t i) {
  std::map<std::string, int> sum;
  for (const auto& [thread, instructions] : counts) {
    const bool works = std::ranges::any_of(instructions, [](const auto& steps) {
      return std::ranges::any_of(steps, [](const auto& s) { return s.first != "wait"; });
    });
    if (!works) continue;
    for (const auto& [step, count] : instructions[i]) sum[step] += count;
  }
  return sum;
}

// The most frequent step first.
std::vector<StepTiming> steps_of(const std::map<std::string, int>& counts, double us) {
  int all = 0;
  for (const auto& [step, count] : counts) all += count;
  std::vector<StepTiming> steps;
  for (const auto& [step, count] : counts) steps.push_back({step, us * count / all});
  std::ranges::stable_sort(steps, std::ranges::greater(), &StepTiming::us);
  return steps;
}

}  // namespace

std::string step_of(const std::string& function) {
  const std::string name = without_parameters(function);
  for (const Step& step : known_steps())
    for (const std::string_view word : step.functions)
      if (name.find(word) != std::string::npos) return std::string(step.name);
  return "other";
}

void add_steps(RunningMethod& running, Timing& timing) {
  const Symbols symbols = Symbols::of_this_program();
  if (Sampler::is_supported() && symbols.empty())
    throw ExportError("--detail needs the names of functions, but this program is stripped");
  Sampler sampler(most_samples);
  const double runs = seconds * 1e6 / std::max(timing.median_us, 1.0);
  NodeTimes none;  // of parts of backends; they have no steps
  const Timing sampled =
      time_method(running, static_cast<int>(std::clamp(runs, 10.0, 20'000.0)), none);

  // of each thread
  std::map<int, std::vector<std::map<std::string, int>>> counts;
  std::unordered_map<const void*, std::string> known;
  for (const Sample& sample : sampler.take()) {
    const ProfileEvent* const event = event_at(sampled.events, sample.ns);
    if (event == nullptr || !has_product(timing.instructions[event->instruction])) continue;
    const auto [at, is_new] = known.try_emplace(sample.place);
    if (is_new) at->second = symbols.name_of(sample.place);
    // a thread of the pool that sleeps is in libc
    const bool sleeps = at->second.empty() && sample.thread != Sampler::this_thread();
    auto& of_thread = counts[sample.thread];
    of_thread.resize(timing.instructions.size());
    ++of_thread[event->instruction][sleeps ? "wait" : step_of(at->second)];
  }
  for (size_t i = 0; i < timing.instructions.size(); ++i)
    timing.instructions[i].steps = steps_of(sum_of(counts, i), timing.instructions[i].median_us);
}

}  // namespace taper::cli
