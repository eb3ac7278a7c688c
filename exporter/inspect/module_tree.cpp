#include "taper/exporter/inspect/module_tree.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace taper::inspect {
namespace {

constexpr int deepest_level = 16;  // deeper levels stay one name, which limits the tree
constexpr size_t most_children = 128, part_length = 64;

/// All module paths as a tree of names; 0 is the model.
class Paths {
 public:
  Paths() { names_.push_back({-1, 0, ""}); }

  int add(const std::string& path) {
    int at = 0;
    for (size_t begin = 0; begin < path.size();) {
      size_t end = names_[at].depth + 1 == deepest_level ? path.npos : path.find('.', begin);
      end = std::min(end, path.size());
      at = child(at, path.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }
  size_t count() const { return names_.size(); }
  int parent(int path) const { return names_[path].parent; }
  /// The ancestor at this depth; `path` itself if it is not deeper.
  int ancestor(int path, int depth) const {
    while (names_[path].depth > depth) path = names_[path].parent;
    return path;
  }
  int depth(int path) const { return names_[path].depth; }
  std::string text(int path) const {
    if (path == 0) return "";
    const int above = names_[path].parent;
    return (above == 0 ? "" : text(above) + ".") + names_[path].name;
  }

 private:
  struct Name {
    int parent, depth;
    std::string name;
  };
  int child(int parent, const std::string& name) {
    const auto [at, is_new] = children_.insert({{parent, name}, static_cast<int>(names_.size())});
    if (is_new) names_.push_back({parent, names_[parent].depth + 1, name});
    return at->second;
  }
  std::vector<Name> names_;
  std::map<std::pair<int, std::string>, int> children_;
};

/// A topological order that stays in a module as long as possible. Of the nodes whose inputs are
/// available, the next one is the first in the innermost module around the last node that has one.
std::vector<int> order_by_module(const MethodGraph& graph, const Paths& paths,
                                 const std::vector<int>& path_of) {
  std::vector<int> missing(graph.nodes.size(), 0);
  std::vector<std::vector<int>> users(graph.nodes.size());
  for (const GraphEdge& e : graph.edges) ++missing[e.to], users[e.from].push_back(e.to);

  std::vector<std::set<int>> ready(paths.count());  // the nodes below each path that can be next
  const auto add = [&](int node) {
    for (int p = path_of[node]; p >= 0; p = paths.parent(p)) ready[p].insert(node);
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (missing[n] == 0) add(static_cast<int>(n));

  std::vector<int> order;
  int last = 0;
  while (!ready[0].empty()) {
    while (ready[last].empty()) last = paths.parent(last);
    const int node = *ready[last].begin();
    last = path_of[node];
    for (int p = last; p >= 0; p = paths.parent(p)) ready[p].erase(node);
    order.push_back(node);
    for (const int user : users[node])
      if (--missing[user] == 0) add(user);
  }
  return order;
}

class TreeBuilder {
 public:
  explicit TreeBuilder(const MethodGraph& graph) {
    for (const GraphNode& n : graph.nodes) path_of_.push_back(paths_.add(n.module));
    tree_.order = order_by_module(graph, paths_, path_of_);
    tree_.group_of.assign(graph.nodes.size(), 0);
  }

  ModuleTree run() {
    tree_.groups.push_back({-1, "", ""});
    fill(0, tree_.order, 0);
    std::map<std::string, int> calls;
    for (ModuleGroup& g : tree_.groups)
      if (g.title == g.path && ++calls[g.path] > 1)
        g.title += " (" + std::to_string(calls[g.path]) + ")";
    return std::move(tree_);
  }

 private:
  using Nodes = std::span<const int>;  // a part of the order
  /// A child of a group: one node, or consecutive nodes of a module.
  struct Item {
    Nodes nodes;
    int path;
  };

  // Puts `nodes`, which all lie below a path of this depth, into a group.
  void fill(int group, Nodes nodes, int depth) {
    const std::vector<Item> items = items_of(nodes, depth);
    // merges a box whose only content is a box
    if (group > 0 && items.size() == 1 && items[0].nodes.size() > 1) {
      tree_.groups[group].title = tree_.groups[group].path = paths_.text(items[0].path);
      return fill(group, nodes, depth + 1);
    }
    add(group, items, depth);
  }

  std::vector<Item> items_of(Nodes nodes, int depth) const {
    std::vector<Item> items;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int path = paths_.ancestor(path_of_[nodes[i]], depth + 1);
      const bool is_below = paths_.depth(path) > depth;
      if (is_below && !items.empty() && items.back().path == path)
        items.back().nodes = {items.back().nodes.data(), items.back().nodes.size() + 1};
      else
        items.push_back({nodes.subspan(i, 1), is_below ? path : -1});
    }
    return items;
  }

  void add(int group, std::span<const Item> items, int depth) {
    if (items.size() > most_children) return add_parts(group, items, depth);
    for (const Item& item : items) {
      if (item.nodes.size() == 1) {
        tree_.group_of[item.nodes[0]] = group;
        continue;
      }
      const int child = add_group(group, paths_.text(item.path), paths_.text(item.path));
      fill(child, item.nodes, depth + 1);
    }
  }

  // Divides the items into parts of nearly equal size. Each part is a group.
  void add_parts(int group, std::span<const Item> items, int depth) {
    size_t length = part_length;
    while (items.size() > length * part_length) length *= part_length;
    const size_t parts = (items.size() + length - 1) / length;
    for (size_t i = 0; i < parts; ++i) {
      const size_t begin = items.size() * i / parts, end = items.size() * (i + 1) / parts;
      const int part =
          add_group(group, "part " + std::to_string(i + 1) + " of " + std::to_string(parts),
                    tree_.groups[group].path);
      add(part, items.subspan(begin, end - begin), depth);
    }
  }

  int add_group(int parent, std::string title, std::string path) {
    tree_.groups.push_back({parent, std::move(title), std::move(path)});
    return static_cast<int>(tree_.groups.size()) - 1;
  }

  Paths paths_;
  std::vector<int> path_of_;  // one for each node
  ModuleTree tree_;
};

}  // namespace

ModuleTree module_tree(const MethodGraph& graph) { return TreeBuilder(graph).run(); }

}  // namespace taper::inspect
