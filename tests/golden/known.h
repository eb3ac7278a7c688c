// Lists of what may go otherwise than a test wants, and why. A line is a name, in brackets how the
// message begins that says what goes wrong, and the reason:
//
//   var.dim/v13   [gradient of args.0] PyTorch's gradient counts one element where dim=[]
//
// so that a line does not hide what else goes wrong there. Without brackets it is about every
// message. A reason that begins with "on some processors: " is about a case that passes elsewhere.
// Empty lines and those that begin with # are left out.
#pragma once
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace taper::golden {

class Known {
 public:
  /// Adds the lines of a file. Throws std::runtime_error if one is not of this form.
  void read(const std::filesystem::path& path);

  /// Whether there is a line about this very name.
  bool contains(const std::string& name) const { return lines_.contains(name); }
  /// Whether all lines about this very name, at least one, are about some processors only.
  bool depends_on_the_processor(const std::string& name) const;
  /// Why what `message` says of `name` may be, or nullptr.
  const std::string* reason(const std::string& name, const std::string& message) const;
  /// What the brackets of lines about this very name hold, of lines that none of the messages
  /// needs and that are not about some processors only.
  std::vector<std::string> stale(const std::string& name,
                                 const std::vector<std::string>& messages) const;
  std::set<std::string> names() const;

 private:
  struct Line {
    std::string beginning, reason;
  };
  std::multimap<std::string, Line> lines_;
};

}  // namespace taper::golden
