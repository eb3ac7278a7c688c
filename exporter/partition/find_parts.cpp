// Grows the parts node by node. The graph of parts stays free of circles: a node joins a part only
// if nothing that the node needs depends on the part from outside.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "taper/exporter/partition/parts.h"

namespace taper::partition {
namespace {

constexpr int no_part = -1;

class PartFinder {
 public:
  PartFinder(ir::Graph& graph, const std::function<bool(const ir::Node&)>& takes)
      : graph_(graph), takes_(takes) {}

  std::vector<Part> run() {
    for (ir::Node& node : graph_.nodes()) {
      if (takes_(node))
        part_of_[&node] = join(node);
      else
        reached_[&node] = reached_outside(node);
    }
    return collect();
  }

 private:
  using Parts = std::set<int>;

  // ---- parts that were merged ----

  int root(int part) const {
    while (parent_[static_cast<size_t>(part)] != part) part = parent_[static_cast<size_t>(part)];
    return part;
  }
  int new_part() {
    parent_.push_back(static_cast<int>(parent_.size()));
    needs_.emplace_back(), outside_needs_.emplace_back();
    return parent_.back();
  }
  int part_of(const ir::Node* node) const {
    const auto at = part_of_.find(node);
    return at == part_of_.end() ? no_part : root(at->second);
  }

  template <class Visit>
  static void for_each_producer(const ir::Node& node, const Visit& visit) {
    ir::for_each_value(node, [&](const ir::Value* v) {
      if (v->node != nullptr) visit(v->node);
    });
  }

  // ---- what a node depends on ----

  /// The parts from which a path leads to a node that is in none.
  Parts reached_outside(const ir::Node& node) const {
    Parts reached;
    for_each_producer(node, [&](const ir::Node* p) {
      if (const int part = part_of(p); part != no_part)
        reached.insert(part);
      else
        reached.insert(reached_.at(p).begin(), reached_.at(p).end());
    });
    return reached;
  }

  /// Adds all that the parts depend on, directly or through others.
  Parts closure(const Parts& parts) const {
    Parts all;
    std::vector<int> open(parts.begin(), parts.end());
    while (!open.empty()) {
      const int part = root(open.back());
      open.pop_back();
      if (!all.insert(part).second) continue;
      const Parts& needs = needs_[static_cast<size_t>(part)];
      open.insert(open.end(), needs.begin(), needs.end());
    }
    return all;
  }

  /// Puts the node into the parts of its producers, which become one, or into a part of its own.
  int join(const ir::Node& node) {
    Parts neighbours, outside;
    for_each_producer(node, [&](const ir::Node* p) {
      if (const int part = part_of(p); part != no_part)
        neighbours.insert(part);
      else
        outside.insert(reached_.at(p).begin(), reached_.at(p).end());
    });
    Parts joined;
    for (const int part : neighbours) {
      Parts with = joined;
      with.insert(part);
      if (may_be_one(with, neighbours, outside)) joined = with;
    }
    const int part = joined.empty() ? new_part() : *joined.begin();
    for (const int other : joined) merge(other, part);
    for (const Parts* list : {&neighbours, &outside})
      for (const int other : *list) need(part, other);
    outside_needs_[static_cast<size_t>(part)].merge(outside);
    return part;
  }

  /// Whether `members` and a node that reads `neighbours` and, through nodes in no part, `outside`
  /// can be one part.
  bool may_be_one(const Parts& members, const Parts& neighbours, const Parts& outside) const {
    Parts needed = outside;  // by a path that leaves the members
    const auto add_others = [&](const Parts& parts) {
      for (const int p : parts)
        if (!members.contains(root(p))) needed.insert(p);
    };
    add_others(neighbours);
    for (const int member : members) {
      add_others(needs_[static_cast<size_t>(member)]);
      const Parts& reached = outside_needs_[static_cast<size_t>(member)];
      needed.insert(reached.begin(), reached.end());
    }
    const Parts all = closure(needed);
    return std::ranges::none_of(members, [&](int p) { return all.contains(p); });
  }

  void merge(int from, int to) {
    if (from == to) return;
    parent_[static_cast<size_t>(from)] = to;
    for (std::vector<Parts>* sets : {&needs_, &outside_needs_})
      (*sets)[static_cast<size_t>(to)].merge((*sets)[static_cast<size_t>(from)]);
  }
  void need(int part, int other) {
    if (root(other) != part) needs_[static_cast<size_t>(part)].insert(root(other));
  }

  std::vector<Part> collect() {
    std::vector<Part> parts(parent_.size());
    for (ir::Node& node : graph_.nodes())
      if (const int part = part_of(&node); part != no_part)
        parts[static_cast<size_t>(part)].push_back(&node);
    std::erase_if(parts, [](const Part& part) {
      return std::ranges::all_of(
          part, [](const ir::Node* n) { return n->op->category == Category::view; });
    });
    return parts;
  }

  ir::Graph& graph_;
  const std::function<bool(const ir::Node&)>& takes_;
  std::unordered_map<const ir::Node*, int> part_of_;
  std::unordered_map<const ir::Node*, Parts> reached_;  // of nodes that are in no part
  std::vector<int> parent_;
  // of each part that is a root: all parts that it reads, and those through nodes in no part
  std::vector<Parts> needs_, outside_needs_;
};

}  // namespace

std::vector<Part> find_parts(ir::Graph& graph, const std::function<bool(const ir::Node&)>& takes) {
  return PartFinder(graph, takes).run();
}

}  // namespace taper::partition
