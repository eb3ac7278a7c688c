#include "taper/exporter/inspect/method_graph.h"

#include <map>
#include <set>
#include <utility>

#include "taper/exporter/inspect/program_text.h"
#include "taper/exporter/inspect/stretches.h"
#include "taper/runtime/program/tables.h"

namespace taper::inspect {
namespace {

using internal::none;

class GraphBuilder {
 public:
  GraphBuilder(const Program& program, index_t method)
      : program_(program),
        text_(program, method),
        view_(text_.table()),
        stretches_(static_cast<uint32_t>(view_.instructions.size())) {}

  MethodGraph run() {
    graph_.name = text_.table().name()->str();
    for (index_t i = 0; i < internal::count_of(text_.table().inputs()); ++i)
      add_input(*text_.table().inputs()->Get(static_cast<uint32_t>(i)));
    for (index_t i = 0; i < view_.instructions.size(); ++i)
      add_instruction(static_cast<uint32_t>(i));
    for (index_t i = 0; i < internal::count_of(text_.table().outputs()); ++i)
      add_output(*text_.table().outputs()->Get(static_cast<uint32_t>(i)));
    for (const auto& [ends, types] : edges_)
      graph_.edges.push_back({ends.first, ends.second, {types.begin(), types.end()}});
    add_control();
    return std::move(graph_);
  }

 private:
  using Place = std::pair<format::Storage, uint32_t>;

  Place place_of(uint32_t value) const {
    return {view_.values[value].storage(), view_.values[value].storage_index()};
  }
  int next_node() const { return static_cast<int>(graph_.nodes.size()); }

  void add_input(const format::Input& in) {
    const std::string type = in.value() != none ? text_.type(in.value()) : type_text(in.type());
    if (in.value() != none) write(in.value(), next_node());
    graph_.nodes.push_back({GraphNode::Kind::input, in.name()->str(), {type}, {}, "", ""});
  }

  void add_output(const format::Output& out) {
    const int node = next_node();
    stretch_ = 0;
    const std::string type =
        out.value() != none ? text_.type(out.value()) : text_.expression(out.expression());
    graph_.nodes.push_back({GraphNode::Kind::output, out.name()->str(), {type}, {}, "", ""});
    if (out.value() != none) read(out.value(), node);
  }

  void add_instruction(uint32_t index) {
    const format::Instruction& in = view_.instructions[index];
    const int node = next_node();
    stretch_ = stretches_.next(in);
    const bool is_delegated = in.kind() == format::InstructionKind::delegate;
    graph_.nodes.push_back(
        {is_delegated ? GraphNode::Kind::delegated : GraphNode::Kind::instruction,
         text_.instruction_name(in),
         {},
         {},
         text_.instruction_source(index),
         text_.instruction_module(index)});

    const int results = result_count(in), arguments = in.arguments_count() - results;
    std::vector<uint32_t> read_values, written_values;
    for (int i = 0; i < in.arguments_count(); ++i)
      collect(view_.arguments[static_cast<index_t>(in.arguments_first()) + i],
              i < arguments ? read_values : written_values);
    if (in.kind() == format::InstructionKind::bind)
      read_values.push_back(view_.symbols[static_cast<index_t>(in.target())].first());

    GraphNode& drawn = graph_.nodes.back();
    for (const uint32_t v : written_values) drawn.types.push_back(text_.type(v));
    for (const uint32_t v : read_values) {
      read(v, node);
      const std::string path = text_.storage_path(view_.values[v]);
      if (!path.empty() && view_.values[v].storage() != format::Storage::buffer)
        drawn.lines.push_back(path + ": " + text_.type(v));
    }
    for (const uint32_t v : written_values) {
      write(v, node);
      if (view_.values[v].storage() == format::Storage::state)
        drawn.lines.push_back("writes " + text_.storage_path(view_.values[v]));
    }
  }

  int result_count(const format::Instruction& in) const {
    if (in.kind() == format::InstructionKind::kernel)
      return program_.kernel(in.target()).result_count;
    return in.kind() == format::InstructionKind::copy ? 1 : in.results();
  }

  // Appends the values of an argument.
  void collect(const format::Argument& a, std::vector<uint32_t>& values) const {
    if (a.kind() != format::ArgumentKind::tensor) return;
    if (a.form() == format::ArgumentForm::literal)
      values.push_back(static_cast<uint32_t>(a.content()));
    if (a.form() == format::ArgumentForm::list)
      for (uint32_t i = 0; i < a.count(); ++i)
        if (const int64_t v = view_.lists[static_cast<index_t>(a.content()) + i]; v >= 0)
          values.push_back(static_cast<uint32_t>(v));
  }

  void read(uint32_t value, int node) {
    for (const Writer& w : writers_[place_of(value)])
      if (stretches_.go_together(w.stretch, stretch_))
        edges_[{w.node, node}].insert(text_.type(value));
  }
  // Earlier writers no longer count, unless a run may skip this one.
  void write(uint32_t value, int node) {
    std::vector<Writer>& writers = writers_[place_of(value)];
    std::erase_if(writers,
                  [&](const Writer& w) { return stretches_.contains(stretch_, w.stretch); });
    writers.push_back({node, stretch_});
  }

  // ---- control flow ----

  /// The instructions between a jump and its target, or inside a loop, by their indices.
  struct Region {
    uint32_t opener, begin, end;
    bool is_loop;
    int around = -1;  ///< the region that contains it
  };

  void add_control() {
    const auto count = static_cast<uint32_t>(view_.instructions.size());
    // node of the first instruction
    const int first = static_cast<int>(internal::count_of(text_.table().inputs()));
    std::map<uint32_t, uint32_t> jumps;  // from the instruction after a `jump` to its target
    std::map<uint32_t, uint32_t> opener_before;  // the instruction that jumps there
    std::vector<int> region_of(count, -1);
    std::vector<Region> regions;
    std::vector<int> around;
    for (uint32_t i = 0; i < count; ++i) {
      while (!around.empty() && regions[static_cast<size_t>(around.back())].end <= i)
        around.pop_back();
      if (const auto other = jumps.find(i); other != jumps.end())
        enter(regions, around, {opener_before.at(i), i, other->second, false});
      region_of[i] = around.empty() ? -1 : around.back();
      const format::Instruction& in = view_.instructions[i];
      using Kind = format::InstructionKind;
      if (in.kind() == Kind::bind) binds_[in.target()] = first + static_cast<int>(i);
      if (in.kind() == Kind::jump_unless || in.kind() == Kind::loop_end)
        add_condition(in.condition(), first + static_cast<int>(i));
      if (in.kind() == Kind::loop_begin) enter(regions, around, {i, i + 1, in.target(), true});
      if (in.kind() == Kind::jump_unless) {
        enter(regions, around, {i, i + 1, in.target(), false});
        opener_before[in.target()] = i;
      }
      if (in.kind() == Kind::jump && opener_before.contains(i + 1)) jumps[i + 1] = in.target();
    }
    connect(regions, region_of, first);
  }
  static void enter(std::vector<Region>& regions, std::vector<int>& around, Region region) {
    constexpr size_t deepest = 100;  // a file may contain any forward jumps
    if (region.end <= region.begin || around.size() >= deepest) return;
    region.around = around.empty() ? -1 : around.back();
    around.push_back(static_cast<int>(regions.size()));
    regions.push_back(region);
  }

  /// Adds lines from a region's opener to those nodes in it that no other node in it leads to. For
  /// a loop, also adds lines to its end from those nodes that lead to no other node in it.
  void connect(const std::vector<Region>& regions, const std::vector<int>& region_of, int first) {
    std::set<int> has_before, has_behind;
    const auto instruction = [&](int node) { return static_cast<uint32_t>(node - first); };
    const auto is_in = [&](int node, const Region& r) {
      return node >= first && instruction(node) >= r.begin && instruction(node) < r.end;
    };
    const auto count = static_cast<int>(region_of.size());
    const auto innermost = [&](int node) -> const Region* {
      if (node < first || node >= first + count || region_of[instruction(node)] < 0) return nullptr;
      return &regions[static_cast<size_t>(region_of[instruction(node)])];
    };
    const auto loop_around = [&](int node) {
      const Region* r = innermost(node);
      while (r != nullptr && !r->is_loop)
        r = r->around < 0 ? nullptr : &regions[static_cast<size_t>(r->around)];
      return r;
    };
    for (const auto& [ends, types] : edges_) {
      if (const Region* r = innermost(ends.second); r != nullptr && is_in(ends.first, *r))
        has_before.insert(ends.second);
      if (const Region* r = loop_around(ends.first); r != nullptr && is_in(ends.second, *r))
        has_behind.insert(ends.first);
    }
    for (const GraphEdge& e : graph_.control) has_before.insert(e.to), has_behind.insert(e.from);
    for (int node = first; node < first + count; ++node) {
      const Region* r = innermost(node);
      if (r == nullptr) continue;
      if (!has_before.contains(node))
        graph_.control.push_back({first + static_cast<int>(r->opener), node, {}});
      if (const Region* loop = loop_around(node); loop != nullptr && !has_behind.contains(node))
        graph_.control.push_back({node, first + static_cast<int>(loop->end), {}});
    }
  }

  /// Adds lines from the nodes that read the numbers of a condition.
  void add_condition(uint32_t condition, int node) {
    std::set<uint32_t> open{condition};  // operands come before the expression that uses them
    while (!open.empty()) {
      const uint32_t index = *open.rbegin();
      open.erase(index);
      const format::Expression& e = view_.expressions[static_cast<index_t>(index)];
      using Op = format::Operation;
      if (e.operation() == Op::symbol)
        if (const auto at = binds_.find(e.a()); at != binds_.end())
          graph_.control.push_back({at->second, node, {}});
      if (e.operation() == Op::symbol || e.operation() == Op::literal) continue;
      const bool unary = e.operation() == Op::negate || e.operation() == Op::absolute ||
                         e.operation() == Op::logical_not ||
                         (e.operation() >= Op::square_root && e.operation() <= Op::to_i64);
      open.insert(e.a());
      if (!unary) open.insert(e.b());
      if (e.operation() == Op::select) open.insert(e.c());
    }
  }

  const Program& program_;
  MethodText text_;
  internal::MethodView view_;
  MethodGraph graph_;
  struct Writer {
    int node, stretch;
  };
  Stretches stretches_;
  int stretch_ = 0;  // the stretch of the instruction
  std::map<Place, std::vector<Writer>> writers_;
  std::map<std::pair<int, int>, std::set<std::string>> edges_;
  std::map<uint32_t, int> binds_;  // the nodes that read symbols
};

}  // namespace

MethodGraph method_graph(const Program& program, index_t method) {
  return GraphBuilder(program, method).run();
}

}  // namespace taper::inspect
