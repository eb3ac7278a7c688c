#include "taper/exporter/partition/partition.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/partition/parts.h"
#include "taper/exporter/roofline/multiply_adds.h"

namespace taper::partition {
namespace {

bool computes(const ir::Node& node) {
  return node.op->category != Category::view && (!ir::is_control(node) || ir::is_delegate(node));
}

/// A symbolic size counts as its lower bound.
roofline::Sizes sizes_of(const ir::Value& v) {
  roofline::Sizes sizes;
  for (int d = 0; d < v.type.rank; ++d)
    sizes.push_back(static_cast<double>(v.type.sizes[d].lower()));
  return sizes;
}

double multiply_adds(const ir::Node& node) {
  if (ir::is_delegate(node)) {
    double sum = 0;
    for (const ir::Node& inner : node.bodies[0]->nodes()) sum += multiply_adds(inner);
    return sum;
  }
  roofline::Call call{name_of(*node.op), {}, {}};
  for (const ir::Argument& a : node.arguments)
    ir::for_each_value(a, [&](const ir::Value* v) {
      if (v != nullptr) call.arguments.push_back(sizes_of(*v));
    });
  for (const auto& r : node.results)
    if (r != nullptr) call.results.push_back(sizes_of(*r));
  if (node.op == &ops::convolution)
    call.transposed = ir::Call<ops::convolution>(node).get<"transposed">();
  return roofline::multiply_adds(call);
}

bool uses_more_than_first(const ir::Graph& graph, const ir::Node& node) {
  for (size_t i = 1; i < node.results.size(); ++i)
    if (node.result(i) != nullptr && graph.is_used(node.result(i))) return true;
  return false;
}

/// A part for each node that computes. Views stay in the graph.
std::vector<Part> pieces_of(const Part& part) {
  std::vector<Part> pieces;
  for (ir::Node* node : part)
    if (computes(*node)) pieces.push_back({node});
  return pieces;
}

/// Whether a part reads what is no constant. An instruction that reads nothing has no operands.
bool has_operands(const Part& part) {
  const std::set<const ir::Node*> own(part.begin(), part.end());
  bool has = false;
  for (const ir::Node* node : part)
    ir::for_each_value(*node, [&](const ir::Value* v) {
      const ir::Value* base = ir::base_of(v);
      has |= base->origin != ir::Value::Origin::constant && !own.contains(base->node);
    });
  return has;
}

/// "encoder.layer.3.norm" -> "encoder.layer.*.norm"
std::string without_numbers(const std::string& module) {
  std::string path;
  for (size_t begin = 0; begin <= module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string part = module.substr(begin, end - begin);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    path += (begin == 0 ? "" : ".") + (is_number ? "*" : part);
    begin = end + 1;
  }
  return path;
}

/// Counts the nodes that stayed in modules.
class Modules {
 public:
  void add(const ir::Node& node) {
    if (node.module.empty()) return;
    const std::string path = without_numbers(node.module);
    const auto [at, is_new] = places_.try_emplace(path, list_.size());
    if (is_new) list_.push_back({path, 0, {}}), paths_.emplace_back();
    paths_[at->second].insert(node.module);
    ++list_[at->second].operators[std::string(name_of(*node.op))];
  }
  std::vector<PartitionReport::Module> take() {
    for (size_t i = 0; i < list_.size(); ++i) {
      list_[i].modules = static_cast<int>(paths_[i].size());
      if (list_[i].modules == 1) list_[i].path = *paths_[i].begin();
    }
    return std::move(list_);
  }

 private:
  std::map<std::string, size_t> places_;
  std::vector<PartitionReport::Module> list_;
  std::vector<std::set<std::string>> paths_;
};

class Reporter {
 public:
  void leave(const ir::Node& node, const std::string& reason) {
    modules_.add(node);
    const std::string op(name_of(*node.op));
    PartitionReport::Left& left = left_[{op, reason}];
    if (left.count++ == 0) left = {op, reason, 1, ir::describe(node)};
  }
  void finish(PartitionReport& report) {
    for (auto& [key, left] : left_) report.left.push_back(std::move(left));
    std::ranges::stable_sort(report.left, std::ranges::greater(), &PartitionReport::Left::count);
    report.modules = modules_.take();
  }

 private:
  Modules modules_;
  std::map<std::pair<std::string, std::string>, PartitionReport::Left> left_;
};

/// "encoder.layer.*.norm (12 modules): 12 native_layer_norm"
std::string text_of(const PartitionReport::Module& m) {
  std::vector<std::string> operators;
  for (const auto& [op, count] : m.operators) operators.push_back(std::to_string(count) + " " + op);
  const std::string count =
      m.modules > 1 ? " (" + io::counted(m.modules, "module") + ")" : std::string();
  return m.path + count + ": " + io::joined(operators);
}

}  // namespace

int PartitionReport::left_count() const {
  int count = 0;
  for (const Left& l : left) count += l.count;
  return count;
}

std::ostream& operator<<(std::ostream& out, const PartitionReport& r) {
  out << io::counted(r.delegated, "node") << " in " << io::counted(r.parts, "delegate") << ", "
      << r.left_count() << " left";
  if (r.work > 0)
    out << "; " << io::percent_text(r.delegated_work, r.work) << " of the multiplications";
  out << '\n';
  for (const PartitionReport::Left& l : r.left)
    out << "  " << l.count << ' ' << l.op << ": " << l.reason << " (" << l.first << ")\n";
  if (!r.modules.empty()) out << "  by module:\n";
  for (const PartitionReport::Module& m : r.modules) out << "    " << text_of(m) << '\n';
  return out;
}

PartitionReport partition(ir::Graph& graph, const Delegate& delegate, bool each_node) {
  give_constants_to_bodies(graph);
  delegate.prepare(graph);
  PartitionReport report;
  Reporter reporter;
  std::map<const ir::Node*, std::string> refused;
  const auto takes = [&](const ir::Node& node) {
    if (!computes(node) && node.op->category != Category::view) return false;
    std::string& reason = refused[&node] = delegate.refuses(node);
    if (reason.empty() && !delegate.computes_all_results() && uses_more_than_first(graph, node))
      reason = "more than its first result is used";
    return reason.empty();
  };
  const auto joins = [&](const ir::Node& node) {
    return takes(node) && !delegate.stands_alone(node);
  };
  for (const ir::Node& node : graph.nodes()) report.work += multiply_adds(node);
  std::vector<Part> parts = find_parts(graph, joins);
  for (ir::Node& node : graph.nodes())
    if (delegate.stands_alone(node) && refused.at(&node).empty()) parts.push_back({&node});
  for (const Part& part : parts) {
    if (!delegate.pays({part.begin(), part.end()})) {
      for (const ir::Node* node : part) refused[node] = "its part is too small to pay";
      continue;
    }
    for (const Part& piece : each_node ? pieces_of(part) : std::vector<Part>{part}) {
      if (!has_operands(piece)) {
        for (const ir::Node* node : piece) refused[node] = "it reads constants alone";
        continue;
      }
      for (const ir::Node* node : piece) report.delegated += computes(*node);
      for (const ir::Node* node : piece) report.delegated_work += multiply_adds(*node);
      for (const ir::Node* node : piece) refused.erase(node);
      ++report.parts;
      replace_part(graph, piece, delegate.name(),
                   [&](const ir::Node& node) { return delegate.refuses(node).empty(); });
    }
  }
  for (const ir::Node& node : graph.nodes())
    if (computes(node) && !ir::is_delegate(node)) reporter.leave(node, refused[&node]);
  reporter.finish(report);
  return report;
}

}  // namespace taper::partition
