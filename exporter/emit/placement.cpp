#include "taper/exporter/emit/placement.h"

#include <algorithm>
#include <unordered_set>

namespace taper::emit {
namespace {

using ir::Value;

class Placer {
 public:
  Placer(const ir::Graph& graph, const std::map<const ir::Node*, Candidates>& candidates)
      : graph_(graph), candidates_(candidates) {}

  Placement run() {
    number_steps();
    find_lives();
    place_signature();
    place_writes();
    for (const Step& step : result_.steps)
      if (step.kind == Step::Kind::kernel) place_results(*step.node);
    append_copies();
    extend_lives();
    return std::move(result_);
  }

 private:
  struct Life {
    int first = 0, last = 0;
    bool returned =
        false;  // its content must stay until the end: an output, or the source of a write
  };

  void number_steps() {
    for (const ir::Node& node : graph_.nodes()) {
      if (!is_instruction(node)) continue;
      position_[&node] = static_cast<int>(result_.steps.size());
      result_.steps.push_back({Step::Kind::kernel, &node, nullptr, nullptr});
      for (const ir::SymbolBinding& s :
           graph_.symbols())  // a number that this node computed is read at once
        if (s.value != nullptr && s.value->node == &node && reads_memory(s))
          result_.steps.push_back({Step::Kind::bind, nullptr, nullptr, &s});
    }
  }
  static bool reads_memory(const ir::SymbolBinding& s) {
    return s.source == ir::SymbolSource::element || s.source == ir::SymbolSource::kernel_extent;
  }

  /// When the storage of each base is first written and last read, through whatever view.
  void find_lives() {
    for (const auto& step : result_.steps) {
      if (step.kind != Step::Kind::kernel) continue;
      const int at = position_.at(step.node);
      for (const auto& r : step.node->results)
        if (r != nullptr) lives_[r.get()] = {at, at, false};
      ir::for_each_value(*step.node, [&](const Value* v) {
        Life& life = lives_[ir::base_of(v)];
        life.last = std::max(life.last, at);
      });
    }
    for (const ir::SymbolBinding& s : graph_.symbols()) {
      if (s.value == nullptr || s.value->node == nullptr || !reads_memory(s)) continue;
      Life& life = lives_.at(s.value);
      life.last = std::max(life.last,
                           life.first + 1);  // the step that binds stands right behind the producer
    }
    for (const ir::Output& o : graph_.outputs())
      if (o.value != nullptr) lives_[ir::base_of(o.value)].returned = true;
    for (const ir::Write& w : graph_.writes()) lives_[ir::base_of(w.value)].returned = true;
  }

  void place_signature() {
    for (const ir::Input& in : graph_.inputs())
      if (in.value != nullptr) new_buffer(in.value.get(), true);
    for (const ir::State& s : graph_.states())
      result_.places[s.value.get()] = {Place::Kind::state, s.value->index};
    for (const ir::Constant& c : graph_.constants())
      result_.places[c.value.get()] = {Place::Kind::constant, c.value->index};
    for (const ir::Output& o : graph_.outputs())
      if (o.value != nullptr) outputs_.insert(ir::base_of(o.value));
  }

  void new_buffer(const Value* base, bool io) {
    result_.places[base] = {Place::Kind::buffer, static_cast<int>(result_.buffers.size())};
    result_.buffers.push_back({ir::size_in_bytes(base->type), 0, 0, io});
  }

  /// A written value lies in its state from the start if its producer comes after everything that
  /// reads the old elements.
  void place_writes() {
    std::unordered_set<const Value*> placed;
    for (const ir::Write& w : graph_.writes()) {
      const Value* source = ir::base_of(w.value);
      const bool in_place = source->node != nullptr &&
                            w.state->value->type.dtype == source->type.dtype &&
                            proves_equal(source->type.numel(), w.state->value->type.numel()) &&
                            old_value_is_free(w, *source) && placed.insert(source).second;
      if (in_place)
        result_.places[source] = {Place::Kind::state, w.state->value->index},
        ++result_.written_in_place;
      else
        copies_.push_back(&w);
    }
  }

  bool old_value_is_free(const ir::Write& w, const Value& source) const {
    const Value* old = w.state->value.get();
    if (outputs_.contains(old)) return false;
    const int written_at = position_.at(source.node);
    auto life = lives_.find(old);
    if (life == lives_.end() || life->second.last < written_at) return true;
    return life->second.last == written_at && source.index == 0 &&
           may_lie_on(*source.node, old, source);
  }

  /// Whether result 0 of `node` may be written to the storage of `base`, which arguments of the
  /// node read.
  bool may_lie_on(const ir::Node& node, const Value* base, const Value& result) const {
    const uint32_t overwrites = candidates_.at(&node).overwrites();
    bool found = false, allowed = true;
    for (size_t i = 0; i < node.arguments.size(); ++i)
      ir::for_each_value(node.arguments[i], [&](const Value* v) {
        if (ir::base_of(v) != base) return;
        found = true;
        allowed = allowed && i < 32 && (overwrites >> i & 1) != 0 &&
                  ir::same_sizes(v->type, result.type) && ir::is_dense(v->type) &&
                  proves_equal(v->type.offset, 0);
      });
    return found && allowed;
  }

  void place_results(const ir::Node& node) {
    for (const auto& r : node.results) {
      if (r == nullptr || result_.places.contains(r.get())) continue;
      if (r->index == 0 && take_over(node, r.get())) continue;
      new_buffer(r.get(), outputs_.contains(r.get()));
    }
  }

  /// Gives result 0 the buffer of an argument that dies here.
  bool take_over(const ir::Node& node, const Value* result) {
    bool taken = false;
    ir::for_each_value(node, [&](const Value* v) {
      const Value* base = ir::base_of(v);
      const Place place = result_.places.at(base);
      const Life& life = lives_.at(base);
      if (taken || base->node == nullptr || place.kind != Place::Kind::buffer || life.returned ||
          life.last != position_.at(&node))
        return;
      if (!proves_equal(ir::size_in_bytes(base->type), ir::size_in_bytes(result->type)) ||
          !may_lie_on(node, base, *result))
        return;
      result_.places[result] = place;
      result_.buffers[place.index].io |= outputs_.contains(result);
      ++result_.reused;
      taken = true;
    });
    return taken;
  }

  void append_copies() {
    for (const ir::Write* w : copies_)
      result_.steps.push_back({Step::Kind::copy, nullptr, w, nullptr});
  }

  /// A buffer is needed as long as any value in it.
  void extend_lives() {
    const int last_step = static_cast<int>(result_.steps.size());
    std::vector<bool> seen(result_.buffers.size());
    for (const auto& [value, place] : result_.places) {
      if (place.kind != Place::Kind::buffer) continue;
      Buffer& b = result_.buffers[place.index];
      const Life life = lives_[value];
      const int last = life.returned ? last_step : life.last;
      b.first = seen[place.index] ? std::min(b.first, life.first) : life.first;
      b.last = seen[place.index] ? std::max(b.last, last) : last;
      seen[place.index] = true;
    }
    for (Buffer& b : result_.buffers)
      if (b.io) b.first = 0, b.last = last_step;
  }

  const ir::Graph& graph_;
  const std::map<const ir::Node*, Candidates>& candidates_;
  Placement result_;
  std::unordered_map<const ir::Node*, int> position_;
  std::unordered_map<const Value*, Life> lives_;
  std::unordered_set<const Value*> outputs_;  // bases
  std::vector<const ir::Write*> copies_;
};

}  // namespace

Placement place_values(const ir::Graph& graph,
                       const std::map<const ir::Node*, Candidates>& candidates) {
  return Placer(graph, candidates).run();
}

}  // namespace taper::emit
