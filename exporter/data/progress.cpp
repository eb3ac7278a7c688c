#include "taper/exporter/data/progress.h"

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace taper::data {
namespace {

template <class... A>
std::string format(const char* pattern, A... a) {
  char text[128];
  std::snprintf(text, sizeof text, pattern, a...);
  return text;
}

/// 3661 → "1:01:01"
std::string duration(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  return s < 3600 ? format("%lld:%02lld", s / 60, s % 60)
                  : format("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

/// Whether a line on stderr can be drawn again and again.
bool is_terminal() {
#if __has_include(<unistd.h>)
  return isatty(STDERR_FILENO) == 1;
#else
  return false;
#endif
}

}  // namespace

Progress::Progress(int64_t steps, std::string title, ProgressOptions options)
    : title_(std::move(title)),
      options_(std::move(options)),
      out_(options_.out ? *options_.out : std::cerr),
      terminal_(options_.out == nullptr && is_terminal()),
      steps_(steps),
      start_(Clock::now()),
      shown_(start_) {}

Progress::~Progress() { finish(); }

void Progress::set(const std::string& name, double value) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found == values_.end())
    values_.emplace_back(name, value);
  else
    found->second = value;
}

void Progress::advance(int64_t steps) {
  done_ += steps;
  if (is_quiet()) return;
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (Clock::now() - shown_ >= pause) show();
}

bool Progress::is_quiet() const {
  return (options_.only_on_terminal && !terminal_) ||
         Clock::now() - start_ < std::chrono::duration<double>(options_.quiet_seconds);
}

void Progress::finish() {
  if (std::exchange(finished_, true) || is_quiet()) return;
  show();
  if (terminal_) out_ << '\n';
  out_.flush();
}

std::string Progress::line() const {
  constexpr int width = 28;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double share =
      steps_ > 0 ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(steps_)) : 1.0;
  const int filled = static_cast<int>(share * width);
  std::string text = title_ + format(" %3d %% [", static_cast<int>(share * 100));
  text.append(static_cast<size_t>(filled), '#').append(static_cast<size_t>(width - filled), ' ');
  text += "] " + std::to_string(done_) + "/" + std::to_string(steps_);
  if (done_ > 0 && seconds > 0 && !options_.unit.empty())
    text += format("  %.4g ", static_cast<double>(done_) * options_.units_per_step / seconds) +
            options_.unit + "/s";
  if (done_ > 0 && done_ < steps_ && !options_.unit.empty())
    text += "  " +
            duration(seconds * static_cast<double>(steps_ - done_) / static_cast<double>(done_)) +
            " left";
  else
    text += "  " + duration(seconds);
  for (const auto& [name, value] : values_) text += "  " + name + format(" %.4g", value);
  return text;
}

void Progress::show() {
  shown_ = Clock::now();
  std::string text = line();
  const size_t width = text.size();
  if (terminal_) {
    if (width < shown_width_)
      text.append(shown_width_ - width, ' ');  // wipes the rest of a longer line
    out_ << '\r' << text << std::flush;
  } else {
    out_ << text << '\n' << std::flush;
  }
  shown_width_ = width;
}

}  // namespace taper::data
