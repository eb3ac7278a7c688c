// A progress bar. No C++ library for it is packaged for Debian, and these few lines are all that
// training needs.
#pragma once
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace taper::data {

struct ProgressOptions {
  std::string unit = "steps";     ///< what the rate counts; "": neither rate nor time left
  double units_per_step = 1;      ///< 64 images a step
  std::ostream* out = nullptr;    ///< nullptr: std::cerr
  double quiet_seconds = 0;       ///< work that takes no longer is not shown at all
  bool only_on_terminal = false;  ///< elsewhere nothing is shown
};

/// Shows how far a loop is, its rate, the time left and values such as the loss:
///
///   training  42 % [############                ] 1312/3125  2114 images/s  0:55 left  loss 0.0713
///
/// On a terminal one line is rewritten, at most ten times a second. Elsewhere a line is printed
/// every ten seconds and at the end.
///
///   for (int epoch : Progress(3, "training")) …
///   Progress progress(loader.size(), "training", {.unit = "images", .units_per_step = 64});
///   for (auto [images, labels] : loader) {
///     …
///     progress.set("loss", loss.item());
///     progress.advance();
///   }
class Progress {
 public:
  Progress(int64_t steps, std::string title, ProgressOptions options = {});
  /// Ends the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Sets the text before the bar.
  void set_title(std::string title) { title_ = std::move(title); }
  /// A number shown behind the bar, until it is set again.
  void set(const std::string& name, double value);
  void advance(int64_t steps = 1);
  /// Shows the final state. Called by the destructor.
  void finish();

  /// What is shown now.
  std::string line() const;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using pointer = const int*;
    using reference = int;

    int operator*() const { return at_; }
    Iterator& operator++() { return ++at_, progress_->advance(), *this; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class Progress;
    Iterator(Progress* progress, int at) : progress_(progress), at_(at) {}
    Progress* progress_;
    int at_;
  };
  Iterator begin() { return {this, 0}; }
  Iterator end() { return {this, static_cast<int>(steps_)}; }

 private:
  using Clock = std::chrono::steady_clock;
  void show();
  bool is_quiet() const;

  std::string title_;
  ProgressOptions options_;
  std::ostream& out_;
  bool terminal_, finished_ = false;
  int64_t steps_, done_ = 0;
  size_t shown_width_ = 0;
  Clock::time_point start_, shown_;
  std::vector<std::pair<std::string, double>> values_;
};

}  // namespace taper::data
