// The parts of a method that a run may jump over.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/schema/program_generated.h"

namespace taper::inspect {

/// Goes through a method's instructions in order. A stretch is the instructions that a jump skips,
/// such as one side of a branch. Stretches nest; stretch 0 is the whole method.
class Stretches {
 public:
  explicit Stretches(uint32_t instruction_count) : list_{{-1, 0, instruction_count, -1, 0}} {}

  /// Takes the next instruction. Returns the innermost stretch that contains it.
  int next(const format::Instruction& instruction);

  /// Whether `inner` lies inside `outer`.
  bool contains(int outer, int inner) const;
  /// Whether one run may go through both, in either order. It may not if they are the two sides of
  /// one branch.
  bool go_together(int a, int b) const;

 private:
  struct Stretch {
    int around, depth;
    uint32_t end;        ///< the instruction after it
    int other_side;      ///< in a branch: the stretch that a run takes instead; -1: not known
    uint32_t other_end;  ///< the end of the other side, which begins at `end`; 0: there is none
  };
  void open(uint32_t end, int other_side);

  std::vector<Stretch> list_;
  int now_ = 0;
  uint32_t index_ = 0;
};

}  // namespace taper::inspect
