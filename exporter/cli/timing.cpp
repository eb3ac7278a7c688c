#include "taper/exporter/cli/timing.h"

#include <algorithm>
#include <chrono>

namespace taper::cli {
namespace {

constexpr int warm_up_runs = 3;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

// The index of the value in the middle.
size_t median_index(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  std::ranges::nth_element(order, middle, {}, [&](size_t i) { return values[i]; });
  return *middle;
}

// What one instruction did in every run.
struct Runs {
  std::vector<double> us;
  int executions = 0;                                   // the most in one run
  std::vector<std::vector<partition::NodeTime>> parts;  // of each execution, if a backend told
};

// Each node's median. Every execution of a part has the same nodes.
std::vector<NodeTiming> nodes_of(const Runs& runs) {
  std::vector<NodeTiming> nodes;
  if (runs.parts.empty()) return nodes;
  for (size_t n = 0; n < runs.parts[0].size(); ++n) {
    std::vector<double> us;
    for (const auto& part : runs.parts)
      if (n < part.size()) us.push_back(part[n].us);
    nodes.push_back({runs.parts[0][n].name, runs.parts[0][n].source, us[median_index(us)]});
  }
  return nodes;
}

InstructionTiming timing_of(const InstructionInfo& in, const Runs& runs, roofline::Work work) {
  const auto text_of = [](const char* text) { return std::string(text == nullptr ? "" : text); };
  InstructionTiming timing;
  timing.op = in.op;
  if (in.kernel != nullptr) timing.kernel = in.kernel->name;
  timing.types = types_text(in);
  timing.source = text_of(in.source), timing.module = text_of(in.module);
  timing.median_us = runs.us[median_index(runs.us)];
  timing.best_us = std::ranges::min(runs.us);
  timing.executions = runs.executions;
  timing.work = std::move(work);
  timing.nodes = nodes_of(runs);
  return timing;
}

// Adds a run to what each instruction did.
void add_run(std::vector<Runs>& instructions, std::span<const ProfileEvent> events) {
  std::vector<int> executions(instructions.size(), 0);
  for (Runs& runs : instructions) runs.us.push_back(0);
  for (const ProfileEvent& e : events) {
    Runs& runs = instructions[e.instruction];
    runs.us.back() += microseconds(e.end - e.begin);
    runs.executions = std::max(runs.executions, ++executions[e.instruction]);
  }
}

bool is_part_of_a_backend(const InstructionInfo& in) {
  return in.kernel == nullptr &&
         std::ranges::any_of(partition::delegates(),
                             [&](const partition::Delegate* d) { return d->name() == in.op; });
}

// Gives the calls of a run to the instructions that made them.
void add_nodes(std::vector<Runs>& instructions, const Method& method,
               std::span<const ProfileEvent> events,
               std::vector<std::vector<partition::NodeTime>> calls) {
  size_t call = 0;
  for (const ProfileEvent& e : events)
    if (call < calls.size() &&
        is_part_of_a_backend(method.instruction(static_cast<index_t>(e.instruction))))
      instructions[e.instruction].parts.push_back(std::move(calls[call++]));
}

}  // namespace

NodeTimes::NodeTimes() {
  for (const partition::Delegate* delegate : partition::delegates())
    delegate->time_nodes([this](const auto& nodes) { calls_.push_back(nodes); });
}
NodeTimes::~NodeTimes() {
  for (const partition::Delegate* delegate : partition::delegates()) delegate->time_nodes({});
}

Timing time_method(RunningMethod& running, int runs, NodeTimes& node_times) {
  Method& method = running.method();
  for (int i = 0; i < warm_up_runs; ++i) running.execute();
  node_times.take();

  const size_t count = static_cast<size_t>(method.instruction_count());
  Timing timing;
  timing.runs = runs;
  std::vector<ProfileEvent> events(4 * count + 64);  // a loop executes an instruction several times
  std::vector<Runs> instructions(count);
  std::vector<double> totals;
  std::vector<size_t> ends;  // where each run ends in timing.events
  Profiler profiler;
  profiler.events = events;
  profiler.now = now_ns;
  method.set_profiler(&profiler);
  for (int run = 0; run < runs; ++run) {
    profiler.count = 0;
    const uint64_t begin = now_ns();
    running.execute();
    totals.push_back(microseconds(now_ns() - begin));
    const std::span<const ProfileEvent> of_run(events.data(), static_cast<size_t>(profiler.count));
    add_run(instructions, of_run);
    add_nodes(instructions, method, of_run, node_times.take());
    timing.events.insert(timing.events.end(), of_run.begin(), of_run.end());
    ends.push_back(timing.events.size());
  }
  method.set_profiler(nullptr);
  if (timing.events.empty() && count > 0)
    throw ExportError(
        "this build of the runtime cannot profile; configure it with -DTAPER_PROFILE=ON");

  const size_t median = median_index(totals), first = median == 0 ? 0 : ends[median - 1];
  timing.median_us = totals[median];
  timing.median_run = std::span(timing.events).subspan(first, ends[median] - first);
  std::vector<roofline::Work> works = works_of(method);
  for (size_t i = 0; i < count; ++i)
    timing.instructions.push_back(timing_of(method.instruction(static_cast<index_t>(i)),
                                            instructions[i], std::move(works[i])));
  return timing;
}

}  // namespace taper::cli
