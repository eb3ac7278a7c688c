#include "taper/exporter/quantize/sparsity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>

#include "taper/exporter/base/error.h"

namespace taper::quantize {
namespace {

constexpr int most = 4096;  // neighbours, and rows and columns of a block

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Sparsity> read(std::string_view text) {
  Sparsity pattern;
  const size_t colon = text.find(':');
  const std::string_view first = text.substr(0, colon);
  if (colon == text.npos) {
    const auto part = number_of<double>(first);
    if (!part) return std::nullopt;
    return pattern.part = *part, pattern;
  }
  const std::string_view second = text.substr(colon + 1);
  const size_t times = second.find('x');
  if (times == second.npos) {
    const auto keep = number_of<int>(first), of = number_of<int>(second);
    if (!keep || !of) return std::nullopt;
    return pattern.keep = *keep, pattern.of = *of, pattern;
  }
  const auto part = number_of<double>(first);
  const auto rows = number_of<int>(second.substr(0, times)),
             columns = number_of<int>(second.substr(times + 1));
  if (!part || !rows || !columns) return std::nullopt;
  return pattern.part = *part, pattern.rows = *rows, pattern.columns = *columns, pattern;
}

bool is_part(const Sparsity& pattern) {
  return pattern.part != 0 || pattern.has_blocks();  // NaN is one, too
}

/// A matrix of weights as blocks.
class Blocks {
 public:
  Blocks(std::span<float> w, int64_t rows, const Sparsity& pattern)
      : w_(w),
        rows_(static_cast<size_t>(rows)),
        depth_(w.size() / rows_),
        height_(static_cast<size_t>(pattern.rows)),
        width_(static_cast<size_t>(pattern.columns)) {}

  size_t bands() const { return (rows_ + height_ - 1) / height_; }
  size_t of_band() const { return (depth_ + width_ - 1) / width_; }

  float score(size_t block, std::span<const float> importance) const {
    double sum = 0;
    for_each(block, [&](size_t row, size_t column) {
      const double x = static_cast<double>(w_[row * depth_ + column]) * importance[column];
      sum += x * x;
    });
    return static_cast<float>(std::sqrt(sum));
  }
  void set_to_zero(size_t block) {
    for_each(block, [&](size_t row, size_t column) { w_[row * depth_ + column] = 0; });
  }

 private:
  template <class F>
  void for_each(size_t block, const F& body) const {
    const size_t row = block / of_band() * height_, column = block % of_band() * width_;
    for (size_t r = row; r < std::min(row + height_, rows_); ++r)
      for (size_t c = column; c < std::min(column + width_, depth_); ++c) body(r, c);
  }

  std::span<float> w_;
  size_t rows_, depth_, height_, width_;
};

void zero_blocks(std::span<float> w, int64_t rows, std::span<const float> importance,
                 const Sparsity& pattern, bool each_row) {
  Blocks blocks(w, rows, pattern);
  const size_t all = blocks.bands() * blocks.of_band(), compete = each_row ? blocks.of_band() : all;
  for (size_t begin = 0; begin < all; begin += compete) {
    std::vector<float> scores(compete);
    for (size_t i = 0; i < compete; ++i) scores[i] = blocks.score(begin + i, importance);
    const std::vector<bool> goes = losers(scores, pattern.stay(compete));
    for (size_t i = 0; i < compete; ++i)
      if (goes[i]) blocks.set_to_zero(begin + i);
  }
}

void zero_neighbours(std::span<float> w, size_t depth, std::span<const float> importance,
                     const Sparsity& pattern) {
  const auto of = static_cast<size_t>(pattern.of);
  for (size_t row = 0; row < w.size(); row += depth)
    for (size_t first = 0; first < depth; first += of) {
      const std::span<float> group = w.subspan(row + first, std::min(of, depth - first));
      std::vector<float> scores(group.size());
      for (size_t i = 0; i < group.size(); ++i)
        scores[i] = std::fabs(group[i]) * importance[first + i];
      const std::vector<bool> goes = losers(scores, pattern.stay(group.size()));
      for (size_t i = 0; i < group.size(); ++i)
        if (goes[i]) group[i] = 0;
    }
}

}  // namespace

size_t Sparsity::stay(size_t n) const {
  if (part > 0) {
    constexpr double rounding = 1e-9;  // 0.29 of 100 are 29
    return n - std::min(n, static_cast<size_t>(part * static_cast<double>(n) + rounding));
  }
  const auto all = static_cast<size_t>(of);
  return (n * static_cast<size_t>(keep) + all - 1) / all;
}

Sparsity parse_sparsity(const std::string& text) {
  const std::optional<Sparsity> pattern = read(text);
  if (!pattern)
    throw ExportError("\"" + text +
                      "\" is no pattern of zeros; give a part such as 0.5, neighbours that stay "
                      "such as 2:4, or a part of blocks such as 0.5:4x8");
  // a part of 0 would otherwise stand for the neighbours
  if (pattern->part == 0 && (text.find(':') == text.npos || text.find('x') != text.npos))
    throw ExportError("a part of 0 sets nothing to zero; give one above 0, such as 0.5");
  require_possible(*pattern);
  return *pattern;
}

std::string to_text(const Sparsity& pattern) {
  std::ostringstream text;
  if (!is_part(pattern)) {
    text << pattern.keep << ':' << pattern.of;
  } else {
    text << pattern.part;
    if (pattern.has_blocks()) text << ':' << pattern.rows << 'x' << pattern.columns;
  }
  return text.str();
}

void require_possible(const Sparsity& pattern) {
  const auto refuse = [&](const std::string& why) {
    throw ExportError("pruning " + to_text(pattern) + why);
  };
  if (is_part(pattern)) {
    if (!(pattern.part > 0 && pattern.part < 1))
      refuse(" keeps nothing or everything; give a part between 0 and 1, such as 0.5");
    if (pattern.rows < 1 || pattern.rows > most || pattern.columns < 1 || pattern.columns > most)
      refuse(": a block has 1 to " + std::to_string(most) + " rows and columns");
    return;
  }
  if (pattern.of < 2 || pattern.keep < 1 || pattern.keep >= pattern.of)
    refuse(" keeps nothing or everything; 2:4 keeps two of four");
  if (pattern.of > most) refuse(": there may be " + std::to_string(most) + " neighbours at most");
}

std::vector<bool> losers(std::span<const float> scores, size_t stay) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return scores[i]; });
  std::vector<bool> goes(scores.size());
  for (size_t i = 0; i + stay < scores.size(); ++i) goes[order[i]] = true;
  return goes;
}

void zero_smallest(std::span<float> w, int64_t rows, std::span<const float> importance,
                   const Sparsity& pattern, bool each_row) {
  if (w.empty()) return;
  if (is_part(pattern)) return zero_blocks(w, rows, importance, pattern, each_row);
  zero_neighbours(w, w.size() / static_cast<size_t>(rows), importance, pattern);
}

}  // namespace taper::quantize
