// Branches and loops: each body is recorded into a graph of its own.
#include <algorithm>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/trace/tracer.h"

namespace taper {
namespace {

using eager::Body;
using eager::Tensor;
using Tensors = std::vector<Tensor>;

ir::Type dense_type_of(const Tensor& tensor) {
  return ir::dense_type(tensor.dtype(), tensor.sizes());
}

std::string type_text(const Tensor& tensor) {
  return taper::name_of(tensor.dtype()) + std::string(" ") + eager::to_string(tensor.sizes());
}

/// Both branches give the same types, as far as that can be known; a run checks the rest.
void require_same_results(const Tensors& then, const Tensors& otherwise, ir::Graph& graph,
                          Location here) {
  if (then.size() != otherwise.size())
    throw EagerError(here, "cond: one branch gives " + std::to_string(then.size()) +
                               " tensors, the other " + std::to_string(otherwise.size()));
  for (size_t i = 0; i < then.size(); ++i) {
    const Tensor &a = then[i], &b = otherwise[i];
    bool fit = a.dtype() == b.dtype() && a.rank() == b.rank();
    for (int d = 0; fit && d < a.rank(); ++d) {
      const Dim x = a.size(d), y = b.size(d);
      fit = !proves_different(x, y);
      if (fit && !proves_equal(x, y))
        graph.add_check({Comparison::equal, x, y, "cond: both branches must give the same sizes"});
    }
    if (!fit)
      throw EagerError(here, "cond: result " + std::to_string(i) + " is " + type_text(a) +
                                 " in one branch and " + type_text(b) +
                                 " in the other; both must give the same dtypes and sizes");
  }
}

/// Outside of a body nobody knows a number that it reads from a tensor.
void require_known_sizes(const Tensor& result, size_t i, const ir::Graph& body, Location here) {
  for (const Dim size : result.sizes())
    for (const Symbol* s : size.symbols())
      if (std::ranges::any_of(body.symbols(), [&](const ir::SymbolBinding& b) {
            return b.symbol.as_symbol() == s;
          }))
        throw EagerError(here, "export: result " + std::to_string(i) +
                                   " of the body of a branch or loop has size " +
                                   eager::to_string(result.sizes()) + ", and only the body knows " +
                                   s->name +
                                   ", which it reads from a tensor; give a result whose size does "
                                   "not depend on data");
}

}  // namespace

Tracer::Track& Tracer::capture_from_outside(const Tensor& base, Location here) {
  if (!base.is_traced() && !base.is_dense())
    throw EagerError(
        here, "export: a tensor from before the trace is not dense; call contiguous() on it first");
  Track& track = tracks_[base.impl()->storage.get()];
  track.storage = base.impl()->storage, track.base = base;
  track.current =
      graph_.add_input(base.name().empty() ? "captured" : base.name(), dense_type_of(base));
  from_outside_.push_back(base);
  return track;
}

Tracer::Recorded Tracer::record_body(const char* name, const Body& body, const Tensors& inputs,
                                     const Tensors& captured_before, Location here) {
  Recorded recorded{std::make_unique<ir::Graph>(name), {}, {}};
  Tracer inner(*recorded.graph, *this);
  const eager::Recording recording(&inner);
  Tensors arguments;
  for (const Tensor& t : inputs)
    arguments.push_back(inner.add_input("operand", t.sizes(), t.dtype()));
  for (const Tensor& t : captured_before) inner.capture_from_outside(t, here);
  recorded.results = body(arguments);
  for (size_t i = 0; i < recorded.results.size(); ++i) {
    Tensor& result = recorded.results[i];
    if (!result.defined())
      throw EagerError(here, std::string(name) + ": result " + std::to_string(i) +
                                 " of the body is an undefined tensor");
    const eager::NoGrad guard;
    require_known_sizes(result, i, *recorded.graph, here);
    if (!result.is_dense()) result = result.clone(here);
    recorded.graph->add_output("result" + std::to_string(i), inner.value_of(result, here));
  }
  recorded.captured = inner.from_outside_;
  return recorded;
}

void Tracer::add_missing_inputs(Recorded& body, const Tensors& captured) {
  for (size_t i = body.captured.size(); i < captured.size(); ++i) {
    const Tensor& base = captured[i];
    body.graph->add_input(base.name().empty() ? "captured" : base.name(), dense_type_of(base));
  }
}

std::vector<ir::Value*> Tracer::operand_values(const Tensors& tensors, Location here) {
  const eager::NoGrad guard;
  std::vector<ir::Value*> values;
  for (const Tensor& t : tensors)
    values.push_back(value_of(t.is_dense() ? t : t.clone(here), here));
  return values;
}

Tensor Tracer::track_result(ir::Value* value) {
  const Tensor tensor = eager::traced_tensor(value->type);
  Track& track = tracks_[tensor.impl()->storage.get()];
  track.storage = tensor.impl()->storage, track.base = {}, track.current = value;
  remember(tensor, value, 0);
  return tensor;
}

Tensors Tracer::finish_control(const Operator& op, std::vector<ir::Argument> arguments,
                               Recorded first, Recorded second, Location here) {
  if (place().known()) here = place();
  if (here.known()) last_ = here;
  std::vector<ir::Type> types;
  for (const Tensor& t : second.results) types.push_back(dense_type_of(t));
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  bodies.push_back(std::move(first.graph));
  bodies.push_back(std::move(second.graph));
  const ir::Node* node = graph_.append_control(op, std::move(arguments), std::move(bodies), types,
                                               here.known() ? here : last_, eager::module_path());
  Tensors results;
  for (size_t i = 0; i < types.size(); ++i) results.push_back(track_result(node->result(i)));
  return results;
}

Tensors Tracer::branch(const Tensor& pred, const Tensors& operands, const Body& then,
                       const Body& otherwise, Tensors& captured, Location here) {
  Recorded first = record_body("then", then, operands, {}, here);
  Recorded second = record_body("otherwise", otherwise, operands, first.captured, here);
  captured = second.captured;
  add_missing_inputs(first, captured);
  require_same_results(first.results, second.results, graph_, here);
  std::vector<ir::Value*> all = operand_values(operands, here);
  for (ir::Value* v : operand_values(captured, here)) all.push_back(v);
  ir::Value* condition = operand_values({pred}, here)[0];
  return finish_control(ir::ops::cond, {condition, std::move(all)}, std::move(first),
                        std::move(second), here);
}

Tensors Tracer::loop(const Tensors& carried, const Body& condition, const Body& body,
                     Tensors& captured, Location here) {
  Recorded first = record_body("condition", condition, carried, {}, here);
  Recorded second = record_body("body", body, carried, first.captured, here);
  captured = second.captured;
  add_missing_inputs(first, captured);
  std::vector<ir::Value*> start = operand_values(carried, here);
  std::vector<ir::Value*> operands = operand_values(captured, here);
  return finish_control(ir::ops::while_loop, {std::move(start), std::move(operands)},
                        std::move(first), std::move(second), here);
}

Tensors Tracer::types_of(const Body& body, const Tensors& inputs, Tensors& captured,
                         Location here) {
  const Names names = names_;
  Recorded recorded = record_body("body", body, inputs, {}, here);
  names_ = names;
  captured = recorded.captured;
  return recorded.results;
}

}  // namespace taper
