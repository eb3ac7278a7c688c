#include "taper/exporter/emit/placement.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "taper/exporter/emit/flatten.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::emit {
namespace {

using ir::Value;
using StepKind = Step::Kind;

constexpr int never = std::numeric_limits<int>::max();

/// When the storage of a root is used, through any view. Uses are positions of steps; outputs are
/// read after the last step.
struct Uses {
  std::vector<int> reads, writes;
  bool is_number = false;  ///< a step reads a number from it

  int first() const { return writes.empty() ? 0 : std::ranges::min(writes); }
  void add(const Uses& others) {
    reads.insert(reads.end(), others.reads.begin(), others.reads.end());
    writes.insert(writes.end(), others.writes.begin(), others.writes.end());
    is_number |= others.is_number;
  }
};

class Placer {
 public:
  Placer(const ir::Graph& graph, const std::map<const ir::Node*, Candidates>& candidates,
         const std::unordered_set<const ir::Node*>& in_place)
      : graph_(graph),
        candidates_(candidates),
        flat_(flatten(graph, in_place)),
        steps_(flat_.steps) {}

  Placement run() {
    find_uses();
    for (int at = 0; at < end(); ++at)
      if (step(at).kind == StepKind::copy) try_to_drop(at);
    find_lives();
    place_signature();
    for (int at = 0; at < end(); ++at) place_results(at);
    extend_lives();
    place_all();
    keep_steps();
    return std::move(result_);
  }

 private:
  int end() const { return static_cast<int>(steps_.size()); }
  const Step& step(int at) const { return steps_[static_cast<size_t>(at)]; }
  const Value* root_of(const Value* v) const { return flat_.root_of(v); }
  Uses& uses(const Value* v) { return uses_[root_of(v)]; }

  void find_uses() {
    for (int at = 0; at < end(); ++at) {
      const Step& s = step(at);
      if (s.kind == StepKind::kernel) {
        ir::for_each_value(*s.node, [&](const Value* v) { uses(v).reads.push_back(at); });
        for (const auto& r : s.node->results)
          if (r != nullptr) uses(r.get()).writes.push_back(at);
      } else if (s.kind == StepKind::copy) {
        uses(s.from).reads.push_back(at);
        uses(s.to).writes.push_back(at);
      } else if (s.kind == StepKind::bind || s.kind == StepKind::test) {
        uses(s.from).reads.push_back(at);
        uses(s.from).is_number = true;
      }
    }
    for (const ir::Output& o : graph_.outputs())
      if (o.value != nullptr) {
        uses(o.value).reads.push_back(end());
        outputs_.insert(root_of(o.value));
      }
  }

  // ---- copies that are not needed ----

  /// The innermost loop that contains a step; -1: none.
  int loop_around(int at) const { return at < end() ? flat_.loop_of[static_cast<size_t>(at)] : -1; }
  /// The last time that a read happens. A read in a loop of a value that was written before the
  /// loop happens again in the last round.
  int last_time(int read, int written) const {
    int last = read;
    for (int i = loop_around(read); i >= 0;) {
      const Loop& loop = flat_.loops[static_cast<size_t>(i)];
      if (loop.begin < written) break;
      last = loop.end;
      i = loop.around;
    }
    return last;
  }

  /// Drops the copy at step `at` if its source may lie in its destination from the start. This
  /// needs four things:
  ///   - a node of this method makes the source, and the source fills the destination;
  ///   - once the source is written, nobody reads or writes the destination's old elements;
  ///   - after the copy, the source does not change;
  ///   - nobody reads the source after the destination has changed.
  void try_to_drop(int at) {
    const Step& s = step(at);
    const Value *from = root_of(s.from), *to = root_of(s.to);
    if (from == to) return;  // it lies there already: keep_steps drops the copy
    if (from->origin != Value::Origin::result || !fills(*from, *to) || !fills(*s.from, *to)) return;
    const Uses &source = uses(from), &destination = uses(to);
    const bool to_state = to->origin == Value::Origin::state;
    // the runtime reads numbers in states before the first step
    if (to_state && (source.is_number || destination.is_number)) return;
    const int written = source.first();
    if (loop_around(written) != loop_around(at)) return;
    for (const int read : destination.reads)
      if (written <= read && (read <= at || to_state) &&
          !(read == written && may_begin_on(written, from, to)))
        return;
    int changed = never;  // when the destination gets other elements
    for (const int write : destination.writes) {
      if (written <= write && write < at) return;
      if (write > at) changed = std::min(changed, write);
    }
    if (std::ranges::max(source.writes) > at) return;
    for (const int read : source.reads)
      if (read > at && last_time(read, written) > changed) return;

    flat_.aliases[from] = to;
    Uses merged = source;
    uses_.erase(from);
    uses_[to].add(merged);
    if (to_state) ++result_.written_in_place;
  }

  static bool fills(const Value& from, const Value& to) {
    return from.type.dtype == to.type.dtype && proves_equal(from.type.numel(), to.type.numel());
  }

  /// Whether the step that first writes `from` may read `to` at the place where it writes.
  bool may_begin_on(int at, const Value* from, const Value* to) const {
    const Step& s = step(at);
    if (s.kind == StepKind::copy) return root_of(s.from) == to;
    return s.node->result(0) == from && may_lie_on(*s.node, to, *from);
  }

  /// Whether result 0 of `node` may be written to the storage of `root`, which arguments of the
  /// node read.
  bool may_lie_on(const ir::Node& node, const Value* root, const Value& result) const {
    if (ir::is_delegate(node)) return false;
    const uint32_t overwrites = candidates_.at(&node).overwrites();
    bool found = false, allowed = true;
    for (size_t i = 0; i < node.arguments.size(); ++i)
      ir::for_each_value(node.arguments[i], [&](const Value* v) {
        if (root_of(v) != root) return;
        found = true;
        allowed = allowed && i < 32 && (overwrites >> i & 1) != 0 &&
                  v->type.dtype == result.type.dtype && ir::same_sizes(v->type, result.type) &&
                  ir::is_dense(v->type) && proves_equal(v->type.offset, 0);
      });
    return found && allowed;
  }

  // ---- buffers ----

  struct Life {
    int first, last;
  };
  void find_lives() {
    for (const auto& [root, u] : uses_) {
      const int first = u.first();
      int last = first;
      for (const std::vector<int>* list : {&u.reads, &u.writes})
        for (const int use : *list) last = std::max(last, last_time(use, first));
      lives_[root] = {first, last};
    }
  }

  void place_signature() {
    for (const ir::Input& in : graph_.inputs())
      if (in.value != nullptr) new_buffer(in.value.get(), true);
    for (const ir::State& s : graph_.states())
      result_.places[s.value.get()] = {Place::Kind::state, s.value->index};
    ir::for_each_own_graph(graph_, [&](const ir::Graph& g) {
      for (const ir::Constant& c : g.constants()) {
        result_.places[c.value.get()] = {Place::Kind::constant,
                                         static_cast<int>(result_.constants.size())};
        result_.constants.push_back(&c);
      }
    });
  }

  void new_buffer(const Value* root, bool io) {
    result_.places[root] = {Place::Kind::buffer, static_cast<int>(result_.buffers.size())};
    result_.buffers.push_back({ir::size_in_bytes(root->type), never, 0, io});
  }

  void place_results(int at) {
    const Step& s = step(at);
    if (s.kind == StepKind::copy) return place_result(s.to, nullptr, at);
    if (s.kind != StepKind::kernel) return;
    for (const auto& r : s.node->results)
      if (r != nullptr) place_result(r.get(), s.node, at);
  }
  void place_result(const Value* result, const ir::Node* node, int at) {
    const Value* root = root_of(result);
    if (result_.places.contains(root)) return;
    if (node != nullptr && root == result && result->index == 0 && take_over(*node, result, at))
      return;
    new_buffer(root, outputs_.contains(root));
  }

  /// Gives result 0 the buffer of an argument that is last used here.
  bool take_over(const ir::Node& node, const Value* result, int at) {
    bool taken = false;
    ir::for_each_value(node, [&](const Value* v) {
      const Value* root = root_of(v);
      const Place place = result_.places.at(root);
      if (taken || root->origin != Value::Origin::result || place.kind != Place::Kind::buffer ||
          lives_.at(root).last != at)
        return;
      if (!proves_equal(ir::size_in_bytes(root->type), ir::size_in_bytes(result->type)) ||
          !may_lie_on(node, root, *result))
        return;
      result_.places[result] = place;
      result_.buffers[static_cast<size_t>(place.index)].io |= outputs_.contains(result);
      ++result_.reused;
      taken = true;
    });
    return taken;
  }

  /// A buffer is needed as long as one of the values in it is.
  void extend_lives() {
    for (const auto& [root, place] : result_.places) {
      if (place.kind != Place::Kind::buffer) continue;
      const auto life = lives_.find(root);
      if (life == lives_.end()) continue;  // an input that nobody reads
      Buffer& b = result_.buffers[static_cast<size_t>(place.index)];
      b.first = std::min(b.first, life->second.first);
      b.last = std::max(b.last, life->second.last);
    }
    for (Buffer& b : result_.buffers)
      if (b.io) b.first = 0, b.last = end();
  }

  /// A value that lies on another value gets the place of that value.
  void place_all() {
    for (const auto& [base, other] : flat_.aliases)
      if (const auto at = result_.places.find(root_of(other)); at != result_.places.end())
        result_.places[base] = at->second;
  }

  // ---- steps ----

  bool is_needed(int at) const {
    const Step& s = step(at);
    return s.kind != StepKind::copy || root_of(s.from) != root_of(s.to);
  }

  /// Leaves out copies of a value to itself, and jumps that skip no step.
  void keep_steps() {
    std::vector<bool> kept(steps_.size());
    for (int at = end() - 1; at >= 0; --at) {
      const Step& s = step(at);
      bool needed = is_needed(at);
      if (s.kind == StepKind::jump) {
        const auto begin = kept.begin() + at + 1, last = kept.begin() + s.target;
        needed = std::find(begin, last, true) != last;
      }
      kept[static_cast<size_t>(at)] = needed;
    }
    std::vector<int> position;  // positions in the final sequence
    int next = 0;
    for (const bool k : kept) position.push_back(next), next += k ? 1 : 0;
    position.push_back(next);
    for (int at = 0; at < end(); ++at) {
      if (!kept[static_cast<size_t>(at)]) continue;
      Step s = step(at);
      s.target = position[static_cast<size_t>(s.target)];
      result_.steps.push_back(s);
    }
  }

  const ir::Graph& graph_;
  const std::map<const ir::Node*, Candidates>& candidates_;
  Flattened flat_;
  const std::vector<Step>& steps_;
  Placement result_;
  std::unordered_map<const Value*, Uses> uses_;   // of roots
  std::unordered_map<const Value*, Life> lives_;  // of roots
  std::unordered_set<const Value*> outputs_;      // roots
};

}  // namespace

Placement place_values(const ir::Graph& graph,
                       const std::map<const ir::Node*, Candidates>& candidates,
                       const std::unordered_set<const ir::Node*>& in_place) {
  return Placer(graph, candidates, in_place).run();
}

bool is_late(const Placement& placement, const ir::Graph& graph, const ir::Value* value) {
  const Place place = placement.place_of(value);
  return place.kind == Place::Kind::buffer &&
         std::ranges::none_of(graph.inputs(), [&](const ir::Input& in) {
           return in.value != nullptr && placement.place_of(in.value.get()).index == place.index;
         });
}

}  // namespace taper::emit
