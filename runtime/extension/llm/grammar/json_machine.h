#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "taper/runtime/extension/llm/grammar/json_frame.h"
#include "taper/runtime/extension/llm/grammar/machine.h"
#include "taper/runtime/extension/llm/grammar/rule_machine.h"

namespace taper::llm::json_text {

/// Reads a text of JSON and judges it by a schema as it grows. A byte is refused as soon as no
/// schema that must hold can hold. What cannot be known before a value ends, such as `not` and
/// `oneOf`, is judged there.
///
/// Two conditions need the real text, and only `take` judges them: that items are unique, and that
/// no key that the schema does not name is there twice.
class JsonMachine : public Machine {
 public:
  explicit JsonMachine(std::shared_ptr<const JsonSchema> schema);

  State start() override;
  bool may_end(State state) override;
  bool is_complete(State state) override { return places_[state].mode == Mode::done; }
  State forget_all_but(State state) override;
  bool is_full() const override;
  State take(State state, std::string_view text) override;
  State region(State state) override;
  bool left_region(State state) const override;
  State resume(State inside, State left) override;

 private:
  enum class Mode : uint8_t {
    value,        // blanks, then a value
    first_item,   // or the end of the array
    behind_item,  // a comma, or the end of the array
    first_key,    // or the end of the object
    key,          // behind a comma
    colon,
    behind_member,
    literal,  // the rest of true, false or null
    minus,    // numbers: behind this part
    zero,
    integer,
    point,
    fraction,
    exponent,
    exponent_sign,
    exponent_digits,
    text,          // strings: between characters
    continuation,  // inside of a character
    escape,        // behind a backslash
    hex,           // behind \u
    low_escape,    // behind the first half of a pair: a backslash, and then a u
    low_u,
    left,  // the end of a string, in a region
    done,
  };
  /// What a state number stands for. `progress` is a number of `progresses_`.
  struct Place {
    Frame::Pointer frame;
    Mode mode = Mode::value;
    uint32_t detail = 0;    ///< of literals, characters and escapes
    uint32_t high = 0;      ///< the first half of a pair
    uint32_t progress = 0;  ///< of the conditions of a string, or the digits of a number
    uint32_t blanks = 0;
    bool is_doubtful = false;  ///< the real text may decide otherwise
    bool operator==(const Place& o) const;
  };
  struct PlaceHash {
    size_t operator()(const Place& p) const;
  };
  using Progress = std::vector<uint32_t>;

  State compute_next(State state, uint8_t byte) override;
  State intern(Place place);
  uint32_t intern(const Progress& progress);

  // All return false if the text is refused. json_machine.cpp: the structure
  bool step(Place& p, uint8_t byte);
  bool blank(Place& p, uint8_t byte);
  bool step_in_array(Place& p, uint8_t byte);
  bool step_in_object(Place& p, uint8_t byte);
  bool begin_value(Place& p, uint8_t byte);
  bool begin_item(Place& p);
  bool close(Place& p);
  bool finish(Place& p, const std::vector<Verdict>& own, const Frame::Keys& keys);
  bool can_go_on(const Place& p);
  void judge_items(Frame& outer, Place& p, bool is_number);
  bool step_literal(Place& p, uint8_t byte);
  bool can_end_literal(Place p);
  Frame::Pointer expect(const Frame::Pointer& outer, std::vector<Root> roots) const;
  std::shared_ptr<const Applied> apply(std::vector<Root> roots) const;
  bool survives(const Frame* frame, std::vector<Verdict> own) const;
  std::vector<Verdict> results(const Frame& frame, const std::vector<Verdict>& own,
                               const Frame::Keys& keys, bool is_closed) const;
  Verdict closed_verdict(const Frame& frame, uint32_t node) const;

  // json_number_steps.cpp
  bool step_number(Place& p, uint8_t byte);
  bool add_digit(Place& p, uint8_t byte, Mode mode);
  bool can_end_exponent(const Place& p, const std::string& digits);
  bool finish_number(Place& p);
  bool finish_number(Place& p, const std::string& digits);

  // json_string_steps.cpp
  bool begin_string(Place& p, const Frame& expected, std::vector<Verdict> own);
  bool begin_key(Place& p);
  bool step_string(Place& p, uint8_t byte);
  bool step_hex(Place& p, uint8_t byte);
  bool step_escape(Place& p, uint8_t byte);
  bool can_end_hex(const Place& p, uint32_t low, uint32_t end);
  bool can_feed(const Place& p, char32_t low, char32_t high);
  bool can_feed_bytes(const Frame::Pointer& frame, const Progress& progress, char32_t low,
                      char32_t high, int tail, bool is_first);
  bool feed(Place& p, std::string_view bytes, bool is_new_character);
  bool feed_character(Place& p, char32_t character);
  void advance(const Frame& frame, Progress& progress, char c, bool is_new_character);
  bool can_end(const Frame::Pointer& frame, uint32_t progress);
  bool ends_here(const Frame::Pointer& frame, uint32_t progress);
  bool is_alive(const Frame& frame, const Progress& progress) const;
  bool key_is_possible(const Frame& key, const Progress& progress) const;
  bool close_string(Place& p);
  bool close_key(Place& p);
  void share_region(Frame& frame);
  void add_conditions(Frame& frame, uint32_t node) const;
  RuleMachine& machine_of(uint32_t text);
  uint32_t initial_progress(const Frame& frame);
  bool matches(const Condition& condition, uint32_t state);

  std::shared_ptr<const JsonSchema> schema_;
  std::vector<Place> places_;
  std::unordered_map<Place, State, PlaceHash> numbers_;
  std::vector<Progress> progresses_;
  std::map<Progress, uint32_t> progress_numbers_;
  std::vector<std::unique_ptr<RuleMachine>> machines_;
  std::map<std::vector<uint32_t>, Frame::Pointer> regions_;
  std::unordered_map<uint64_t, State> resumed_;
  /// Whether strings can end, for each progress.
  std::unordered_map<Frame::Pointer, std::unordered_map<uint32_t, bool>> endings_;
  State start_ = dead;
  const std::string* real_ = nullptr;  ///< the text so far, while `take` looks at it
  std::string text_;
};

}  // namespace taper::llm::json_text
