#include "taper/exporter/emit/write_into_place.h"

#include <algorithm>
#include <vector>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::emit {
namespace {

using ir::Node;
using ir::Value;

class PlaceWriter {
 public:
  PlaceWriter(ir::Graph& graph, const target::KernelTable& kernels,
              std::unordered_set<const Node*>& done)
      : graph_(graph), kernels_(kernels), done_(done) {}

  void run() {
    for (Node& node : graph_.nodes()) {
      if (node.op != &ops::cat) continue;
      const std::vector<Value*>& parts = std::get<std::vector<Value*>>(node.arguments[0]);
      const ir::Type& whole = node.result()->type;
      const auto dim = ir::Call<ops::cat>(node).get<"dim">();
      if (!same(dim, whole.rank - 1) && !same(dim, -1)) continue;
      if (!std::ranges::all_of(parts, [&](Value* v) { return may_lie_in(*v, node); })) continue;
      Dim offset = whole.offset;
      for (Value* part : parts) {
        std::ranges::copy(whole.strides, part->type.strides);
        part->type.offset = offset;
        offset = offset + part->type.sizes[whole.rank - 1];
      }
      done_.insert(&node);
    }
  }

 private:
  bool may_lie_in(const Value& part, const Node& cat) const {
    const ir::Type& whole = cat.result()->type;
    return part.origin == Value::Origin::result && ir::base_of(&part) == &part &&
           part.type.dtype == whole.dtype && part.type.rank == whole.rank &&
           !graph_.is_returned(&part) && std::ranges::count(part.users, &cat) == 1 &&
           is_written_in_rows(part) && std::ranges::all_of(part.users, [&](const Node* user) {
             return user == &cat || (!done_.contains(user) && reads_rows(*user, part));
           });
  }

  bool is_written_in_rows(const Value& v) const {
    if (!target::is_instruction(*v.node) || v.node->op == &ops::cat) return false;
    const target::Candidates c = kernels_.candidates(*v.node);
    return !c.records.empty() && std::ranges::all_of(c.records, [&](const Kernel* k) {
      return k->expected[k->expected_count - k->result_count + v.index].strides != Strides::dense;
    });
  }

  bool reads_rows(const Node& user, const Value& v) const {
    if (!target::is_instruction(user)) return false;
    const target::Candidates c = kernels_.candidates(user);
    for (size_t i = 0; i < user.arguments.size(); ++i) {
      bool reads = false;
      ir::for_each_value(user.arguments[i], [&](const Value* other) { reads |= other == &v; });
      if (reads && (c.records.empty() || c.strides(static_cast<int>(i)) == Strides::dense))
        return false;
    }
    return true;
  }

  ir::Graph& graph_;
  const target::KernelTable& kernels_;
  std::unordered_set<const Node*>& done_;
};

}  // namespace

std::unordered_set<const Node*> write_into_place(ir::Graph& graph,
                                                 const target::KernelTable& kernels) {
  std::unordered_set<const Node*> done;
  ir::for_each_own_graph(graph, [&](ir::Graph& g) { PlaceWriter(g, kernels, done).run(); });
  return done;
}

}  // namespace taper::emit
