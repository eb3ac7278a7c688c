// Matches the results of two runs that belong to the same node.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "taper/exporter/compare/compare.h"

namespace taper::compare {
namespace {

/// "relu" for "relu_", "add" for "add.Tensor": the name without the overload and without the mark
/// of an in-place operator.
std::string_view plain(std::string_view op) {
  op = op.substr(0, op.find('.'));
  while (op.ends_with('_')) op.remove_suffix(1);
  return op;
}

/// "conv" for "conv2d", "softmax" for "_softmax", "convolution" for "taper::convolution": the part
/// of an operator's name that it shares with the operators it becomes.
std::string_view stem(std::string_view op) {
  op = plain(op);
  if (const size_t at = op.rfind(':'); at != op.npos) op.remove_prefix(at + 1);
  while (op.starts_with('_')) op.remove_prefix(1);
  return op.substr(0, op.find_first_of("0123456789"));
}

bool are_related(const Result& a, const Result& b) {
  constexpr std::string_view fused = "taper::pointwise";
  const std::string_view x = stem(a.op), y = stem(b.op);
  return a.op == fused || b.op == fused || x.find(y) != x.npos || y.find(x) != y.npos;
}

bool are_comparable(const Result& a, const Result& b) {
  const DType x = a.value.dtype, y = b.value.dtype;
  return (a.value.sizes == b.value.sizes || are_turned(a, b)) &&
         (x == y || (is_floating(x) && is_floating(y)));
}

/// Whether it is a convolution with folded weights, whose result includes the next operator. A
/// delegate may be one.
bool gives_more(const Result& r) {
  return r.is_folded && (r.op.find("conv") != r.op.npos || r.is_delegate);
}

using Indices = std::vector<size_t>;
/// The first results of the nodes of each line of each module, without views.
using Places = std::map<std::pair<std::string, std::string>, Indices>;

Places places_of(const Run& run) {
  Places places;
  for (size_t i = 0; i < run.nodes.size(); ++i)
    if (const Result& r = run.nodes[i]; !r.source.empty() && !r.is_view && r.index == 0)
      places[{r.source, r.module}].push_back(i);
  return places;
}

std::map<std::string_view, Indices> by_operator(const Run& run, const Indices& indices) {
  std::map<std::string_view, Indices> groups;
  for (const size_t i : indices) groups[plain(run.nodes[i].op)].push_back(i);
  return groups;
}

class Matcher {
 public:
  Matcher(const Run& want, const Run& got)
      : want_(want),
        got_(got),
        modules_(knows(want, &Result::module) && knows(got, &Result::module)),
        counterparts_(want.nodes.size(), nullptr),
        taken_(got.nodes.size(), false) {
    for (const Result& r : got.nodes)
      if (!r.source.empty()) lines_.insert(r.source);
  }

  std::vector<const Result*> run() {
    pair_fused();
    pair_names(true);
    const Places places = places_of(want_), others = places_of(got_);
    for (const auto& [place, here] : places) {
      const auto there = others.find(place);
      if (there == others.end()) continue;
      pair_operators(here, there->second);
      if (are_related(want_.nodes[here.back()], got_.nodes[there->second.back()]))
        pair(here.back(), there->second.back());
    }
    pair_names(false);
    return std::move(counterparts_);
  }

 private:
  static bool knows(const Run& run, std::string Result::*what) {
    return std::ranges::any_of(run.nodes, [&](const Result& r) { return !(r.*what).empty(); });
  }

  using Name = std::tuple<std::string_view, std::string_view, std::string_view>;
  Name name_of(const Result& r, bool lines) const {
    return {r.name, modules_ ? r.module : std::string_view(),
            lines ? r.source : std::string_view()};
  }

  /// Fused operators have the name of the last one, and the line of any.
  void pair_fused() {
    std::map<std::string_view, Indices> named;
    for (size_t w = 0; w < want_.nodes.size(); ++w) named[want_.nodes[w].name].push_back(w);
    std::map<std::string_view, size_t> seen;
    for (size_t g = 0; g < got_.nodes.size(); ++g) {
      const Result& r = got_.nodes[g];
      const auto at = r.is_fused && !r.name.empty() ? named.find(r.name) : named.end();
      if (at == named.end()) continue;
      const size_t k = seen[r.name]++;
      if (k < at->second.size()) pair(at->second[k], g);
    }
  }

  void pair_names(bool lines) {
    std::map<Name, Indices> named;  // a loop gives several results with one name
    for (size_t g = 0; g < got_.nodes.size(); ++g)
      named[name_of(got_.nodes[g], lines)].push_back(g);
    std::map<Name, size_t> seen;
    for (size_t w = 0; w < want_.nodes.size(); ++w) {
      const Result& r = want_.nodes[w];
      const Name name = name_of(r, lines);
      const auto at = named.find(name);
      if (r.name.empty() || at == named.end()) continue;
      const size_t k = seen[name]++;
      if (k >= at->second.size()) continue;
      if (lines || !lines_.contains(r.source)) pair(w, at->second[k]);
    }
  }

  void pair_operators(const Indices& here, const Indices& there) {
    const auto others = by_operator(got_, there);
    for (const auto& [op, group] : by_operator(want_, here)) {
      const auto other = others.find(op);
      if (other == others.end() || other->second.size() != group.size()) continue;
      for (size_t k = 0; k < group.size(); ++k) pair(group[k], other->second[k]);
    }
  }

  void pair(size_t w, size_t g) {
    if (gives_more(got_.nodes[g])) w = behind(want_, w);
    if (gives_more(want_.nodes[w])) g = behind(got_, g);
    if (counterparts_[w] != nullptr || taken_[g]) return;
    const Result &a = want_.nodes[w], &b = got_.nodes[g];
    if (!want_.by_name && !got_.by_name && !are_comparable(a, b)) return;
    counterparts_[w] = &b;
    taken_[g] = true;
  }

  /// For a convolution, the first later node that reads its result first. `i` for other nodes, or
  /// if there is none.
  static size_t behind(const Run& run, size_t i) {
    const Result& r = run.nodes[i];
    if (r.is_folded || r.name.empty() || !stem(r.op).starts_with("conv")) return i;
    for (size_t k = i + 1; k < run.nodes.size(); ++k)
      if (run.nodes[k].input == r.name) return k;
    return i;
  }

  const Run &want_, &got_;
  const bool modules_;
  std::set<std::string_view> lines_;  ///< lines of `got`
  std::vector<const Result*> counterparts_;
  std::vector<bool> taken_;
};

}  // namespace

bool are_turned(const Result& a, const Result& b) {
  if (a.has_channels_last == b.has_channels_last) return false;
  const std::vector<int64_t>&last = (a.has_channels_last ? a : b).value.sizes,
        &first = (a.has_channels_last ? b : a).value.sizes;
  return first.size() == 4 && first == std::vector{last[0], last[3], last[1], last[2]};
}

std::vector<const Result*> match(const Run& want, const Run& got) {
  return Matcher(want, got).run();
}

}  // namespace taper::compare
