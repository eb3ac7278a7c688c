#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace taper::llm {

/// Reads a text byte by byte. Its states are numbers, and are made when they are needed first. So
/// what follows from a state and a byte is computed once. A machine belongs to one thread.
class Machine {
 public:
  using State = uint32_t;
  /// No text that begins so is in the language.
  static constexpr State dead = 0;

  virtual ~Machine() = default;
  virtual State start() = 0;
  /// Whether the text may end here.
  virtual bool may_end(State state) = 0;
  /// Whether the text is at its end: at most blanks may follow.
  virtual bool is_complete(State state) = 0;
  /// Forgets all states but one, whose new number is returned.
  virtual State forget_all_but(State state) = 0;
  /// Whether so much is remembered that it is time to forget.
  virtual bool is_full() const = 0;

  State next(State state, uint8_t byte) {
    if (state >= rows_.size()) rows_.resize(state + size_t{1});
    if (rows_[state] == nullptr) {
      rows_[state] = std::make_unique<Row>();
      rows_[state]->fill(unknown);
    }
    const State known = (*rows_[state])[byte];
    if (known != unknown) return known;
    const State found = state == dead ? dead : compute_next(state, byte);
    return (*rows_[state])[byte] = found;
  }

  /// The state behind a text that is really there, while `next` serves to look ahead. Some
  /// conditions are decided here only, so that `next` may let texts pass that this refuses.
  virtual State take(State state, std::string_view text) {
    for (const char c : text) state = next(state, static_cast<uint8_t>(c));
    return state;
  }

  /// States inside of a string of JSON often share their future until the string ends. Then
  /// `region` gives a state that stands for all of them, otherwise `dead`. From there, `next` may
  /// lead to a state of which `left_region` is true: the string has ended, and `resume` continues
  /// from the state that was inside of it.
  virtual State region(State) { return dead; }
  virtual bool left_region(State) const { return false; }
  virtual State resume(State /*inside*/, State /*left*/) { return dead; }

 protected:
  virtual State compute_next(State state, uint8_t byte) = 0;
  void forget_transitions() { rows_.clear(); }
  size_t rows() const { return rows_.size(); }

 private:
  static constexpr State unknown = ~State{0};
  using Row = std::array<State, 256>;
  std::vector<std::unique_ptr<Row>> rows_;
};

/// What a grammar or a schema describes. It is immutable, and any number of machines may use it.
class Language {
 public:
  virtual ~Language() = default;
  virtual std::unique_ptr<Machine> machine() const = 0;
};

}  // namespace taper::llm
