#include "taper/exporter/cli/backends_profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/partition/delegate.h"

namespace taper::cli {
namespace {

constexpr int warm_up_runs = 3;
constexpr double noise = 0.05;  ///< a smaller difference is none

/// The program for the kernels, whose backend is empty, or for a backend.
struct Candidate {
  std::string backend;
  std::string placement;  ///< "65 nodes in 3 delegates, 0 left; 100.0 % of the multiplications"
  std::unique_ptr<RunningMethod> running;
  std::vector<double> milliseconds;

  std::string name() const { return backend.empty() ? "kernels" : backend; }
  double median() const {
    std::vector<double> sorted = milliseconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

/// What the report of an export says of the backend's parts.
std::string placement_of(const emit::Report& report, const std::string& backend) {
  const std::string begin = "forward: " + backend + " runs ";
  for (const std::string& note : report.notes)
    if (note.starts_with(begin)) return note.substr(begin.size());
  return "";
}

Candidate candidate(const BackendsProfile& asked, const std::string& backend) {
  ExportOptions options;
  options.exact = false, options.backend = backend;
  emit::Report report;
  std::vector<std::byte> program = program_bytes(asked.model, asked.import, options, report);
  Candidate made{backend, placement_of(report, backend), nullptr, {}};
  made.running = std::make_unique<RunningMethod>(asked.model, std::move(program), "forward",
                                                 eager::threads(), asked.import);
  asked.set_inputs(*made.running);
  return made;
}

double milliseconds_of_a_run(RunningMethod& running) {
  const auto begin = std::chrono::steady_clock::now();
  running.execute();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

/// Runs them in turns, so that whatever else the machine does slows all of them down.
void measure(std::vector<Candidate>& candidates, int repeat) {
  for (int run = -warm_up_runs; run < repeat; ++run)
    for (Candidate& c : candidates) {
      const double taken = milliseconds_of_a_run(*c.running);
      if (run >= 0) c.milliseconds.push_back(taken);
    }
}

void print(const std::vector<Candidate>& candidates, std::ostream& out) {
  size_t width = 0;
  for (const Candidate& c : candidates) width = std::max(width, c.name().size());
  for (const Candidate& c : candidates) {
    std::ostringstream time;
    time << std::setprecision(3) << c.median();
    out << "  " << std::left << std::setw(static_cast<int>(width)) << c.name() << "  " << std::right
        << std::setw(9) << time.str() << " ms" << (c.placement.empty() ? "" : "  ") << c.placement
        << '\n';
  }
}

std::string how_much_longer(const Candidate& slow, const Candidate& fast) {
  const double part = slow.median() / fast.median() - 1;
  return slow.name() + " takes " + std::to_string(std::lround(100 * part)) + " % longer";
}

/// A backend that rounds comes last: whether its results are good enough, the times do not say.
std::pair<bool, double> rank_of(const Candidate& backend) {
  return {partition::find_delegate(backend.backend).rounds_to() != DType::f32, backend.median()};
}

/// The kernels, unless a backend is faster beyond noise: they need no library.
void choose(const std::vector<Candidate>& candidates, std::ostream& out) {
  const Candidate& kernels = candidates.front();
  const Candidate& backend =
      *std::ranges::min_element(candidates.begin() + 1, candidates.end(), {}, rank_of);
  if (backend.median() < kernels.median() * (1 - noise))
    out << "choose --backend " << backend.name() << ": " << how_much_longer(kernels, backend);
  else if (backend.median() < kernels.median() * (1 + noise))
    out << "choose the kernels, which need no library: there is no clear difference";
  else
    out << "choose the kernels: " << how_much_longer(backend, kernels);
  out << '\n';
}

}  // namespace

void profile_backends(const BackendsProfile& asked, std::ostream& out) {
  if (!is_exported_model(asked.model))
    throw UsageError("--backends", asked.model +
                                       " is not a .pt2 file, and a program runs where it was "
                                       "exported to; give the model");
  std::vector<Candidate> candidates;
  candidates.push_back(candidate(asked, ""));
  for (const partition::Delegate* delegate : partition::delegates())
    if (delegate->backend() != nullptr) candidates.push_back(candidate(asked, delegate->name()));
  if (candidates.size() == 1)
    throw ExportError("--backends: this build of taper has no backend for this machine");
  measure(candidates, asked.repeat);
  out << asked.model << ": " << io::counted(asked.threads, "thread") << ", medians of "
      << io::counted(asked.repeat, "run") << '\n';
  print(candidates, out);
  choose(candidates, out);
}

}  // namespace taper::cli
