#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>
#include <string_view>

#include "taper/exporter/importers/pt2/executor.h"

namespace taper::pt2 {
namespace {

/// Locations point to texts that live as long as the program.
const char* kept(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> texts;
  const std::lock_guard lock(mutex);
  return texts.emplace(text).first->c_str();
}

bool is_of_torch(std::string_view file) { return file.find("/torch/") != file.npos; }
/// Code that PyTorch wrote for itself, which nobody can look at.
bool is_generated(std::string_view file) { return file.find("<eval_with_key>") != file.npos; }

struct Frame {
  std::string_view file, function;
  int line = 0;
};

/// `File "/home/me/net.py", line 12, in forward`
std::optional<Frame> frame_of(std::string_view line) {
  constexpr std::string_view begin = "File \"", middle = "\", line ", end = ", in ";
  const size_t at = line.find(begin);
  if (at == line.npos) return std::nullopt;
  const size_t name = at + begin.size(), quote = line.find(middle, name);
  if (quote == line.npos) return std::nullopt;
  Frame frame;
  frame.file = line.substr(name, quote - name);
  const std::string_view rest = line.substr(quote + middle.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
  if (const size_t in = rest.find(end); in != rest.npos)
    frame.function = rest.substr(in + end.size());
  return frame;
}

}  // namespace

Location location_of(const Node& node) {
  std::optional<Frame> best;
  std::string_view rest = node.stack_trace;
  while (!rest.empty()) {
    const size_t stop = std::min(rest.find('\n'), rest.size());
    const auto frame = frame_of(rest.substr(0, stop));
    if (frame && !is_generated(frame->file) && (!best || !is_of_torch(frame->file))) best = frame;
    rest.remove_prefix(std::min(stop + 1, rest.size()));
  }
  if (!best) return {};
  return {kept(best->file), best->line, kept(best->function)};
}

}  // namespace taper::pt2
