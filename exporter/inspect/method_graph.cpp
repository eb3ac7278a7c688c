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
    return std::move(graph_);
  }

 private:
  using Place = std::pair<format::Storage, uint32_t>;

  Place place_of(uint32_t value) const {
    return {view_.values[value].storage(), view_.values[value].storage_index()};
  }
  int next_node() const { return static_cast<int>(graph_.nodes.size()); }

  void add_input(const format::Input& in) {
    const std::string type =
        in.value() != none ? text_.type(in.value()) : format::EnumNameNumberType(in.type());
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
    graph_.nodes.push_back({GraphNode::Kind::instruction,
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

  // The values of an argument, each once.
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
  // Whoever wrote before is forgotten unless a run may jump over this one.
  void write(uint32_t value, int node) {
    std::vector<Writer>& writers = writers_[place_of(value)];
    std::erase_if(writers,
                  [&](const Writer& w) { return stretches_.contains(stretch_, w.stretch); });
    writers.push_back({node, stretch_});
  }

  const Program& program_;
  MethodText text_;
  internal::MethodView view_;
  MethodGraph graph_;
  struct Writer {
    int node, stretch;
  };
  Stretches stretches_;
  int stretch_ = 0;  // in which the instruction is
  std::map<Place, std::vector<Writer>> writers_;
  std::map<std::pair<int, int>, std::set<std::string>> edges_;
};

}  // namespace

MethodGraph method_graph(const Program& program, index_t method) {
  return GraphBuilder(program, method).run();
}

}  // namespace taper::inspect
