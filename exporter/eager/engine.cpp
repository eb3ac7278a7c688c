// backward: passes gradients from the newest node to the oldest.
#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

thread_local bool anomaly_mode = false;

Tensor add(const Tensor& a, const Tensor& b) {
  return call<ops::add_Tensor>(Location{}, a, b, Scalar(1));
}

bool has_nan(const Tensor& t) {
  if (t.is_traced()) return false;
  if (is_complex(t.dtype())) return has_nan(call<ops::view_as_real>(Location{}, t));
  if (!is_floating(t.dtype())) return false;
  for (const double v : t.to(DType::f64).to_vector<double>())
    if (std::isnan(v)) return true;
  return false;
}

struct Newer {
  bool operator()(const Node* a, const Node* b) const {
    if (a->is_accumulator() != b->is_accumulator()) return a->is_accumulator();
    return a->sequence() < b->sequence();
  }
};

/// One backward pass. With `inputs`, it captures their gradients and does not change leaves.
/// Without, it accumulates gradients in the leaves.
class Walk {
 public:
  Walk(bool keep, Location here) : keep_(keep), here_(here) {}

  void capture(const std::vector<Tensor>& inputs) {
    capturing_ = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Edge e = gradient_edge(inputs[i]);
      if (!e.node)
        throw EagerError(here_,
                         "grad: input " + std::to_string(i) +
                             " does not require a gradient; call set_requires_grad() on it first");
      targets_.push_back(e);
    }
    captured_.resize(inputs.size());
  }
  void seed(const Tensor& output, const Tensor& gradient) {
    const Edge e = gradient_edge(output);
    if (!e.node)
      throw EagerError(here_,
                       "backward: the tensor does not require a gradient and has no history; was "
                       "it made inside no_grad() or detached?");
    add_to(e, gradient);
  }
  std::vector<Tensor> run() {
    if (capturing_) find_needed();
    while (!queue_.empty()) {
      Node* node = queue_.top();
      queue_.pop();
      visit(node);
    }
    return std::move(captured_);
  }

 private:
  void add_to(const Edge& edge, const Tensor& gradient) {
    auto [at, fresh] = pending_.try_emplace(edge.node.get());
    if (fresh) {
      at->second.node = edge.node;
      at->second.gradients.resize(static_cast<size_t>(edge.node->result_count));
      queue_.push(edge.node.get());
    }
    Tensor& sum = at->second.gradients[static_cast<size_t>(edge.index)];
    sum = sum.defined() ? add(sum, gradient) : gradient;
  }

  void visit(Node* node) {
    auto at = pending_.find(node);
    const std::shared_ptr<Node> alive = std::move(at->second.node);
    Gradients gradients = std::move(at->second.gradients);
    pending_.erase(at);
    for (size_t h = 0; h < node->hooks.size(); ++h) {
      Tensor& g = gradients[static_cast<size_t>(node->hook_results[h])];
      if (!g.defined()) continue;
      if (const Tensor replaced = node->hooks[h](g); replaced.defined())
        g = checked_replacement(g, replaced, node->here());
    }
    for (size_t r = 0; r < node->retains.size(); ++r)
      if (const auto impl = node->retains[r].lock())
        Tensor(impl).set_grad(gradients[static_cast<size_t>(node->retain_results[r])]);
    for (size_t t = 0; t < targets_.size(); ++t)
      if (targets_[t].node.get() == node)
        captured_[t] = gradients[static_cast<size_t>(targets_[t].index)];
    if (capturing_ && (node->is_accumulator() || !needed_.contains(node))) return;

    std::optional<PlaceScope> scope;
    if (recorder() != nullptr) scope.emplace(node->here().known() ? node->here() : here_);
    const Gradients inputs = node->backward(gradients);
    gradients.clear();
    keep_ ? node->forget() : node->release();
    for (size_t i = 0; i < node->edges.size() && i < inputs.size(); ++i) {
      const Edge& edge = node->edges[i];
      if (!edge.node || !inputs[i].defined() || (capturing_ && !needed_.contains(edge.node.get())))
        continue;
      const Tensor gradient = node->fit(i, inputs[i]);
      if (anomaly_mode && has_nan(gradient))
        throw EagerError(node->here(), "backward: the derivative of " + node->name() +
                                           " gave NaN for its input " + std::to_string(i));
      add_to(edge, gradient);
    }
  }

  /// Finds the nodes from which a target can be reached.
  void find_needed() {
    std::unordered_map<const Node*, bool> reaches;
    std::vector<std::pair<const Node*, size_t>> stack;
    for (const Edge& t : targets_) reaches[t.node.get()] = true;
    std::unordered_set<const Node*> seen;
    for (const auto& [root, gradients] : pending_) stack.push_back({root, 0});
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == 0 && !seen.insert(node).second) {
        stack.pop_back();
        continue;
      }
      if (next < node->edges.size()) {
        const Node* child = node->edges[next++].node.get();
        if (child != nullptr && !seen.contains(child)) stack.push_back({child, 0});
        continue;
      }
      for (const Edge& e : node->edges)
        if (e.node && reaches[e.node.get()]) reaches[node] = true;
      stack.pop_back();
    }
    for (const auto& [node, yes] : reaches)
      if (yes) needed_.insert(node);
  }

  struct Pending {
    std::shared_ptr<Node> node;
    Gradients gradients;
  };
  bool keep_, capturing_ = false;
  Location here_;
  std::vector<Edge> targets_;
  std::vector<Tensor> captured_;
  std::unordered_set<const Node*> needed_;
  std::unordered_map<Node*, Pending> pending_;
  std::priority_queue<Node*, std::vector<Node*>, Newer> queue_;
};

Tensor ones_for(const Tensor& output, Location here) {
  if (!same(output.numel(), Dim(1)))
    throw EagerError(
        here, "backward: a tensor of size " + to_string(output.sizes()) +
                  " needs a gradient to start from; only a one-element tensor starts with 1");
  if (is_complex(output.dtype()))
    throw EagerError(here,
                     "backward: a complex tensor needs a gradient to start from; only a real one "
                     "starts with 1: take abs(), real() or imag() of it");
  return call<ops::full>(here, output.sizes(), Scalar(1), output.dtype());
}
void check_seed(const Tensor& output, const Tensor& gradient, Location here) {
  const Dims want = output.sizes(), have = gradient.sizes();
  const std::string message = "backward: the gradient's size " + to_string(have) +
                              " is not the tensor's " + to_string(want);
  bool differs = want.size() != have.size(), known = true;
  for (size_t i = 0; !differs && i < want.size(); ++i) {
    differs = proves_different(want[i], have[i]);
    known = known && proves_equal(want[i], have[i]);
  }
  if (differs) throw EagerError(here, message);
  if (!known) throw DataDependentError(here, message + ", as far as a trace knows");
}

}  // namespace

Tensor fit_gradient(const Tensor& gradient, std::span<const Dim> sizes, DType dtype) {
  const Dims have = gradient.sizes();
  Tensor g = gradient;
  if (!std::equal(have.begin(), have.end(), sizes.begin(), sizes.end(),
                  [](Dim a, Dim b) { return same(a, b); })) {
    const size_t extra = have.size() - sizes.size();
    Ints dims;
    for (size_t i = 0; i < have.size(); ++i)
      if (i < extra || (same(sizes[i - extra], Dim(1)) && !same(have[i], Dim(1))))
        dims.push_back(static_cast<int64_t>(i));
    if (!dims.empty()) g = call<ops::sum_dim_IntList>(Location{}, g, dims, true, std::nullopt);
    if (extra > 0) g = g.reshape(Dims(sizes.begin(), sizes.end()), Location{});
  }
  return cast(g, dtype, Location{});
}

DetectAnomaly::DetectAnomaly() : before_(anomaly_mode) { anomaly_mode = true; }
DetectAnomaly::~DetectAnomaly() { anomaly_mode = before_; }

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph,
                      Location here) const {
  NoGrad mode(create_graph);
  Walk walk(retain_graph || create_graph, here);
  if (gradient.defined()) check_seed(*this, gradient, here);
  walk.seed(*this, gradient.defined() ? gradient : ones_for(*this, here));
  walk.run();
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, bool create_graph,
                         bool retain_graph, bool allow_unused, Location here) {
  NoGrad mode(create_graph);
  Walk walk(retain_graph || create_graph, here);
  walk.capture(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool given = i < grad_outputs.size() && grad_outputs[i].defined();
    if (given) check_seed(outputs[i], grad_outputs[i], here);
    walk.seed(outputs[i], given ? grad_outputs[i] : ones_for(outputs[i], here));
  }
  std::vector<Tensor> result = walk.run();
  for (size_t i = 0; i < result.size(); ++i)
    if (!result[i].defined() && !allow_unused)
      throw EagerError(here, "grad: the outputs do not depend on input " + std::to_string(i) +
                                 "; pass allow_unused = true to get an undefined gradient");
  return result;
}

std::string graph_of(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined\n";
  std::ostringstream out;
  const Edge root = gradient_edge(tensor);
  if (!root.node) return "no history\n";
  std::priority_queue<Node*, std::vector<Node*>, Newer> queue;
  std::unordered_map<Node*, int> numbers;
  const auto number = [&](Node* n) {
    const auto [at, fresh] = numbers.try_emplace(n, static_cast<int>(numbers.size()));
    if (fresh) queue.push(n);
    return at->second;
  };
  number(root.node.get());
  while (!queue.empty()) {
    Node* node = queue.top();
    queue.pop();
    out << '%' << numbers[node] << " = " << node->name() << '(';
    for (size_t i = 0; i < node->edges.size(); ++i) {
      out << (i ? ", " : "");
      if (node->edges[i].node)
        out << '%' << number(node->edges[i].node.get());
      else
        out << '-';
    }
    out << ')';
    if (node->here().known()) out << "  # " << node->here().to_string();
    out << '\n';
  }
  return out.str();
}

}  // namespace taper::eager
