#include <algorithm>
#include <set>
#include <utility>

#include "taper/runtime/extension/llm/grammar/json_machine.h"
#include "taper/runtime/extension/llm/grammar/json_source.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::json_text {
namespace {

// Progress of a string: its length, and a state for each condition. Before them, keys have the
// names that may still come: from, to, and how many bytes of them were read.
constexpr size_t length_at = 0, states_at = 1, key_part = 3;
constexpr uint32_t no_node = ~uint32_t{0};

// Characters, and the halves of pairs that stand for characters above 0xFFFF.
constexpr char32_t last_character = 0x10FFFF;
constexpr uint32_t first_high = 0xD800, first_low = 0xDC00, last_low = 0xDFFF;

char32_t paired(uint32_t high, uint32_t low) {
  return 0x10000 + ((high - first_high) << 10) + (low - first_low);
}

size_t offset_of(const Frame& frame) { return frame.kind == Frame::Kind::key ? key_part : 0; }

int hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The bytes that may follow the first one of a character: how many, and the bounds of the next.
uint32_t continuation_of(uint8_t first) {
  const auto packed = [](uint32_t count, uint32_t low, uint32_t high) {
    return count << 16 | low << 8 | high;
  };
  if (first >= 0xC2 && first <= 0xDF) return packed(1, 0x80, 0xBF);
  if (first == 0xE0) return packed(2, 0xA0, 0xBF);
  if (first == 0xED) return packed(2, 0x80, 0x9F);
  if (first >= 0xE1 && first <= 0xEF) return packed(2, 0x80, 0xBF);
  if (first == 0xF0) return packed(3, 0x90, 0xBF);
  if (first == 0xF4) return packed(3, 0x80, 0x8F);
  if (first >= 0xF1 && first <= 0xF3) return packed(3, 0x80, 0xBF);
  return 0;
}

// Whether the properties that are missing still fit.
bool has_room_for_required(const Schema& s, const Frame& object) {
  if (s.max_properties == unbounded) return true;
  const auto missing = std::count_if(s.required.begin(), s.required.end(), [&](const auto& name) {
    return object.keys->count(name) == 0;
  });
  return object.count + static_cast<uint64_t>(missing) <= s.max_properties;
}

}  // namespace

RuleMachine& JsonMachine::machine_of(uint32_t text) {
  if (machines_[text] == nullptr) {
    machines_[text] = std::make_unique<RuleMachine>(schema_->texts[text]);
  }
  return *machines_[text];
}

bool JsonMachine::matches(const Condition& condition, uint32_t state) {
  return machine_of(condition.text).may_end(state);
}

uint32_t JsonMachine::initial_progress(const Frame& frame) {
  Progress progress;
  if (frame.kind == Frame::Kind::key) {
    progress = {0, static_cast<uint32_t>(schema_->names.size()), 0};
  }
  progress.push_back(0);
  for (const Condition& c : frame.conditions) progress.push_back(machine_of(c.text).start());
  return intern(progress);
}

bool JsonMachine::begin_string(Place& p, const Frame& expected, std::vector<Verdict> own) {
  auto frame = std::make_shared<Frame>(expected);
  frame->kind = Frame::Kind::string;
  frame->own = std::move(own);
  for (uint32_t i = 0; i < frame->size(); ++i) {
    if (!frame->failed(i)) add_conditions(*frame, i);
  }
  share_region(*frame);
  const size_t conditions = frame->conditions.size() + (frame->counted > 0);
  frame->is_tight = conditions > 1 || (conditions > 0 && frame->region == nullptr);
  p.frame = frame;
  p.progress = initial_progress(*frame);
  p.mode = Mode::text;
  return can_end(p.frame, p.progress);
}

// The place is an object. A key follows.
bool JsonMachine::begin_key(Place& p) {
  const auto object = std::make_shared<Frame>(*p.frame);
  auto frame = std::make_shared<Frame>();
  frame->kind = Frame::Kind::key;
  frame->outer = object;
  frame->depth = object->depth + 1;
  std::vector<Root> roots;
  for (uint32_t i = 0; i < object->size(); ++i) {
    if (object->failed(i)) continue;
    const Schema& s = object->schema(i);
    if (object->count + 1 > s.max_properties) {
      object->own[i] = Verdict::failed;
      continue;
    }
    if (s.property_names != any) roots.push_back({s.property_names, Root::Role::needed, i});
    for (const auto& [text, schema] : s.pattern_properties) {
      frame->conditions.push_back({no_node, text});
    }
  }
  if (object->own != p.frame->own && !survives(object.get(), object->own)) return false;
  frame->applied = apply(std::move(roots));
  for (uint32_t i = 0; i < frame->applied->nodes.size(); ++i) {
    const Schema& s = frame->schema(i);
    const bool is_wrong = (s.types & string_type) == 0;
    frame->own.push_back(is_wrong ? Verdict::failed : Verdict::unknown);
    add_conditions(*frame, i);
  }
  share_region(*frame);
  p.frame = frame;
  p.progress = initial_progress(*frame);
  p.mode = Mode::text;
  return is_alive(*frame, progresses_[p.progress]);
}

void JsonMachine::add_conditions(Frame& frame, uint32_t node) const {
  const Schema& s = frame.schema(node);
  for (const uint32_t text : s.texts) frame.conditions.push_back({node, text});
  frame.counted = std::max(frame.counted, s.min_length);
  if (s.max_length != unbounded) frame.counted = std::max(frame.counted, s.max_length + 1);
}

// Strings with the same conditions share a region if a condition that fails refuses the text. A
// key has one as soon as it is none of the names of the schema.
void JsonMachine::share_region(Frame& frame) {
  auto region = std::make_shared<Frame>();
  region->kind = Frame::Kind::region;
  std::vector<uint32_t> id;
  if (frame.kind == Frame::Kind::key) {
    if (!frame.conditions.empty() || frame.counted > 0) return;
  } else {
    const auto is_vital = [&](uint32_t node) {
      std::vector<Verdict> own = frame.own;
      own[node] = Verdict::failed;
      return !survives(&frame, own);
    };
    for (uint32_t i = 0; i < frame.size(); ++i) {
      const uint32_t most = frame.schema(i).max_length;
      if (frame.failed(i) || most == unbounded) continue;
      if (!is_vital(i)) return;
      region->max_length = std::min(region->max_length, most);
    }
    for (const Condition& c : frame.conditions) {
      if (!is_vital(c.node)) return;
      id.push_back(c.text);
    }
    region->conditions = frame.conditions;
    region->counted = frame.counted;
    region->is_tight = frame.conditions.size() + (frame.counted > 0) > 1;
  }
  id.push_back(region->max_length);
  id.push_back(region->counted);
  frame.region = regions_.try_emplace(id, region).first->second;
}

// ---- characters

bool JsonMachine::step_string(Place& p, uint8_t byte) {
  switch (p.mode) {
    case Mode::text:
      if (byte == '"') return close_string(p);
      if (byte < 0x20) return false;
      if (byte == '\\') {
        p.mode = Mode::escape;
        return can_feed(p, 0, last_character);
      }
      if (byte >= 0x80) {
        p.detail = continuation_of(byte);
        if (p.detail == 0) return false;
        p.mode = Mode::continuation;
      }
      break;
    case Mode::continuation: {
      const uint32_t count = p.detail >> 16, low = p.detail >> 8 & 0xFF, high = p.detail & 0xFF;
      if (byte < low || byte > high) return false;
      p.detail = count > 1 ? (count - 1) << 16 | 0x80 << 8 | 0xBF : 0;
      if (count == 1) p.mode = Mode::text;
      const char c = static_cast<char>(byte);
      return feed(p, {&c, 1}, false);
    }
    case Mode::escape:
      return step_escape(p, byte);
    case Mode::hex:
      return step_hex(p, byte);
    case Mode::low_escape:
      p.mode = Mode::low_u;
      return byte == '\\';
    default:  // low_u
      p.mode = Mode::hex;
      p.detail = 0;
      return byte == 'u';
  }
  const char c = static_cast<char>(byte);
  return feed(p, {&c, 1}, true);
}

bool JsonMachine::step_escape(Place& p, uint8_t byte) {
  static constexpr std::string_view escapes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  if (byte == 'u') {
    p.mode = Mode::hex;
    p.detail = 0;
    return true;  // every character has such an escape
  }
  const size_t which = escapes.find(static_cast<char>(byte));
  if (which == std::string_view::npos) return false;
  p.mode = Mode::text;
  return feed(p, meanings.substr(which, 1), true);
}

// `detail` has the digits so far, and above them their number.
bool JsonMachine::step_hex(Place& p, uint8_t byte) {
  const int digit = hex_digit(byte);
  if (digit < 0) return false;
  const uint32_t count = (p.detail >> 16) + 1;
  const uint32_t value = (p.detail & 0xFFFF) << 4 | static_cast<uint32_t>(digit);
  p.detail = count << 16 | value;
  if (count < 4) return can_end_hex(p, value << 4 * (4 - count), (value + 1) << 4 * (4 - count));
  p.detail = 0;
  p.mode = Mode::text;
  const bool is_low = value >= first_low && value <= last_low;
  if (p.high != 0) {
    const uint32_t high = std::exchange(p.high, 0);
    return is_low && feed_character(p, paired(high, value));
  }
  if (value >= first_high && value < first_low) {
    p.high = value;
    p.mode = Mode::low_escape;
    return can_feed(p, paired(value, first_low), paired(value, last_low));
  }
  return !is_low && feed_character(p, value);
}

// Whether four digits from `low` to below `end` can be the code of a character that may come, or of
// a half of one.
bool JsonMachine::can_end_hex(const Place& p, uint32_t low, uint32_t end) {
  const uint32_t high = end - 1;
  const auto meets = [&](uint32_t from, uint32_t to) { return low <= to && high >= from; };
  if (p.high != 0)
    return meets(first_low, last_low) && can_feed(p, paired(p.high, std::max(low, first_low)),
                                                  paired(p.high, std::min(high, last_low)));
  const uint32_t last_high = first_low - 1;
  return can_feed(p, low, high) ||
         (meets(first_high, last_high) && can_feed(p, paired(std::max(low, first_high), first_low),
                                                   paired(std::min(high, last_high), last_low)));
}

// Whether a character from `low` to `high` may come. Halves of pairs are none.
bool JsonMachine::can_feed(const Place& p, char32_t low, char32_t high) {
  constexpr char32_t last_of_length[] = {0x7F, 0x7FF, 0xFFFF, last_character};
  char32_t first = 0;
  for (int tail = 0; tail < 4; ++tail) {  // bytes behind the first one
    const char32_t from = std::max(low, first), to = std::min(high, last_of_length[tail]);
    first = last_of_length[tail] + 1;
    if (from > to) continue;
    const Progress& progress = progresses_[p.progress];
    if (tail != 2) {
      if (can_feed_bytes(p.frame, progress, from, to, tail, true)) return true;
      continue;
    }
    const char32_t before = std::min<char32_t>(to, first_high - 1);
    const char32_t behind = std::max<char32_t>(from, last_low + 1);
    if (from <= before && can_feed_bytes(p.frame, progress, from, before, tail, true)) return true;
    if (behind <= to && can_feed_bytes(p.frame, progress, behind, to, tail, true)) return true;
  }
  return false;
}

// The same for characters whose bytes lack one and `tail` more. `low` and `high` have the bits of
// these.
bool JsonMachine::can_feed_bytes(const Frame::Pointer& frame, const Progress& progress,
                                 char32_t low, char32_t high, int tail, bool is_first) {
  static constexpr uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  const int shift = 6 * tail;
  const char32_t rest = (char32_t{1} << shift) - 1;
  for (char32_t bits = low >> shift; bits <= high >> shift; ++bits) {
    const char byte = static_cast<char>((is_first ? leads[tail] : 0x80u) | bits);
    Progress next = progress;
    advance(*frame, next, byte, is_first);
    if (!is_alive(*frame, next)) continue;
    if (tail == 0 && (!frame->is_tight || can_end(frame, intern(next)))) return true;
    if (tail == 0) continue;
    const char32_t from = bits == low >> shift ? low & rest : 0;
    const char32_t to = bits == high >> shift ? high & rest : rest;
    if (can_feed_bytes(frame, next, from, to, tail - 1, false)) return true;
  }
  return false;
}

bool JsonMachine::feed_character(Place& p, char32_t character) {
  std::string bytes;
  append_character(bytes, character);
  return feed(p, bytes, true);
}

// Bytes of the string's meaning.
bool JsonMachine::feed(Place& p, std::string_view bytes, bool is_new_character) {
  const Frame& frame = *p.frame;
  Progress progress = progresses_[p.progress];
  for (const char c : bytes) advance(frame, progress, c, std::exchange(is_new_character, false));
  if (progress == progresses_[p.progress]) return true;
  if (!is_alive(frame, progress)) return false;
  p.progress = intern(progress);
  return !p.frame->is_tight || can_end(p.frame, p.progress);
}

void JsonMachine::advance(const Frame& frame, Progress& progress, char c, bool is_new_character) {
  const size_t offset = offset_of(frame);
  uint32_t& length = progress[offset + length_at];
  if (is_new_character && length < frame.counted) ++length;
  for (size_t i = 0; i < frame.conditions.size(); ++i) {
    uint32_t& state = progress[offset + states_at + i];
    state = machine_of(frame.conditions[i].text).next(state, static_cast<uint8_t>(c));
  }
  if (frame.kind != Frame::Kind::key || progress[0] == progress[1]) return;
  const size_t at = progress[2]++;
  const std::vector<std::string>& names = schema_->names;
  const auto differs = [&](uint32_t name) {
    return names[name].size() <= at || names[name][at] != c;
  };
  while (progress[0] < progress[1] && differs(progress[0])) ++progress[0];
  while (progress[0] < progress[1] && differs(progress[1] - 1)) --progress[1];
  if (progress[0] == progress[1]) progress[0] = progress[1] = progress[2] = 0;
}

// Whether the string can still come to an end. What is found out is remembered.
bool JsonMachine::can_end(const Frame::Pointer& frame, uint32_t progress) {
  constexpr size_t most_seen = 4096;  // beyond, nobody knows
  std::unordered_map<uint32_t, bool>& known = endings_[frame];
  if (const auto found = known.find(progress); found != known.end()) return found->second;
  struct Step {
    uint32_t progress;
    uint32_t byte;  ///< the next one to try
  };
  std::vector<Step> path = {{progress, 0}};
  std::set<uint32_t> seen = {progress};
  bool is_found = ends_here(frame, progress);
  while (!is_found && !path.empty()) {
    Step& step = path.back();
    if (step.byte > 0xFF) {
      path.pop_back();
      continue;
    }
    const char byte = static_cast<char>(step.byte++);
    Progress next = progresses_[step.progress];
    advance(*frame, next, byte, (byte & 0xC0) != 0x80);
    if (!is_alive(*frame, next)) continue;
    const uint32_t number = intern(next);
    const auto found = known.find(number);
    if (!seen.insert(number).second || (found != known.end() && !found->second)) continue;
    is_found = found != known.end() || ends_here(frame, number);
    if (!is_found && seen.size() > most_seen) return true;
    path.push_back({number, 0});
  }
  for (const uint32_t number : seen)
    if (!is_found) known[number] = false;
  for (const Step& step : path) known[step.progress] = true;
  return is_found;
}

bool JsonMachine::ends_here(const Frame::Pointer& frame, uint32_t progress) {
  if (frame->kind == Frame::Kind::region) {
    for (size_t i = 0; i < frame->conditions.size(); ++i)
      if (!matches(frame->conditions[i], progresses_[progress][states_at + i])) return false;
    return true;
  }
  Place p;
  p.frame = frame, p.progress = progress, p.mode = Mode::text;
  const std::string* const real = std::exchange(real_, nullptr);
  const bool ends = close_string(p);
  real_ = real;
  return ends;
}

bool JsonMachine::is_alive(const Frame& frame, const Progress& progress) const {
  const size_t offset = offset_of(frame);
  const bool is_region = frame.kind == Frame::Kind::region;
  const uint32_t length = progress[offset + length_at];
  if (is_region && length > frame.max_length) return false;
  std::vector<Verdict> own = frame.own;
  for (size_t i = 0; i < frame.conditions.size(); ++i) {
    if (progress[offset + states_at + i] != dead) continue;
    if (is_region) return false;
    if (frame.conditions[i].node != no_node) own[frame.conditions[i].node] = Verdict::failed;
  }
  for (uint32_t i = 0; i < own.size(); ++i) {
    if (length > frame.schema(i).max_length) own[i] = Verdict::failed;
  }
  if (is_region) return true;
  if (frame.kind == Frame::Kind::key && !key_is_possible(frame, progress)) return false;
  return own == frame.own || survives(&frame, own);
}

// Objects that allow no other keys need one of their properties, or of their patterns.
bool JsonMachine::key_is_possible(const Frame& key, const Progress& progress) const {
  const Frame& object = *key.outer;
  std::vector<Verdict> own = object.own;
  size_t condition = key_part + states_at;
  for (uint32_t i = 0; i < object.size(); ++i) {
    if (object.failed(i)) continue;
    const Schema& s = object.schema(i);
    bool is_possible = !s.is_closed();
    for (size_t k = 0; k < s.pattern_properties.size(); ++k) {
      is_possible |= progress[condition++] != dead;
    }
    for (uint32_t n = progress[0]; n < progress[1] && !is_possible; ++n) {
      const std::string& name = schema_->names[n];
      const auto property = s.properties.find(name);
      is_possible = property != s.properties.end() && property->second != never &&
                    object.keys->count(name) == 0;
    }
    if (!is_possible) own[i] = Verdict::failed;
  }
  return own == object.own || survives(&object, own);
}

// ---- ends

bool JsonMachine::close_string(Place& p) {
  const Frame& frame = *p.frame;
  if (frame.kind == Frame::Kind::region) {
    p.mode = Mode::left;
    return true;
  }
  if (frame.kind == Frame::Kind::key) return close_key(p);
  const Progress& progress = progresses_[p.progress];
  std::vector<Verdict> own = frame.own;
  for (uint32_t i = 0; i < own.size(); ++i) {
    const uint32_t length = progress[length_at];
    const bool is_right = !frame.failed(i) && length >= frame.schema(i).min_length &&
                          length <= frame.schema(i).max_length;
    own[i] = is_right ? Verdict::passed : Verdict::failed;
  }
  for (size_t i = 0; i < frame.conditions.size(); ++i) {
    const Condition& c = frame.conditions[i];
    if (!matches(c, progress[states_at + i])) own[c.node] = Verdict::failed;
  }
  return finish(p, own, {});
}

bool JsonMachine::close_key(Place& p) {
  const Frame::Pointer key = p.frame;
  const Progress progress = progresses_[p.progress];
  auto object = std::make_shared<Frame>(*key->outer);

  std::vector<Verdict> own = key->own;
  const uint32_t length = progress[key_part + length_at];
  for (uint32_t i = 0; i < own.size(); ++i) {
    const Schema& s = key->schema(i);
    const bool is_right = !key->failed(i) && length >= s.min_length && length <= s.max_length;
    own[i] = is_right ? Verdict::passed : Verdict::failed;
  }
  std::vector<bool> found;
  for (size_t i = 0; i < key->conditions.size(); ++i) {
    const Condition& c = key->conditions[i];
    found.push_back(matches(c, progress[key_part + states_at + i]));
    if (!found.back() && c.node != no_node) own[c.node] = Verdict::failed;
  }
  const std::vector<Verdict> of_names = results(*key, own, {}, true);
  for (size_t r = 0; r < of_names.size(); ++r) {
    if (of_names[r] == Verdict::failed) object->own[key->applied->roots[r].outer] = Verdict::failed;
  }

  const bool is_known =
      progress[0] < progress[1] && schema_->names[progress[0]].size() == progress[2];
  std::optional<std::string> name;
  if (is_known) name = schema_->names[progress[0]];
  if (!is_known) p.is_doubtful = true;
  if (!is_known && real_ != nullptr) name = last_string(*real_);
  if (name && object->keys->count(*name) != 0) return false;
  if (name) {
    auto keys = std::make_shared<Frame::Keys>(*object->keys);
    keys->insert(*name);
    object->keys = keys;
  }
  ++object->count;
  for (uint32_t i = 0; i < object->size(); ++i)
    if (!has_room_for_required(object->schema(i), *object)) object->own[i] = Verdict::failed;

  std::vector<Root> roots;
  size_t condition = 0;
  for (uint32_t i = 0; i < key->outer->size(); ++i) {
    if (key->outer->failed(i)) continue;
    const Schema& s = object->schema(i);
    bool is_named = false;
    const auto add = [&](SchemaId schema) {
      is_named = true;
      if (schema != any) roots.push_back({schema, Root::Role::needed, i});
    };
    if (const auto property = is_known ? s.properties.find(*name) : s.properties.end();
        property != s.properties.end()) {
      add(property->second);
    }
    for (const auto& [text, schema] : s.pattern_properties) {
      if (found[condition++]) add(schema);
    }
    if (!is_named) add(s.additional);
  }
  if (object->own != key->outer->own && !survives(object.get(), object->own)) return false;
  p.progress = p.detail = p.blanks = 0;
  p.frame = expect(object, std::move(roots));
  p.mode = Mode::colon;
  return p.frame != nullptr;
}

// ---- regions

Machine::State JsonMachine::region(State state) {
  const Place& p = places_[state];
  if (p.frame == nullptr || p.frame->region == nullptr || p.mode < Mode::text ||
      p.mode > Mode::low_u) {
    return dead;
  }
  Place shared = p;
  shared.frame = p.frame->region;
  shared.is_doubtful = false;
  if (p.frame->kind == Frame::Kind::key) {
    const Progress& progress = progresses_[p.progress];
    if (progress[0] != progress[1]) return dead;  // it may still be a name of the schema
    shared.progress = intern(Progress{0});
  }
  return intern(std::move(shared));
}

bool JsonMachine::left_region(State state) const { return places_[state].mode == Mode::left; }

Machine::State JsonMachine::resume(State inside, State left) {
  const auto [known, is_new] = resumed_.try_emplace(uint64_t{inside} << 32 | left, dead);
  if (!is_new) return known->second;
  Place p = places_[inside];
  p.is_doubtful = false;
  p.mode = Mode::text;
  p.detail = p.high = 0;
  if (p.frame->kind == Frame::Kind::string) p.progress = places_[left].progress;
  const State after = close_string(p) ? intern(std::move(p)) : dead;
  return resumed_[uint64_t{inside} << 32 | left] = after;
}

}  // namespace taper::llm::json_text
