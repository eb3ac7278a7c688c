// What `taper profile` prints: the time of instructions, their work, and what bounds them.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/timing.h"
#include "taper/exporter/roofline/roofline.h"

namespace taper::cli {

struct Profile {
  struct Input {
    std::string name, type;
  };

  std::string method;
  std::vector<Input> inputs;  ///< tensors, with their current types
  int threads = 1;
  Timing timing;
  std::optional<roofline::Peaks> peaks;  ///< without them, nothing is said about roofs

  /// The roof of all executions of an instruction in one run.
  roofline::Roof roof(const InstructionTiming& instruction) const;
  /// The roof of a whole run.
  roofline::Roof roof() const;
};

/// What is said before any table, a line each: the whole time, the inputs, the machine.
std::vector<std::string> facts(const Profile& profile);
/// The facts, and two tables: of instructions, and of operators.
void print_text(std::ostream& out, const Profile& profile, bool by_time);
void print_json(std::ostream& out, const Profile& profile, bool by_time);

}  // namespace taper::cli
