#include "taper/exporter/ir/verifier.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::ir {
namespace {

bool fits(const Parameter& p, const Argument& argument) {
  if (std::holds_alternative<std::monostate>(argument)) return p.optional;
  if (p.list) {
    if (p.kind == Kind::tensor) return std::holds_alternative<std::vector<Value*>>(argument);
    if (p.kind == Kind::real) return std::holds_alternative<std::vector<double>>(argument);
    return std::holds_alternative<std::vector<Dim>>(argument);
  }
  switch (p.kind) {
    case Kind::tensor:
      return std::holds_alternative<Value*>(argument) && std::get<Value*>(argument) != nullptr;
    case Kind::integer:
      return std::holds_alternative<Dim>(argument);
    case Kind::real:
      return std::holds_alternative<double>(argument);
    case Kind::boolean:
      return std::holds_alternative<bool>(argument);
    case Kind::scalar:
      return std::holds_alternative<Scalar>(argument) || std::holds_alternative<Dim>(argument);
    case Kind::string:
      return std::holds_alternative<std::string>(argument);
    case Kind::dtype:
      return std::holds_alternative<DType>(argument);
    default:
      return false;
  }
}

/// Sizes that a check makes equal at run time count as equal here. Nobody follows the stride of a
/// dimension with one element.
bool agree(const Type& a, const Type& b, bool layout) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (proves_different(a.sizes[i], b.sizes[i]) ||
        (layout && a.sizes[i].upper() > 1 && proves_different(a.strides[i], b.strides[i])))
      return false;
  return !layout || !proves_different(a.offset, b.offset);
}

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view after) : graph_(graph), after_(after) {}
  /// Of a body.
  Verifier(const Graph& graph, const Verifier& outside)
      : graph_(graph),
        after_(outside.after_),
        symbol_names_(outside.symbol_names_),
        symbols_(outside.symbols_) {}

  void run() {
    for (const SymbolBinding& s : graph_.symbols()) bind(s);
    for (const Input& in : graph_.inputs()) {
      if (in.value != nullptr)
        define(in.value.get(), "input " + in.name);
      else
        require(in.number.as_symbol() != nullptr,
                "input " + in.name + " is a number without a symbol");
    }
    for (const State& s : graph_.states()) {
      define(s.value.get(), "state " + s.path);
      require(is_dense(s.value->type), "state " + s.path + " is not dense");
      for (int i = 0; i < s.value->type.rank; ++i)
        require(s.value->type.sizes[i].is_constant(), "state " + s.path + " has a symbolic size");
      require(s.initial == nullptr || fits_payload(s.value->type, *s.initial),
              "state " + s.path + " differs from its first value");
    }
    for (const Constant& c : graph_.constants()) {
      define(c.value.get(), "constant " + c.path);
      require(fits_payload(c.value->type, *c.payload),
              "constant " + c.value->name + " differs from its elements");
    }
    for (const Node& n : graph_.nodes()) node(n);
    for (const Output& o : graph_.outputs()) {
      if (o.value != nullptr)
        require(defined_.contains(o.value), "output " + o.name + " is no value of the graph");
      else
        known(o.number, "output " + o.name);
    }
    for (const Write& w : graph_.writes()) {
      require(defined_.contains(w.value),
              "the write to " + w.state->path + " has no value of the graph");
      require(agree(w.value->type, w.state->value->type, false),
              "the write to " + w.state->path + " gives " + to_string(w.value->type) + " to " +
                  to_string(w.state->value->type));
    }
    for (const auto& [value, nodes] : users_) {
      std::vector<Node*> listed = value->users;
      std::vector<Node*> found = nodes;
      std::ranges::sort(listed);
      std::ranges::sort(found);
      require(listed == found, "%" + value->name + " does not know its users");
    }
    for (const Value* v : defined_)
      require(v->users.empty() || users_.contains(v),
              "%" + v->name + " lists users that do not use it");
  }

 private:
  void require(bool holds, const std::string& text) const {
    if (holds) return;
    throw ExportError("graph " + graph_.name() +
                      (after_.empty() ? "" : " after " + std::string(after_)) + ": " + text);
  }
  static bool fits_payload(const Type& type, const Payload& payload) {
    if (type.dtype != payload.dtype || type.rank != static_cast<int>(payload.sizes.size()))
      return false;
    for (int i = 0; i < type.rank; ++i)
      if (!same(type.sizes[i], payload.sizes[i])) return false;
    return true;
  }

  void bind(const SymbolBinding& s) {
    const Symbol* symbol = s.symbol.as_symbol();
    require(symbol != nullptr, s.symbol.to_string() + " is bound and no symbol");
    require(symbols_.insert(symbol).second, "the symbol " + symbol->name + " has two sources");
    require(symbol_names_.insert(symbol->name).second, "two symbols are called " + symbol->name);
  }
  void known(Dim d, const std::string& where) const {
    for (const Symbol* s : d.symbols())
      require(symbols_.contains(s), where + ": the symbol " + s->name + " has no source");
  }
  void known(const Type& t, const std::string& where) const {
    for (int i = 0; i < t.rank; ++i) known(t.sizes[i], where), known(t.strides[i], where);
    known(t.offset, where);
  }
  void define(const Value* v, const std::string& where) {
    require(names_.insert(v->name).second, "two values have the name %" + v->name);
    known(v->type, where);
    defined_.insert(v);
  }

  void node(const Node& n) {
    const std::string where = describe(n);
    const eager::OperatorInfo& info = info_of(*n.op);
    require(static_cast<int>(n.arguments.size()) == info.argument_count,
            where + ": the row has " + std::to_string(info.argument_count) +
                " arguments, the node " + std::to_string(n.arguments.size()));
    require(is_control(n) || static_cast<int>(n.results.size()) == info.schema.result_count,
            where + ": the number of results differs from the row's");
    for (size_t i = 0; i < n.arguments.size(); ++i) {
      require(fits(info.arguments[i], n.arguments[i]),
              where + ": argument " + std::string(info.arguments[i].name) + " is of another kind");
      for_each_value(n.arguments[i], [&](Value* v) {
        require(defined_.contains(v), where + ": argument " + std::string(info.arguments[i].name) +
                                          " is used before it is computed");
        users_[v].push_back(const_cast<Node*>(&n));
      });
      for_each_dim(n.arguments[i], [&](Dim d) { known(d, where); });
    }
    if (n.op == &ops::cond || n.op == &ops::while_loop)
      control(n, where);
    else if (is_delegate(n))
      delegate(n, where);
    else
      results(n, info, where);
    for (const auto& r : n.results)
      if (r != nullptr) define(r.get(), where);
  }

  void control(const Node& n, const std::string& where) {
    require(n.bodies.size() == 2, where + ": it must have two bodies");
    bodies(n, where);
    const bool loops = n.op == &ops::while_loop;
    if (loops) {
      const auto& carried = std::get<std::vector<Value*>>(n.arguments[0]);
      require(carried.size() == n.results.size(), where + ": it has a result for what it carries");
      for (size_t i = 0; i < carried.size(); ++i)
        require(n.result(i) != nullptr && agree(n.result(i)->type, carried[i]->type, false),
                where + ": a result differs from what is carried");
    }
    const Value* predicate = loops && n.bodies[0]->outputs().size() == 1
                                 ? n.bodies[0]->outputs()[0].value
                             : loops ? nullptr
                                     : std::get<Value*>(n.arguments[0]);
    require(predicate != nullptr && predicate->type.dtype == DType::boolean &&
                same(predicate->type.numel(), 1),
            where + ": its condition must be one boolean");
    for (size_t b = loops ? 1 : 0; b < 2; ++b) body_results(n, *n.bodies[b], where);
  }

  void delegate(const Node& n, const std::string& where) {
    require(n.bodies.size() == 1, where + ": it must have one body");
    bodies(n, where);
    body_results(n, *n.bodies[0], where);
  }

  void bodies(const Node& n, const std::string& where) {
    const std::vector<Value*> operands = operands_of(n);
    for (const auto& b : n.bodies) {
      const std::string in_body = where + ": its body " + b->name();
      Verifier(*b, *this).run();
      require(b->states().empty() && b->writes().empty(), in_body + " has states");
      require(b->inputs().size() == operands.size(),
              in_body + " has other inputs than the node has operands");
      for (size_t i = 0; i < operands.size(); ++i)
        require(b->inputs()[i].value != nullptr &&
                    agree(b->inputs()[i].value->type, operands[i]->type, false),
                in_body + ": input " + b->inputs()[i].name + " differs from its operand");
    }
  }

  void body_results(const Node& n, const Graph& body, const std::string& where) {
    const auto& outputs = body.outputs();
    require(outputs.size() == n.results.size(), where + ": a body gives another number of results");
    for (size_t i = 0; i < outputs.size(); ++i)
      require(outputs[i].value != nullptr && n.result(i) != nullptr &&
                  agree(outputs[i].value->type, n.result(i)->type, false),
              where + ": a body gives a result of another type");
  }

  void results(const Node& n, const eager::OperatorInfo& info, const std::string& where) {
    if (info.symbolic_rule == nullptr) return;
    std::vector<Check> checks;
    std::vector<Type> types;
    try {
      types = infer(*n.op, n.arguments, checks);
    } catch (const ExportError& e) {
      require(false, where + ": " + e.what());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const Value* v = n.result(i);
      if (v == nullptr) continue;
      require(v->node == &n && v->index == static_cast<int>(i),
              where + ": a result does not know its node");
      require(types[i].present && agree(v->type, types[i], n.op->category == Category::view),
              where + ": result %" + v->name + " is " + to_string(v->type) +
                  ", the shape rule says " + to_string(types[i]));
    }
  }

  const Graph& graph_;
  const std::string_view after_;
  std::set<std::string> names_, symbol_names_;
  std::unordered_set<const Symbol*> symbols_;
  std::unordered_set<const Value*> defined_;
  std::unordered_map<const Value*, std::vector<Node*>> users_;
};

}  // namespace

void verify(const Graph& graph, std::string_view after) { Verifier(graph, after).run(); }

}  // namespace taper::ir
