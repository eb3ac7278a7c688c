#include "taper/exporter/emit/method_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "taper/exporter/emit/expressions.h"
#include "taper/exporter/emit/known_bounds.h"
#include "taper/exporter/emit/legalize.h"
#include "taper/exporter/emit/write_into_place.h"
#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/partition/delegate.h"

namespace taper::emit {
namespace {

std::vector<Check> checks_of(const ir::Graph& graph) {
  std::vector<Check> all;
  ir::for_each_own_graph(graph, [&](const ir::Graph& g) {
    all.insert(all.end(), g.checks().begin(), g.checks().end());
  });
  return all;
}

/// The maxima of the symbols. Checks that come with symbols can lower them: a number that is read
/// from a tensor and then indexes four rows is at most 3 in a run that continues.
std::map<const Symbol*, int64_t> maxima_of(const ir::Graph& graph) {
  std::map<const Symbol*, int64_t> maxima;
  ir::for_each_own_graph(graph, [&](const ir::Graph& g) {
    const KnownBounds known(g.checks());
    for (const ir::SymbolBinding& s : g.symbols())
      maxima.emplace(s.symbol.as_symbol(),
                     std::max(known.upper_of_symbol(s.symbol), s.symbol.lower()));
  });
  return maxima;
}

using format::ArgumentForm;
using format::ArgumentKind;
using ir::Value;

int64_t bits_of(double real) {
  int64_t bits;
  std::memcpy(&bits, &real, sizeof bits);
  return bits;
}

ArgumentKind kind_of(Kind kind) { return static_cast<ArgumentKind>(kind); }

format::Argument literal(ArgumentKind kind, int64_t content) {
  return {content, 1, kind, ArgumentForm::literal};
}
format::Argument absent() { return {0, 0, ArgumentKind::none, ArgumentForm::absent}; }

class MethodWriter {
 public:
  MethodWriter(const ir::Graph& graph, const std::map<const ir::Node*, Candidates>& candidates,
               const std::unordered_set<const ir::Node*>& in_place, ProgramTables& program,
               MethodReport& report)
      : graph_(graph),
        program_(program),
        report_(report),
        placement_(place_values(graph, candidates, in_place)),
        symbols_(symbols_of(graph)),
        maxima_(maxima_of(graph)),
        known_(checks_of(graph)),
        expressions_(symbols_) {}

  MethodTables run() {
    for (const ir::Constant* c : placement_.constants)
      constant_index_.push_back(program_.constant(c->path, c->payload));
    for (const ir::State& s : graph_.states()) {
      const bool is_slot = program_.is_slot(s.path);
      states_.push_back({is_slot ? format::Storage::constant : format::Storage::state,
                         is_slot ? program_.slot(s) : program_.state(s)});
    }
    write_buffers();
    write_signature();
    for (const Step& step : placement_.steps) write_step(step);
    ir::for_each_own_graph(graph_, [&](const ir::Graph& g) {
      for (const Check& c : g.checks()) {
        require_possible(c);
        t_.checks.push_back({expressions_.add(c), c.message});
      }
    });
    t_.expressions = expressions_.list();
    return std::move(t_);
  }

 private:
  /// The symbols of the graph and of its bodies.
  static std::vector<ir::SymbolBinding> symbols_of(const ir::Graph& graph) {
    std::vector<ir::SymbolBinding> all;
    ir::for_each_own_graph(graph, [&](const ir::Graph& g) {
      all.insert(all.end(), g.symbols().begin(), g.symbols().end());
    });
    return all;
  }

  // ---- memory ----

  /// The size of a buffer, as the device can compute it when it places buffers.
  /// Symbols that instructions bind are not known then, so their maximum counts.
  /// The memory of a method is measured with every symbol at its maximum. A size that is largest
  /// elsewhere, such as 16 - n, counts as its largest value. A size that checks limit counts as at
  /// most this limit.
  /// The caller may ask for an input before any size is given. So inputs and outputs (`io`) have
  /// room for all symbols at their maximum.
  Dim size_before_execution(Dim size, bool io) const {
    const std::vector<const Symbol*> used = size.symbols();
    Dim::Substitution late;
    for (const ir::SymbolBinding& s : symbols_) {
      const Symbol* symbol = s.symbol.as_symbol();
      if (std::ranges::find(used, symbol) == used.end()) continue;
      require_maximum(s);
      const bool is_narrowed = maxima_.at(symbol) < symbol->maximum;
      if (is_narrowed || (s.value != nullptr && is_late(placement_, graph_, s.value)))
        late[symbol] = maxima_.at(symbol);
    }
    const Dim planned = late.empty() ? size : size.substitute(late);
    const int64_t most = io ? size.upper() : known_.upper(size);
    if (most == std::numeric_limits<int64_t>::max()) return planned;
    Dim::Bindings maximum;
    for (const Symbol* symbol : used) maximum[symbol] = symbol->maximum;
    const bool grows = planned.evaluate(maximum) >= most && proves_at_least(planned, size);
    return grows ? min(planned, Dim(most)) : Dim(most);
  }

  void require_maximum(const ir::SymbolBinding& binding) const {
    const Symbol& symbol = *binding.symbol.as_symbol();
    if (maxima_.at(&symbol) < std::numeric_limits<int64_t>::max()) return;
    std::string reader;
    if (const ir::Node* node = binding.value != nullptr ? binding.value->node : nullptr) {
      reader = ", which " + std::string(name_of(*node->op)) + " gives";
      if (node->location.known()) reader += " (" + node->location.to_string() + ")";
      if (!node->module.empty()) reader += " in " + node->module;
    }
    const bool is_input =
        binding.value != nullptr && binding.value->origin == ir::Value::Origin::input;
    if (is_input) reader = ", the number in input " + binding.value->name;
    throw ExportError(graph_.name() + ": the symbol " + symbol.name + reader +
                      (reader.empty() ? "" : ",") +
                      " has no maximum, so no memory can be planned for it; give one: for a .pt2 "
                      "--dim " +
                      symbol.name + "=1..256" + (is_input ? ", or what the file calls it" : "") +
                      "; else Dim::symbol(\"" + symbol.name + "\", 1, 256)");
  }

  /// The device prepares a program with every symbol at its maximum. A size that depends on data
  /// and must equal sizes that do not must be able to do so there. Sizes that all depend on data
  /// need not: the device prepares what reads them when it knows them.
  void require_possible(const Check& check) const {
    if (check.comparison != Comparison::equal) return;
    Dim::Substitution most;
    const Symbol* late = nullptr;
    size_t on_data = 0;
    for (const ir::SymbolBinding& s : symbols_) {
      const Symbol* symbol = s.symbol.as_symbol();
      most[symbol] = symbol->maximum;
      if (s.source != ir::SymbolSource::element) continue;
      for (const Dim side : {check.left, check.right}) {
        if (same(side, s.symbol)) late = symbol;
        const std::vector<const Symbol*> used = side.symbols();
        if (std::ranges::find(used, symbol) != used.end()) ++on_data;
      }
    }
    if (on_data > 1) return;
    if (late == nullptr ||
        !proves_different(check.left.substitute(most), check.right.substitute(most)))
      return;
    throw ExportError(graph_.name() + ": " + check.left.to_string() + " must equal " +
                      check.right.to_string() + " (" + check.message + "), and " + late->name +
                      " depends on data: memory is planned for its maximum, " +
                      std::to_string(late->maximum) +
                      "; choose with where(), or leave that part outside");
  }

  void write_buffers() {
    buffer_index_.resize(placement_.buffers.size());
    report_.io_bytes = write_region(true).peak_bytes;
    const MemoryPlan plan = write_region(false);
    report_.activation_bytes = plan.peak_bytes;
    report_.lower_bound_bytes = t_.lower_bound_bytes = plan.lower_bound_bytes;
  }

  MemoryPlan write_region(bool io) {
    std::vector<PlannedBuffer> buffers;
    std::vector<int> members;
    for (size_t i = 0; i < placement_.buffers.size(); ++i) {
      const Buffer& b = placement_.buffers[i];
      if (b.io != io) continue;
      buffers.push_back({size_before_execution(b.size_bytes, io), b.first, b.last});
      members.push_back(static_cast<int>(i));
    }
    MemoryPlan plan = plan_memory(buffers);
    for (int i : plan.order) {
      buffer_index_[members[i]] = static_cast<uint32_t>(t_.buffers.size());
      const uint32_t first = static_cast<uint32_t>(t_.above.size());
      for (int below : plan.above[i]) t_.above.push_back(buffer_index_[members[below]]);
      t_.buffers.emplace_back(expressions_.add(buffers[i].size_bytes), first,
                              static_cast<uint32_t>(t_.above.size() - first),
                              io ? format::Region::io : format::Region::activations, 0);
    }
    return plan;
  }

  // ---- values ----

  uint32_t shape_of(const ir::Type& type) {
    std::vector<uint32_t> dims;
    for (int i = 0; i < type.rank; ++i) dims.push_back(expressions_.add(type.sizes[i]));
    for (int i = 0; i < type.rank; ++i) dims.push_back(expressions_.add(type.strides[i]));
    const auto [at, is_new] =
        shape_index_.try_emplace(dims, static_cast<uint32_t>(t_.shapes.size()));
    if (is_new) {
      t_.shapes.emplace_back(static_cast<uint32_t>(t_.dims.size()),
                             static_cast<uint8_t>(type.rank));
      t_.dims.insert(t_.dims.end(), dims.begin(), dims.end());
    }
    return at->second;
  }

  uint32_t value_of(const Value* value) { return value_of(value, placement_.place_of(value)); }

  uint32_t value_of(const Value* value, Place place) {
    const auto [at, is_new] =
        value_index_.try_emplace(value, static_cast<uint32_t>(t_.values.size()));
    if (!is_new) return at->second;
    const Stored stored = place.kind == Place::Kind::state ? states_[place.index]
                          : place.kind == Place::Kind::buffer
                              ? Stored{format::Storage::buffer, buffer_index_[place.index]}
                              : Stored{format::Storage::constant, constant_index_[place.index]};
    const uint32_t offset = expressions_.add(value->type.offset), shape = shape_of(value->type);
    t_.values.emplace_back(stored.index, offset, shape, none, stored.storage,
                           static_cast<format::DType>(value->type.dtype));
    t_.debug_value_names.push_back(program_.debug_text(value->name));
    return at->second;
  }

  // ---- inputs, outputs, symbols ----

  void write_signature() {
    for (const ir::Input& in : graph_.inputs()) {
      if (in.value != nullptr)
        t_.inputs.push_back({in.name, value_of(in.value.get()), none});
      else
        t_.inputs.push_back({in.name, none, expressions_.symbol_index(in.number.as_symbol())});
    }
    for (const ir::Output& o : graph_.outputs()) {
      if (o.value != nullptr)
        t_.outputs.push_back({o.name, value_of(o.value), none});
      else
        t_.outputs.push_back({o.name, none, expressions_.add(o.number)});
    }
    for (const ir::SymbolBinding& s : symbols_) {
      const Symbol* symbol = s.symbol.as_symbol();
      const uint32_t first =
          s.value != nullptr ? value_of(s.value) : static_cast<uint32_t>(s.first);
      t_.symbols.emplace_back(symbol->minimum, maxima_.at(symbol), first,
                              static_cast<uint32_t>(s.second),
                              static_cast<format::SymbolSource>(s.source), format::NumberType::i64);
      t_.symbol_names.push_back(symbol->name);
    }
  }

  // ---- instructions ----

  void write_step(const Step& step) {
    using Kind = format::InstructionKind;
    const size_t first = t_.arguments.size();
    const auto instruction = [&](Kind kind, uint32_t target, uint32_t condition = none) {
      const size_t results = kind == Kind::delegate ? step.node->results.size() : 0;
      t_.instructions.emplace_back(target, static_cast<uint32_t>(first),
                                   static_cast<uint16_t>(t_.arguments.size() - first),
                                   static_cast<uint16_t>(results), condition, 0, kind);
    };
    const auto target = static_cast<uint32_t>(step.target);
    std::string name;  // of the value that the instruction writes or reads
    switch (step.kind) {
      case Step::Kind::kernel:
        name = step.node->results.empty() || step.node->results[0] == nullptr
                   ? ""
                   : step.node->results[0]->name;
        if (ir::is_delegate(*step.node)) {
          uint32_t constants = 0;
          const uint32_t delegate = write_delegate(*step.node, constants);
          instruction(Kind::delegate, delegate, constants);
          break;
        }
        write_arguments(*step.node);
        instruction(Kind::kernel, program_.kernel(target::signature_of(*step.node)));
        break;
      case Step::Kind::copy:
        t_.arguments.push_back(literal(ArgumentKind::tensor, value_of(step.from)));
        t_.arguments.push_back(literal(ArgumentKind::tensor, value_of(step.to)));
        instruction(Kind::copy, 0);
        name = step.to->name;
        break;
      case Step::Kind::bind:
        instruction(Kind::bind, expressions_.symbol_index(step.symbol->symbol.as_symbol()));
        name = step.symbol->symbol.to_string();
        break;
      case Step::Kind::test:
        instruction(Kind::bind, condition_of(step.from).symbol);
        name = step.from->name;
        break;
      case Step::Kind::jump:
        instruction(Kind::jump, target);
        break;
      case Step::Kind::jump_unless:
        instruction(Kind::jump_unless, target, condition_of(step.from).expression);
        name = step.from->name;
        break;
      case Step::Kind::loop_begin:
        instruction(Kind::loop_begin, target);
        break;
      case Step::Kind::loop_end:
        instruction(Kind::loop_end, target, condition_of(step.from).expression);
        name = step.from->name;
        break;
    }
    const bool known = step.node != nullptr && step.node->location.known();
    t_.debug_instructions.emplace_back(
        program_.debug_text(known ? step.node->location.to_string() : ""),
        program_.debug_text(step.node != nullptr ? step.node->module : ""),
        program_.debug_text(name));
  }

  /// The boolean in a tensor: a symbol of the method, and an expression that is this symbol.
  struct Condition {
    uint32_t symbol, expression;
  };
  Condition condition_of(const Value* predicate) {
    const auto [at, is_new] = conditions_.try_emplace(predicate);
    if (is_new) {
      const auto symbol = static_cast<uint32_t>(t_.symbols.size());
      t_.symbols.emplace_back(0, 1, value_of(predicate), 0, format::SymbolSource::element,
                              format::NumberType::boolean);
      t_.symbol_names.push_back(predicate->name);
      at->second = {symbol, expressions_.add_boolean_symbol(symbol)};
    }
    return at->second;
  }

  /// Compiles the body of a delegate. Its arguments are the operands, the constants that the
  /// backend asks for (`constants` of them), and the results.
  /// The node, or the last one of a group (partition/partition.h).
  static const ir::Node& computing(const ir::Node& node) {
    return ir::is_delegate(node) ? *node.bodies[0]->outputs()[0].value->node : node;
  }
  uint32_t write_delegate(const ir::Node& node, uint32_t& constants) {
    const std::string& backend = std::get<std::string>(node.arguments[0]);
    const partition::Delegate& delegate = partition::find_delegate(backend);
    const ir::Graph& body = *node.bodies[0];
    partition::Compiled compiled = delegate.compile(body);
    report_.border_transposes += compiled.border_transposes;
    constants = static_cast<uint32_t>(compiled.constants.size());
    for (const Value* v : ir::operands_of(node))
      t_.arguments.push_back(literal(ArgumentKind::tensor, value_of(v)));
    for (const partition::Compiled::Constant& c : compiled.constants)
      t_.arguments.push_back(literal(ArgumentKind::tensor, value_of(c)));
    for (const auto& r : node.results)
      t_.arguments.push_back(literal(ArgumentKind::tensor, value_of(r.get())));
    std::vector<std::string> nodes;
    for (const ir::Node& n : body.nodes()) nodes.emplace_back(name_of(*computing(n).op));
    return program_.delegate(
        {backend, delegate.version(), std::move(compiled.blob), std::move(nodes)});
  }

  /// A value that shows a whole constant.
  uint32_t value_of(const partition::Compiled::Constant& c) {
    const uint32_t constant = program_.constant(c.path, c.payload);
    program_.keep_dense(constant);
    const std::vector<Dim> sizes(c.payload->sizes.begin(), c.payload->sizes.end());
    const uint32_t shape = shape_of(ir::dense_type(c.payload->dtype, sizes)),
                   offset = expressions_.add(Dim(0));
    t_.values.emplace_back(constant, offset, shape, none, format::Storage::constant,
                           static_cast<format::DType>(c.payload->dtype));
    t_.debug_value_names.push_back(program_.debug_text(c.path));
    return static_cast<uint32_t>(t_.values.size() - 1);
  }

  void write_arguments(const ir::Node& node) {
    const Schema schema = parse_schema(node.op->text);
    size_t position = 0;
    for (int i = 0; i < schema.parameter_count; ++i)
      if (reaches_kernel(schema.parameters[i]))
        t_.arguments.push_back(argument_of(schema.parameters[i], node.arguments[position++]));
    for (const auto& r : node.results)
      t_.arguments.push_back(r == nullptr ? absent()
                                          : literal(ArgumentKind::tensor, value_of(r.get())));
  }

  format::Argument argument_of(const Parameter& parameter, const ir::Argument& argument) {
    // bool[] is stored as integers
    const ArgumentKind kind = parameter.kind == Kind::scalar || parameter.list
                                  ? ArgumentKind::integer
                                  : kind_of(parameter.kind);
    return std::visit(
        [&](const auto& a) -> format::Argument {
          using T = std::decay_t<decltype(a)>;
          if constexpr (std::is_same_v<T, std::monostate>)
            return absent();
          else if constexpr (std::is_same_v<T, Value*>)
            return literal(ArgumentKind::tensor, value_of(a));
          else if constexpr (std::is_same_v<T, Dim>)
            return number(kind, a);
          else if constexpr (std::is_same_v<T, double>)
            return literal(ArgumentKind::real, bits_of(a));
          else if constexpr (std::is_same_v<T, bool>)
            return literal(ArgumentKind::boolean, a);
          else if constexpr (std::is_same_v<T, Scalar>)
            return scalar(a);
          else if constexpr (std::is_same_v<T, std::string>)
            return literal(ArgumentKind::string, program_.string(a));
          else if constexpr (std::is_same_v<T, DType>)
            return literal(ArgumentKind::dtype, static_cast<int64_t>(a));
          else
            return list(a);
        },
        argument);
  }

  format::Argument number(ArgumentKind kind, Dim d) {
    if (d.is_constant()) return literal(kind, d.value());
    return {static_cast<int64_t>(expressions_.add(d)), 1, kind, ArgumentForm::expression};
  }
  static format::Argument scalar(Scalar s) {
    if (s.is_real) return literal(ArgumentKind::real, bits_of(s.real));
    return literal(s.is_bool ? ArgumentKind::boolean : ArgumentKind::integer, s.integer);
  }

  format::Argument list(const std::vector<Value*>& values) {
    std::vector<int64_t> content;
    for (const Value* v : values)
      content.push_back(v == nullptr ? -1 : static_cast<int64_t>(value_of(v)));
    return append(content, ArgumentKind::tensor, ArgumentForm::list);
  }
  format::Argument list(const std::vector<double>& reals) {
    std::vector<int64_t> content;
    for (double r : reals) content.push_back(bits_of(r));
    return append(content, ArgumentKind::real, ArgumentForm::list);
  }
  format::Argument list(const std::vector<Dim>& dims) {
    const bool literal = std::ranges::all_of(dims, &Dim::is_constant);
    std::vector<int64_t> content;
    for (Dim d : dims)
      content.push_back(literal ? d.value() : static_cast<int64_t>(expressions_.add(d)));
    return append(content, ArgumentKind::integer,
                  literal ? ArgumentForm::list : ArgumentForm::expression_list);
  }
  format::Argument append(const std::vector<int64_t>& content, ArgumentKind kind,
                          ArgumentForm form) {
    const size_t first = t_.lists.size();
    t_.lists.insert(t_.lists.end(), content.begin(), content.end());
    return {static_cast<int64_t>(first), static_cast<uint32_t>(content.size()), kind, form};
  }

 public:
  const Placement& placement() const { return placement_; }

 private:
  const ir::Graph& graph_;
  ProgramTables& program_;
  MethodReport& report_;
  Placement placement_;
  const std::vector<ir::SymbolBinding> symbols_;
  const std::map<const Symbol*, int64_t> maxima_;  ///< of all symbols
  const KnownBounds known_;
  ExpressionTable expressions_;
  MethodTables t_;
  struct Stored {
    format::Storage storage;
    uint32_t index;
  };
  std::vector<uint32_t> buffer_index_, constant_index_;
  std::vector<Stored> states_;  // slots are constants
  std::map<std::vector<uint32_t>, uint32_t> shape_index_;
  std::unordered_map<const Value*, uint32_t> value_index_;
  std::unordered_map<const Value*, Condition> conditions_;
};

/// What a program has after its graph. `in_place`: nodes that became no instruction.
void describe_graph(const ir::Graph& graph, const std::unordered_set<const ir::Node*>& in_place,
                    MethodReport& report) {
  const std::map<const Symbol*, int64_t> maxima = maxima_of(graph);
  for (const ir::Input& in : graph.inputs())
    report.inputs.push_back(in.name + ": " +
                            (in.value != nullptr ? ir::to_string(in.value->type) : "int"));
  for (const ir::Output& o : graph.outputs())
    report.outputs.push_back(o.name + ": " +
                             (o.value != nullptr ? ir::to_string(o.value->type) : "int"));
  ir::for_each_own_graph(graph, [&](const ir::Graph& g) {
    for (const ir::SymbolBinding& s : g.symbols())
      report.symbols.push_back(
          {s.symbol.to_string(), s.symbol.lower(), maxima.at(s.symbol.as_symbol())});
    constexpr const char* signs[] = {" == ", " != ", " < ", " <= "};
    for (const Check& c : g.checks())
      report.checks.push_back(c.left.to_string() + signs[static_cast<int>(c.comparison)] +
                              c.right.to_string() + ": " + c.message);
    for (const ir::Node& node : g.nodes()) {
      if (in_place.contains(&node)) continue;
      if (node.op->category != Category::view)
        ++report.operators[std::string(name_of(*node.op))];
      else
        ++report.views;
    }
  });
}

}  // namespace

MethodTables write_method(const std::string& name, ir::Graph& graph,
                          const target::KernelTable& kernels, ProgramTables& program,
                          MethodReport& report) {
  report.name = name;
  const auto in_place = write_into_place(graph, kernels);
  report.concatenations_in_place = static_cast<int>(in_place.size());
  report.clones = legalize(graph, kernels);
  const auto candidates = target::find_all_candidates(graph, kernels);
  describe_graph(graph, in_place, report);
  MethodWriter writer(graph, candidates, in_place, program, report);
  const Placement& placement = writer.placement();
  report.instructions = static_cast<int>(placement.steps.size());
  report.reused_buffers = placement.reused;
  report.states_in_place = placement.written_in_place;
  report.states_copied = static_cast<int>(graph.writes().size()) - placement.written_in_place;
  MethodTables tables = writer.run();
  tables.name = name;
  return tables;
}

}  // namespace taper::emit
