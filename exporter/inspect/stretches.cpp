#include "taper/exporter/inspect/stretches.h"

#include <algorithm>

namespace taper::inspect {

using format::InstructionKind;

void Stretches::open(uint32_t end, int other_side) {
  constexpr int deepest = 100;  // deeper stretches count as part of this one, which limits the time
  if (list_[now_].depth == deepest) return;
  const uint32_t inside = std::min(end, list_[now_].end);  // a file may contain any forward jump
  list_.push_back({now_, list_[now_].depth + 1, inside, other_side, 0});
  now_ = static_cast<int>(list_.size()) - 1;
}

int Stretches::next(const format::Instruction& instruction) {
  while (now_ != 0 && list_[now_].end <= index_) {
    const int left = now_;
    now_ = list_[left].around;
    if (list_[left].other_end > index_) open(list_[left].other_end, left);
  }
  const int here = now_;
  ++index_;
  if (instruction.kind() == InstructionKind::jump_unless && instruction.target() > index_)
    open(instruction.target(), -1);
  if (instruction.kind() == InstructionKind::jump && list_[now_].end == index_)
    list_[now_].other_end = instruction.target();
  return here;
}

bool Stretches::contains(int outer, int inner) const {
  while (inner > outer) inner = list_[inner].around;
  return inner == outer;
}

bool Stretches::go_together(int a, int b) const {
  const auto excludes = [&](int one, int other) {
    for (; one > 0; one = list_[one].around)
      if (list_[one].other_side > 0 && contains(list_[one].other_side, other)) return true;
    return false;
  };
  return !excludes(a, b) && !excludes(b, a);
}

}  // namespace taper::inspect
