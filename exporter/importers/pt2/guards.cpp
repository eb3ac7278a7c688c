#include "taper/exporter/importers/pt2/guards.h"

#include <array>
#include <map>
#include <regex>

#include "taper/exporter/error.h"
#include "taper/exporter/ir/check.h"
#include "taper/exporter/ir/parser.h"

namespace taper::pt2 {
namespace {

constexpr size_t longest = 1000;  // characters; those that PyTorch writes are far shorter

/// A guard whose numbers have names that `parse_dim` reads.
struct Named {
  std::string text;
  std::map<std::string, Dim, std::less<>> numbers;
};

/// The parts of "L['d']['a'][0].size()[1]" that name the input.
std::string path_of(const std::string& reference) {
  static const std::regex part(R"(\[(?:'(\w+)'|(\d+))\])");
  std::string path;
  for (std::sregex_iterator m(reference.begin(), reference.end(), part), end; m != end; ++m)
    path += (path.empty() ? "" : "_") + ((*m)[1].matched ? (*m)[1].str() : (*m)[2].str());
  return path;
}

std::optional<Named> with_names(const std::string& guard, const GuardNumber& number) {
  static const std::regex reference(R"((L(?:\['\w+'\]|\[\d+\])+)(\.size\(\)\[(\d{1,2})\])?)");
  // "torch.sym_max(a, b)" and sympy's "Max(a, b)"
  static const std::regex larger(R"((?:torch\.sym_m|\bM)ax\()"),
      smaller(R"((?:torch\.sym_m|\bM)in\()");
  const std::string text =
      std::regex_replace(std::regex_replace(guard, larger, "max("), smaller, "min(");
  Named named;
  auto begin = text.cbegin();
  for (std::smatch m; std::regex_search(begin, text.cend(), m, reference); begin = m[0].second) {
    std::optional<int64_t> dim;
    if (m[3].matched) dim = std::stoi(m[3].str());
    const std::optional<Dim> found = number(path_of(m[1].str()), dim);
    if (!found) return std::nullopt;
    const std::string name = "g" + std::to_string(named.numbers.size());
    named.numbers.emplace(name, *found);
    named.text.append(begin, m[0].first).append(name);
  }
  named.text.append(begin, text.cend());
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

/// "a <= b" as a check; nothing for other forms.
std::optional<Check> comparison(const std::string& text, const Named& named) {
  struct Sign {
    const char* text;
    Comparison comparison;
    bool swapped;
  };
  // the longer ones first
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
