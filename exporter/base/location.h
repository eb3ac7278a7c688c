#pragma once
#include <string>

namespace taper {

struct Location;
namespace internal {
/// Of the innermost `PlaceScope` of this thread; nullptr: there is none.
inline constinit thread_local const Location* place = nullptr;
}  // namespace internal

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
  /// The caller's line, or the place of the `PlaceScope` that lives on this thread.
  static Location current(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                          const char* function = __builtin_FUNCTION()) {
    return internal::place != nullptr ? *internal::place : Location(file, line, function);
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

/// The place that replaces the calls' own lines on this thread; unknown if nothing replaces them.
inline Location place() { return internal::place != nullptr ? *internal::place : Location(); }

/// Replaces the lines of the calls that follow on this thread while it lives. So a decomposition,
/// a derivative and backward() name the user's line, and need not hand it through. An unknown place
/// leaves the one that is there.
class PlaceScope {
 public:
  explicit PlaceScope(const Location& place)
      : place_(place.known() ? place : taper::place()), before_(internal::place) {
    internal::place = &place_;
  }
  ~PlaceScope() { internal::place = before_; }
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  Location place_;
  const Location* before_;
};

}  // namespace taper
