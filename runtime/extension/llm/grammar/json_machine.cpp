#include "taper/runtime/extension/llm/grammar/json_machine.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "taper/runtime/extension/llm/grammar/json_source.h"

namespace taper::llm::json_text {
namespace {

constexpr uint32_t most_blanks = 40;  // one behind the other
constexpr int most_depth = 500;
constexpr size_t many_places = size_t{1} << 15;
const Frame::Keys no_keys;
constexpr std::string_view literals[] = {"true", "false", "null"};

bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

uint8_t types_that_begin_with(uint8_t byte) {
  switch (byte) {
    case '{':
      return object_type;
    case '[':
      return array_type;
    case '"':
      return string_type;
    case 't':
      return true_type;
    case 'f':
      return false_type;
    case 'n':
      return null_type;
    default:
      return byte == '-' || (byte >= '0' && byte <= '9') ? number_type | integer_type : 0;
  }
}

uint32_t required_keys_missing(const Schema& s, const Frame::Keys& keys) {
  uint32_t missing = 0;
  for (const std::string& name : s.required) missing += keys.count(name) == 0;
  for (const auto& [name, others] : s.dependent_required) {
    if (keys.count(name) == 0) continue;
    for (const std::string& other : others) missing += keys.count(other) == 0;
  }
  return missing;
}

}  // namespace

bool JsonMachine::Place::operator==(const Place& o) const {
  return frame == o.frame && mode == o.mode && detail == o.detail && high == o.high &&
         progress == o.progress && blanks == o.blanks && is_doubtful == o.is_doubtful;
}

size_t JsonMachine::PlaceHash::operator()(const Place& p) const {
  size_t hash = std::hash<const void*>()(p.frame.get());
  for (const uint32_t part : {static_cast<uint32_t>(p.mode) + 32 * uint32_t{p.is_doubtful},
                              p.detail, p.high, p.progress, p.blanks}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

JsonMachine::JsonMachine(std::shared_ptr<const JsonSchema> schema)
    : schema_(std::move(schema)), places_(1), machines_(schema_->texts.size()) {
  progresses_.push_back({});
  progress_numbers_[{}] = 0;
}

Machine::State JsonMachine::start() {
  text_.clear();
  if (start_ != dead) return start_;
  Place p;
  p.frame = expect(nullptr, {{schema_->root, Root::Role::needed, 0}});
  return start_ = p.frame == nullptr ? dead : intern(std::move(p));
}

Machine::State JsonMachine::intern(Place place) {
  const auto [known, is_new] = numbers_.try_emplace(place, static_cast<State>(places_.size()));
  if (is_new) places_.push_back(std::move(place));
  return known->second;
}

uint32_t JsonMachine::intern(const Progress& progress) {
  const auto number = static_cast<uint32_t>(progresses_.size());
  const auto [known, is_new] = progress_numbers_.try_emplace(progress, number);
  if (is_new) progresses_.push_back(progress);
  return known->second;
}

bool JsonMachine::is_full() const {
  return places_.size() > many_places || progresses_.size() > many_places;
}

Machine::State JsonMachine::forget_all_but(State state) {
  Place kept = places_[state];
  const Progress progress = progresses_[kept.progress];
  places_.assign(1, {});
  numbers_.clear();
  progresses_.clear();
  progress_numbers_.clear();
  regions_.clear();
  resumed_.clear();
  endings_.clear();
  forget_transitions();
  start_ = dead;
  if (kept.frame == nullptr || kept.frame->conditions.empty()) {
    for (std::unique_ptr<RuleMachine>& machine : machines_) machine.reset();
  }
  intern(Progress());
  kept.progress = intern(progress);
  return intern(std::move(kept));
}

bool JsonMachine::may_end(State state) {
  Place p = places_[state];
  if (p.mode == Mode::done) return true;
  const bool is_number = p.mode >= Mode::minus && p.mode <= Mode::exponent_digits;
  return is_number && p.frame->outer == nullptr && finish_number(p) && p.mode == Mode::done;
}

Machine::State JsonMachine::compute_next(State state, uint8_t byte) {
  Place p = places_[state];
  p.is_doubtful = false;
  return step(p, byte) ? intern(std::move(p)) : dead;
}

Machine::State JsonMachine::take(State state, std::string_view text) {
  const size_t before = text_.size();
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const State looked = next(state, byte);
    text_ += c;
    if (looked != dead && places_[looked].is_doubtful) {
      Place p = places_[state];
      p.is_doubtful = false;
      real_ = &text_;
      const bool is_right = step(p, byte);
      real_ = nullptr;
      p.is_doubtful = false;
      state = is_right ? intern(std::move(p)) : dead;
    } else {
      state = looked;
    }
    if (state == dead) break;
  }
  if (state == dead) text_.resize(before);
  return state;
}

// ---- schemas

std::shared_ptr<const Applied> JsonMachine::apply(std::vector<Root> roots) const {
  auto applied = std::make_shared<Applied>();
  for (const Root& root : roots) {
    applied->firsts.push_back(static_cast<uint32_t>(applied->nodes.size()));
    for (const Plan::Node& node : schema_->plans[root.schema].nodes) {
      applied->nodes.push_back(node.schema);
    }
  }
  applied->roots = std::move(roots);
  return applied;
}

// The verdict of each root.
std::vector<Verdict> JsonMachine::results(const Frame& frame, const std::vector<Verdict>& own,
                                          const Frame::Keys& keys, bool is_closed) const {
  std::vector<Verdict> found;
  for (size_t r = 0; r < frame.applied->roots.size(); ++r) {
    const Plan& plan = schema_->plans[frame.applied->roots[r].schema];
    found.push_back(verdicts(plan, own.data() + frame.applied->firsts[r], keys, is_closed)[0]);
  }
  return found;
}

// Whether the schema of the whole text can hold, if these are the verdicts of the nodes of a frame.
bool JsonMachine::survives(const Frame* frame, std::vector<Verdict> own) const {
  for (;;) {
    const std::vector<Verdict> found =
        results(*frame, own, frame->keys != nullptr ? *frame->keys : no_keys, false);
    const Frame* outer = frame->outer.get();
    if (outer == nullptr) {
      return std::find(found.begin(), found.end(), Verdict::failed) == found.end();
    }
    std::vector<Verdict> outer_own = outer->own;
    for (size_t r = 0; r < found.size(); ++r) {
      const Root& root = frame->applied->roots[r];
      if (found[r] == Verdict::failed && root.role == Root::Role::needed) {
        outer_own[root.outer] = Verdict::failed;
      }
    }
    if (outer_own == outer->own) return true;
    own = std::move(outer_own);
    frame = outer;
  }
}

// The frame of a value that must follow; null if none can.
Frame::Pointer JsonMachine::expect(const Frame::Pointer& outer, std::vector<Root> roots) const {
  auto frame = std::make_shared<Frame>();
  frame->outer = outer;
  frame->depth = outer == nullptr ? 0 : outer->depth + 1;
  if (frame->depth > most_depth) return nullptr;
  frame->applied = apply(std::move(roots));
  frame->own.assign(frame->applied->nodes.size(), Verdict::unknown);
  bool may_fail = false;
  for (uint32_t i = 0; i < frame->size(); ++i) {
    if (frame->schema(i).types == 0) frame->own[i] = Verdict::failed;
    may_fail = may_fail || frame->failed(i);
  }
  if (may_fail && !survives(frame.get(), frame->own)) return nullptr;
  return frame;
}

// ---- structure

bool JsonMachine::blank(Place& p, uint8_t byte) {
  return is_blank(byte) && ++p.blanks <= most_blanks;
}

bool JsonMachine::step(Place& p, uint8_t byte) {
  switch (p.mode) {
    case Mode::value:
      return is_blank(byte) ? blank(p, byte) : begin_value(p, byte);
    case Mode::first_item:
    case Mode::behind_item:
      return step_in_array(p, byte);
    case Mode::first_key:
    case Mode::key:
    case Mode::behind_member:
      return step_in_object(p, byte);
    case Mode::colon:
      if (byte != ':') return blank(p, byte);
      p.mode = Mode::value;
      p.blanks = 0;
      return true;
    case Mode::literal:
      return step_literal(p, byte);
    case Mode::done:
      return blank(p, byte);
    case Mode::left:
      return false;
    default:
      return p.mode <= Mode::exponent_digits ? step_number(p, byte) : step_string(p, byte);
  }
}

bool JsonMachine::step_in_array(Place& p, uint8_t byte) {
  if (is_blank(byte)) return blank(p, byte);
  p.blanks = 0;
  if (byte == ']') return close(p);
  if (p.mode == Mode::behind_item) return byte == ',' && begin_item(p);
  return begin_item(p) && begin_value(p, byte);
}

bool JsonMachine::step_in_object(Place& p, uint8_t byte) {
  if (is_blank(byte)) return blank(p, byte);
  p.blanks = 0;
  if (byte == '}' && p.mode != Mode::key) return close(p);
  if (p.mode != Mode::behind_member) return byte == '"' && begin_key(p);
  Place ahead = p;
  p.mode = Mode::key;
  return byte == ',' && begin_key(ahead);
}

// The place is an array. An item follows.
bool JsonMachine::begin_item(Place& p) {
  auto array = std::make_shared<Frame>(*p.frame);
  bool has_failed = false;
  std::vector<Root> roots;
  for (uint32_t i = 0; i < array->size(); ++i) {
    if (array->failed(i)) continue;
    const Schema& s = array->schema(i);
    if (array->count + 1 > s.max_items) {
      array->own[i] = Verdict::failed;
      has_failed = true;
      continue;
    }
    const bool is_first = array->count < s.prefix_items.size();
    const SchemaId item = is_first ? s.prefix_items[array->count] : s.items;
    if (item != any) roots.push_back({item, Root::Role::needed, i});
    if (s.contains) roots.push_back({*s.contains, Root::Role::contained, i});
  }
  if (has_failed && !survives(array.get(), array->own)) return false;
  ++array->count;
  p.frame = expect(array, std::move(roots));
  p.mode = Mode::value;
  return p.frame != nullptr;
}

bool JsonMachine::begin_value(Place& p, uint8_t byte) {
  const uint8_t types = types_that_begin_with(byte);
  if (types == 0) return false;
  const Frame::Pointer expected = p.frame;
  std::vector<Verdict> own = expected->own;
  for (uint32_t i = 0; i < own.size(); ++i) {
    if ((expected->schema(i).types & types) == 0) own[i] = Verdict::failed;
  }
  if (own != expected->own && !survives(expected.get(), own)) return false;
  p.blanks = p.progress = p.detail = 0;
  if (byte == '"') return begin_string(p, *expected, std::move(own));
  auto frame = std::make_shared<Frame>(*expected);
  frame->own = std::move(own);
  frame->kind = byte == '['   ? Frame::Kind::array
                : byte == '{' ? Frame::Kind::object
                              : Frame::Kind::scalar;
  p.frame = frame;
  if (byte == '[' || byte == '{') {
    frame->doubts.assign(frame->own.size(), false);
    frame->contained.assign(frame->own.size(), 0);
    frame->perhaps_contained.assign(frame->own.size(), 0);
    frame->keys = std::make_shared<const Frame::Keys>();
    p.mode = byte == '[' ? Mode::first_item : Mode::first_key;
    return can_go_on(p);
  }
  if (byte == 't' || byte == 'f' || byte == 'n') {
    p.mode = Mode::literal;
    p.detail = (byte == 't' ? 0u : byte == 'f' ? 1u : 2u) << 8 | 1;
    return can_end_literal(p);
  }
  for (uint32_t i = 0; i < frame->size(); ++i) {
    if (!frame->failed(i)) frame->needs_digits |= frame->schema(i).is_bounded();
  }
  return add_digit(p, byte, byte == '-' ? Mode::minus : byte == '0' ? Mode::zero : Mode::integer);
}

bool JsonMachine::can_end_literal(Place p) {
  const std::string* const real = std::exchange(real_, nullptr);
  const std::string_view word = literals[p.detail >> 8];
  bool can = true;
  for (size_t i = 1; i < word.size() && can; ++i)
    can = step_literal(p, static_cast<uint8_t>(word[i]));
  real_ = real;
  return can;
}

bool JsonMachine::step_literal(Place& p, uint8_t byte) {
  const std::string_view word = literals[p.detail >> 8];
  const size_t at = p.detail & 0xFF;
  if (byte != static_cast<uint8_t>(word[at])) return false;
  ++p.detail;
  if (at + 1 < word.size()) return true;
  std::vector<Verdict> own = p.frame->own;
  for (Verdict& v : own) v = v == Verdict::failed ? v : Verdict::passed;
  return finish(p, own, no_keys);
}

// The verdict of a node at the end of its array or object.
Verdict JsonMachine::closed_verdict(const Frame& frame, uint32_t node) const {
  const Schema& s = frame.schema(node);
  if (frame.failed(node)) return Verdict::failed;
  Verdict verdict = frame.doubts[node] ? Verdict::unknown : Verdict::passed;
  if (frame.kind == Frame::Kind::object) {
    const bool is_right =
        frame.count >= s.min_properties && required_keys_missing(s, *frame.keys) == 0;
    return is_right ? verdict : Verdict::failed;
  }
  if (frame.count < s.min_items) return Verdict::failed;
  if (s.contains) {
    const uint32_t sure = frame.contained[node];
    const uint32_t most = sure + frame.perhaps_contained[node];
    if (most < s.min_contains || sure > s.max_contains) return Verdict::failed;
    if (sure < s.min_contains || most > s.max_contains) verdict = Verdict::unknown;
  }
  return verdict;
}

bool JsonMachine::close(Place& p) {
  const Frame::Pointer frame = p.frame;
  std::vector<Verdict> own;
  for (uint32_t i = 0; i < frame->size(); ++i) own.push_back(closed_verdict(*frame, i));
  return finish(p, own, *frame->keys);
}

// A value has ended, and `own` are the verdicts of its nodes. The place goes on outside of it.
bool JsonMachine::finish(Place& p, const std::vector<Verdict>& own, const Frame::Keys& keys) {
  const Frame::Pointer frame = p.frame;
  const bool is_number = p.mode >= Mode::minus && p.mode <= Mode::exponent_digits;
  const std::vector<Verdict> found = results(*frame, own, keys, true);
  p.progress = p.detail = p.high = p.blanks = 0;
  if (frame->outer == nullptr) {
    p.frame = nullptr;
    p.mode = Mode::done;
    return found[0] != Verdict::failed;
  }
  auto outer = std::make_shared<Frame>(*frame->outer);
  for (size_t r = 0; r < found.size(); ++r) {
    const auto [schema, role, node] = frame->applied->roots[r];
    const Verdict verdict = found[r];
    if (role == Root::Role::contained) {
      outer->contained[node] += verdict == Verdict::passed;
      outer->perhaps_contained[node] += verdict == Verdict::unknown;
      if (outer->contained[node] > outer->schema(node).max_contains) {
        outer->own[node] = Verdict::failed;
      }
    } else if (verdict == Verdict::failed) {
      outer->own[node] = Verdict::failed;
    } else if (verdict == Verdict::unknown) {
      outer->doubts[node] = true;
    }
  }
  const bool is_array = outer->kind == Frame::Kind::array;
  p.mode = is_array ? Mode::behind_item : Mode::behind_member;
  if (is_array) judge_items(*outer, p, is_number);
  p.frame = outer;
  return (outer->own == frame->outer->own || survives(outer.get(), outer->own)) && can_go_on(p);
}

// Whether the array or object at the place can end, or have one more element.
bool JsonMachine::can_go_on(const Place& p) {
  if (p.frame->applied->nodes.empty()) return true;
  const std::string* const real = std::exchange(real_, nullptr);
  Place closed = p, longer = p;
  const bool is_array = p.frame->kind == Frame::Kind::array;
  const bool can = close(closed) || (is_array ? begin_item(longer) : begin_key(longer));
  real_ = real;
  return can;
}

// Looks whether the last item was there before, if that matters. The byte that ends a number is no
// part of it.
void JsonMachine::judge_items(Frame& outer, Place& p, bool is_number) {
  bool matters = false;
  for (uint32_t i = 0; i < outer.size(); ++i) {
    matters = matters || (!outer.failed(i) && outer.schema(i).unique_items);
  }
  if (!matters) return;
  p.is_doubtful = true;
  if (real_ == nullptr) {
    for (uint32_t i = 0; i < outer.size(); ++i) {
      if (outer.schema(i).unique_items && outer.count > 1) outer.doubts[i] = true;
    }
    return;
  }
  const auto item = std::make_shared<const nlohmann::json>(
      last_item(real_->substr(0, real_->size() - size_t{is_number})));
  const bool was_there = std::any_of(outer.items.begin(), outer.items.end(),
                                     [&](const auto& other) { return *other == *item; });
  outer.items.push_back(item);
  for (uint32_t i = 0; was_there && i < outer.size(); ++i) {
    if (outer.schema(i).unique_items) outer.own[i] = Verdict::failed;
  }
}

}  // namespace taper::llm::json_text
