#include "taper/exporter/target/kernel_table.h"

#include <algorithm>

#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::target {
namespace {

uint8_t dtype_of(const ir::Value* value) {
  return value == nullptr ? Signature::no_dtype : static_cast<uint8_t>(value->type.dtype);
}

/// The dtype of a tensor argument, false if it is no tensor. A list has one dtype for all its
/// elements.
bool tensor_dtype(const Parameter& parameter, const ir::Argument& argument, uint8_t& dtype) {
  if (parameter.kind != Kind::tensor) return false;
  dtype = Signature::no_dtype;
  ir::for_each_value(argument, [&](const ir::Value* v) { dtype = dtype_of(v); });
  return true;
}

bool fits(const Expected& e, const ir::Argument& argument) {
  if (e.kind != Kind::tensor) return true;
  if (std::holds_alternative<std::monostate>(argument)) return e.optional;
  bool fit = true;
  ir::for_each_value(
      argument, [&](const ir::Value* v) { fit = fit && (e.dtypes & one(v->type.dtype)) != 0; });
  return fit;
}

bool fits(const Kernel& kernel, const ir::Node& node) {
  const size_t arguments = node.arguments.size(), results = node.results.size();
  if (kernel.expected_count != arguments + results) return false;
  for (size_t i = 0; i < arguments; ++i)
    if (!fits(kernel.expected[i], node.arguments[i])) return false;
  for (size_t i = 0; i < results; ++i) {
    const Expected& e = kernel.expected[arguments + i];
    const ir::Value* v = node.result(i);
    if (v == nullptr ? !e.optional : (e.dtypes & one(v->type.dtype)) == 0) return false;
  }
  return true;
}

}  // namespace

Signature signature_of(const ir::Node& node) {
  Signature s{node.op, {}};
  const Schema schema = parse_schema(node.op->text);
  size_t position = 0;
  for (int i = 0; i < schema.parameter_count && position < node.arguments.size(); ++i) {
    if (!reaches_kernel(schema.parameters[i])) continue;
    uint8_t dtype;
    if (tensor_dtype(schema.parameters[i], node.arguments[position++], dtype))
      s.dtypes.push_back(dtype);
  }
  for (const auto& r : node.results) s.dtypes.push_back(dtype_of(r.get()));
  return s;
}

std::string to_string(const Signature& signature) {
  const Schema schema = parse_schema(signature.op->text);
  const int results = schema.result_count,
            arguments = static_cast<int>(signature.dtypes.size()) - results;
  std::string s(name_of(*signature.op));
  const auto list = [&](int first, int last) {
    for (int i = first; i < last; ++i) {
      const uint8_t d = signature.dtypes[i];
      s += (i > first ? ", " : "") +
           std::string(d == Signature::no_dtype ? "none" : name_of(static_cast<DType>(d)));
    }
  };
  s += "(";
  list(0, arguments);
  s += ") -> ";
  list(arguments, arguments + results);
  return s;
}

const Packing* packing_of(const Kernel& kernel, const ir::Node& call, size_t i, Layout from) {
  for (const Packing& p : kernel.packings) {
    if (p.argument != i || p.from != from) continue;
    if (p.unless < 0) return &p;
    const bool* flag = std::get_if<bool>(&call.arguments[static_cast<size_t>(p.unless)]);
    if (flag != nullptr && !*flag) return &p;
  }
  return nullptr;
}

bool Candidates::read(const ir::Node& call, size_t i, Layout layout) const {
  return !records.empty() && std::ranges::all_of(records, [&](const Kernel* k) {
    return packing_of(*k, call, i, layout) != nullptr;
  });
}

Strides Candidates::strides(int i) const {
  Strides strictest = Strides::any;
  for (const Kernel* k : records)
    strictest = std::min(strictest, k->expected[i].strides);  // dense < rows < any
  return strictest;
}

uint32_t Candidates::overwrites() const {
  uint32_t common = ~uint32_t{0};
  for (const Kernel* k : records) common &= k->overwrites;
  return records.empty() ? 0 : common;
}

KernelTable::KernelTable(const Target& target) : target_(target), all_(target.kernels()) {
  for (const Kernel* k : all_) of_operator_[k->op].push_back(k);
}

Candidates KernelTable::candidates(const ir::Node& call) const {
  Candidates c;
  const auto at = of_operator_.find(call.op);
  if (at == of_operator_.end()) return c;
  for (const Kernel* k : at->second) {
    if (!fits(*k, call)) continue;
    c.records.push_back(k);
    // each loader of the target stops here
    if (!target_.name.empty() && target_.has.has(k->needs)) break;
  }
  return c;
}

const Packing* KernelTable::asked_elsewhere(const ir::Node& call, size_t i,
                                            const Packing& read) const {
  if (!target_.is_foreign) return nullptr;
  for (const Kernel* k : target_.linked_kernels()) {
    if (k->op != call.op || !fits(*k, call)) continue;
    const Packing* p = packing_of(*k, call, i, read.from);
    if (p != nullptr && p->layout == read.layout && p->bytes != nullptr) return p;
  }
  return nullptr;
}

bool KernelTable::runs(const ir::Node& call) const {
  return std::ranges::any_of(candidates(call).records,
                             [&](const Kernel* k) { return target_.has.has(k->needs); });
}

std::map<const ir::Node*, Candidates> find_all_candidates(const ir::Graph& graph,
                                                          const KernelTable& kernels) {
  std::map<const ir::Node*, Candidates> all;
  std::map<std::string, std::vector<const ir::Node*>> without;
  ir::for_each_own_graph(graph, [&](const ir::Graph& g) {
    for (const ir::Node& node : g.nodes()) {
      if (!is_instruction(node)) continue;
      Candidates c = kernels.candidates(node);
      if (c.records.empty())
        without[to_string(signature_of(node))].push_back(&node);
      else
        all.emplace(&node, std::move(c));
    }
  });
  if (without.empty()) return all;

  std::string text =
      graph.name() + ": " + std::to_string(without.size()) +
      (without.size() == 1 ? " operator has no kernel" : " operators have no kernel") +
      " on this target";
  for (const auto& [signature, nodes] : without) {
    text += "\n  " + signature + "   " + std::to_string(nodes.size()) +
            (nodes.size() == 1 ? " node" : " nodes");
    if (!nodes[0]->module.empty()) text += "   " + nodes[0]->module;
    if (nodes[0]->location.known()) text += "   " + nodes[0]->location.to_string();
  }
  text +=
      "\n  remedy: link kernels for these operators and dtypes, cast to a dtype that has one, or "
      "decompose the operators";
  throw ExportError(text);
}

}  // namespace taper::target
