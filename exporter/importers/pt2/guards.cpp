#include "taper/exporter/importers/pt2/guards.h"

#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "taper/exporter/base/error.h"
#include "taper/exporter/dim/check.h"
#include "taper/exporter/ir/parser.h"

namespace taper::pt2 {
namespace {

constexpr size_t longest = 1000;  // in characters; PyTorch's guards are far shorter

/// A guard in which all names can be read by `parse_dim`.
struct Named {
  std::string text;
  std::map<std::string, Dim, std::less<>> numbers;
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Removes `prefix` from the front of `text`. Returns false, and leaves `text` as it is, if `text`
/// begins with something else.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}
/// Removes the longest front of characters that `belongs` accepts, and returns it.
std::string_view take_while(std::string_view& text, bool (*belongs)(char)) {
  size_t n = 0;
  while (n < text.size() && belongs(text[n])) ++n;
  const std::string_view front = text.substr(0, n);
  text.remove_prefix(n);
  return front;
}

/// A number of the model in the notation of guards: an input, or a size of an input.
struct Reference {
  std::string path;            ///< "d_a_0"
  std::optional<int64_t> dim;  ///< 1
};
/// Removes "L['d']['a'][0].size()[1]" from the front of `text`.
std::optional<Reference> take_reference(std::string_view& text) {
  std::string_view rest = text;
  if (!take(rest, "L")) return std::nullopt;
  Reference found;
  for (std::string_view after = rest; take(after, "["); rest = after) {
    const bool named = take(after, "'");
    const std::string_view part = take_while(after, named ? is_word : is_digit);
    if (part.empty() || !take(after, named ? "']" : "]")) break;
    if (!found.path.empty()) found.path += '_';
    found.path += part;
  }
  if (found.path.empty()) return std::nullopt;
  if (std::string_view after = rest; take(after, ".size()[")) {
    const std::string_view digits = take_while(after, is_digit);
    if (!digits.empty() && digits.size() <= 2 && take(after, "]")) {
      found.dim = std::stoi(std::string(digits));
      rest = after;
    }
  }
  text = rest;
  return found;
}

/// The guard with names in place of its numbers, and with every spelling of the maximum as
/// `max(…)`. nullopt if the model lacks one of the numbers.
std::optional<Named> with_names(std::string_view guard, const GuardNumber& number) {
  Named named;
  bool in_word = false;
  for (std::string_view rest = guard; !rest.empty();) {
    // "torch.sym_max(a, b)" and sympy's "Max(a, b)"
    if (take(rest, "torch.sym_max(") || (!in_word && take(rest, "Max("))) {
      named.text += "max(";
      in_word = false;
    } else if (take(rest, "torch.sym_min(") || (!in_word && take(rest, "Min("))) {
      named.text += "min(";
      in_word = false;
    } else if (const std::optional<Reference> reference = take_reference(rest)) {
      const std::optional<Dim> found = number(reference->path, reference->dim);
      if (!found) return std::nullopt;
      const std::string name = "g" + std::to_string(named.numbers.size());
      named.numbers.emplace(name, *found);
      named.text += name;
      in_word = false;
    } else {
      in_word = is_word(rest.front());
      named.text += rest.front();
      rest.remove_prefix(1);
    }
  }
  return named;
}

std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(at, begin)) != text.npos; begin = end + at.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// "a <= b" as a check; nullopt for other forms.
std::optional<Check> comparison(const std::string& text, const Named& named) {
  struct Sign {
    const char* text;
    Comparison comparison;
    bool swapped;
  };
  // longer signs come first
  static constexpr std::array signs{
      Sign{"==", Comparison::equal, false},      Sign{"!=", Comparison::not_equal, false},
      Sign{"<=", Comparison::less_equal, false}, Sign{">=", Comparison::less_equal, true},
      Sign{"<", Comparison::less, false},        Sign{">", Comparison::less, true}};
  const auto dim = [&](std::string_view side) {
    return ir::parse_dim(side, [&](std::string_view name) {
      const auto at = named.numbers.find(name);
      if (at == named.numbers.end()) throw ExportError("another name");
      return at->second;
    });
  };
  for (const Sign& sign : signs) {
    const size_t at = text.find(sign.text);
    if (at == text.npos) continue;
    try {
      const Dim left = dim(std::string_view(text).substr(0, at)),
                right = dim(std::string_view(text).substr(at + std::string_view(sign.text).size()));
      return sign.swapped ? Check{sign.comparison, right, left, {}}
                          : Check{sign.comparison, left, right, {}};
    } catch (const ExportError&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

Guards parse_guards(const std::vector<std::string>& guards, const GuardNumber& number) {
  Guards read;
  for (const std::string& guard : guards) {
    const std::optional<Named> named =
        guard.size() > longest ? std::nullopt : with_names(guard, number);
    bool whole = named.has_value();
    if (named)
      for (const std::string& part : split(named->text, " and ")) {
        std::optional<Check> check = comparison(part, *named);
        whole = whole && check;
        if (!check || proves(*check)) continue;
        check->message = "the model was exported for " + guard;
        read.checks.push_back(std::move(*check));
      }
    if (!whole) read.unread.push_back(guard);
  }
  return read;
}

}  // namespace taper::pt2
