#include "taper/exporter/eager/autograd.h"

namespace taper::eager {
namespace {

class CustomNode final : public Node {
 public:
  CustomNode(CustomFunction function, std::vector<Tensor> inputs, std::vector<Tensor> results,
             Location here)
      : function_(std::move(function)),
        inputs_(std::move(inputs)),
        results_(std::move(results)),
        here_(here) {
    result_count = static_cast<int>(results_.size());
    for (const Tensor& t : inputs_) versions_.push_back(t.impl()->storage->version());
  }
  Gradients backward(const Gradients& gradients) override {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].impl()->storage->version() != versions_[i])
        throw EagerError(here_, "backward: input " + std::to_string(i) + " of " + function_.name +
                                    " was overwritten at " +
                                    inputs_[i].impl()->storage->last_write().to_string() +
                                    "; write to a clone() instead");
    Gradients result = function_.backward(inputs_, results_, gradients);
    if (result.size() != inputs_.size())
      throw EagerError(here_, function_.name + ": backward gave " + std::to_string(result.size()) +
                                  " gradients for " + std::to_string(inputs_.size()) + " inputs");
    return result;
  }
  std::string name() const override { return function_.name; }
  Location here() const override { return here_; }

 private:
  CustomFunction function_;
  std::vector<Tensor> inputs_, results_;
  std::vector<uint64_t> versions_;
  Location here_;
};

}  // namespace

std::vector<Tensor> apply(const CustomFunction& function, const std::vector<Tensor>& inputs,
                          Location here) {
  std::vector<Tensor> results = no_grad([&] { return function.forward(inputs); });
  bool wanted = false;
  for (const Tensor& t : inputs) wanted = wanted || t.requires_grad();
  if (!wanted || !grad_enabled()) return results;
  std::vector<Tensor> kept;
  for (Tensor& t : results) {
    kept.push_back(t.detach());
    t = shallow(t);  // an input that forward hands through gets a history of its own
  }
  auto node = std::make_shared<CustomNode>(function, inputs, kept, here);
  for (const Tensor& t : inputs) node->edges.push_back(gradient_edge(t));
  for (size_t k = 0; k < results.size(); ++k) {
    results[k].impl()->autograd = std::make_unique<Autograd>();
    results[k].impl()->autograd->grad_fn = node;
    results[k].impl()->autograd->result = static_cast<int>(k);
  }
  return results;
}

}  // namespace taper::eager
