#include <cstdlib>
#include <utility>

#include "taper/runtime/extension/llm/grammar/json_machine.h"

namespace taper::llm::json_text {
namespace {

constexpr size_t most_digits = 128;
const Frame::Keys no_keys;

bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

std::string digits_of(const std::vector<uint32_t>& progress) {
  return {progress.begin(), progress.end()};
}

}  // namespace

bool JsonMachine::step_number(Place& p, uint8_t byte) {
  const bool is_e = byte == 'e' || byte == 'E';
  switch (p.mode) {
    case Mode::minus:
      return is_digit(byte) && add_digit(p, byte, byte == '0' ? Mode::zero : Mode::integer);
    case Mode::zero:
    case Mode::integer:
      if (byte == '.') return add_digit(p, byte, Mode::point);
      if (is_e) return add_digit(p, byte, Mode::exponent);
      if (is_digit(byte)) return p.mode == Mode::integer && add_digit(p, byte, Mode::integer);
      break;
    case Mode::point:
      return is_digit(byte) && add_digit(p, byte, Mode::fraction);
    case Mode::fraction:
      if (is_e) return add_digit(p, byte, Mode::exponent);
      if (is_digit(byte)) return add_digit(p, byte, Mode::fraction);
      break;
    case Mode::exponent:
      if (byte == '+' || byte == '-') return add_digit(p, byte, Mode::exponent_sign);
      [[fallthrough]];
    case Mode::exponent_sign:
      return is_digit(byte) && add_digit(p, byte, Mode::exponent_digits);
    default:
      if (is_digit(byte)) return add_digit(p, byte, Mode::exponent_digits);
  }
  return finish_number(p) && step(p, byte);
}

// An integer may be written as 3.0 or 3e2, but not as 0.3e1 or 30e-1.
bool JsonMachine::add_digit(Place& p, uint8_t byte, Mode mode) {
  const Frame& frame = *p.frame;
  p.mode = mode;
  Progress progress;
  std::string digits;
  if (frame.needs_digits) {
    progress = progresses_[p.progress];
    progress.push_back(byte);
    if (progress.size() > most_digits) return false;
    p.progress = intern(progress);
    digits = digits_of(progress);
  }
  const bool is_no_integer =
      (mode == Mode::fraction && byte != '0') || (mode == Mode::exponent_sign && byte == '-');
  std::vector<Verdict> own = frame.own;
  for (uint32_t i = 0; i < frame.size(); ++i) {
    if (frame.failed(i)) continue;
    const Schema& s = frame.schema(i);
    const bool is_wrong =
        (is_no_integer && s.is_integral()) || (frame.needs_digits && !may_become_valid(s, digits));
    if (is_wrong) own[i] = Verdict::failed;
  }
  if (own != frame.own) {
    auto changed = std::make_shared<Frame>(frame);
    changed->own = std::move(own);
    p.frame = changed;
    if (!survives(changed.get(), changed->own)) return false;
  }
  return !p.frame->needs_digits || mode < Mode::exponent || can_end_exponent(p, digits);
}

// Whether an exponent that begins so makes a number that may stand here. Beyond 400 every number is
// 0 or infinite, so no others are tried.
bool JsonMachine::can_end_exponent(const Place& p, const std::string& digits) {
  constexpr int most = 400;
  const size_t e = digits.find_first_of("eE") + 1;
  const bool has_sign = e < digits.size() && (digits[e] == '-' || digits[e] == '+');
  const bool is_negative = has_sign && digits[e] == '-';
  std::string begin = digits.substr(e + has_sign);
  begin.erase(0, begin.find_first_not_of('0'));  // zeros may stand before every exponent
  bool may_be_negative = is_negative || e == digits.size();
  for (uint32_t i = 0; i < p.frame->size(); ++i)
    may_be_negative &= p.frame->failed(i) || !p.frame->schema(i).is_integral();
  const std::string* const real = std::exchange(real_, nullptr);
  bool can = false;
  for (int k = may_be_negative ? -most : 0; k <= (is_negative ? 0 : most) && !can; ++k) {
    const std::string text = std::to_string(std::abs(k));
    Place ended = p;
    can = text.compare(0, begin.size(), begin) == 0 &&
          finish_number(ended, digits.substr(0, e) + (k < 0 ? "-" : "") + text);
  }
  real_ = real;
  return can;
}

bool JsonMachine::finish_number(Place& p) {
  const bool is_complete = p.mode == Mode::zero || p.mode == Mode::integer ||
                           p.mode == Mode::fraction || p.mode == Mode::exponent_digits;
  return is_complete && finish_number(p, digits_of(progresses_[p.progress]));
}

bool JsonMachine::finish_number(Place& p, const std::string& digits) {
  const Frame& frame = *p.frame;
  std::vector<Verdict> own = frame.own;
  for (uint32_t i = 0; i < frame.size(); ++i) {
    if (frame.failed(i)) continue;
    const bool is_right = !frame.needs_digits || is_valid_number(frame.schema(i), digits);
    own[i] = is_right ? Verdict::passed : Verdict::failed;
  }
  return finish(p, own, no_keys);
}

}  // namespace taper::llm::json_text
