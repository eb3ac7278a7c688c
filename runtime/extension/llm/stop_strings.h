#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace taper::llm {

/// Ends a text before the first of some strings, as the text comes piece by piece. What may be the
/// start of such a string waits.
class StopStrings {
 public:
  /// Empty strings are left out.
  explicit StopStrings(std::vector<std::string> strings);

  /// The part that may be shown. Empty for all pieces behind a stop string.
  std::string push(std::string_view piece);
  /// What still waits, at the end of the text.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string waiting_;
  bool stopped_ = false;
};

}  // namespace taper::llm
