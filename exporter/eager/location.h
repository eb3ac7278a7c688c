#pragma once
#include <string>

namespace taper {

/// A line of the user's program. Every public function takes one as its last parameter; the default
/// is the caller's own line. Errors, graphs and profiles show these lines. (It replaces
/// std::source_location, which clang 14 does not have.)
struct Location {
  const char* file = "";  ///< static storage
  int line = 0;
  const char* function = "";

  constexpr Location() = default;
  // Not an aggregate, so that `{0, 1}` is a list of dimensions.
  constexpr Location(const char* file, int line, const char* function)
      : file(file), line(line), function(function) {}
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE(),
                                    const char* function = __builtin_FUNCTION()) {
    return {file, line, function};
  }
  bool known() const { return line > 0; }
  /// "train_lenet.cpp:31"; the folder is left out.
  std::string to_string() const {
    std::string name = file;
    if (const size_t slash = name.find_last_of('/'); slash != std::string::npos)
      name.erase(0, slash + 1);
    return name + ":" + std::to_string(line);
  }
};

}  // namespace taper
