#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager {
namespace {

class CustomNode final : public Node {
 public:
  CustomNode(CustomFunction function, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& results, Location here)
      : function_(std::move(function)),
        inputs_(inputs.begin(), inputs.end()),
        results_(results.begin(), results.end()),
        here_(here) {
    result_count = static_cast<int>(results.size());
  }
  Gradients backward(const Gradients& gradients) override {
    if (released_)
      throw EagerError(here_, "backward: the values that " + function_.name +
                                  " saved were freed by an earlier backward(); pass retain_graph = "
                                  "true to it");
    const std::vector<Tensor> inputs = unpacked("input", inputs_);
    const std::vector<Tensor> results = unpacked("result", results_);
    Gradients given = gradients;  // a result that nobody used has a gradient of zero
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i].defined())
        given[i] = call<ops::full>(here_, results[i].sizes(), Scalar(0), results[i].dtype());
    Gradients result = function_.backward(inputs, results, given);
    if (result.size() != inputs.size())
      throw EagerError(here_, function_.name + ": backward gave " + std::to_string(result.size()) +
                                  " gradients for " + std::to_string(inputs.size()) + " inputs");
    for (size_t i = 0; i < result.size(); ++i) {
      if (!result[i].defined()) continue;
      if (!same_sizes(result[i].sizes(), inputs[i].sizes()))
        throw EagerError(here_, function_.name + ": backward gave a gradient of size " +
                                    to_string(result[i].sizes()) + " for input " +
                                    std::to_string(i) + " of size " + to_string(inputs[i].sizes()));
      result[i] = cast(result[i], inputs[i].dtype(), here_);
    }
    return result;
  }
  void release() override {
    forget();
    inputs_.clear(), results_.clear(), released_ = true;
  }
  void forget() override {
    for (const SavedTensor& t : inputs_) t.forget();
    for (const SavedTensor& t : results_) t.forget();
  }
  std::string name() const override { return function_.name; }
  Location here() const override { return here_; }

 private:
  std::vector<Tensor> unpacked(const char* what, const std::vector<SavedTensor>& saved) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < saved.size(); ++i) {
      const Tensor& t = tensors.emplace_back(saved[i].unpack({}));
      if (saved[i].is_overwritten(t))
        throw EagerError(here_, std::string("backward: ") + what + " " + std::to_string(i) +
                                    " of " + function_.name + " was overwritten at " +
                                    t.impl()->storage->last_write().to_string() +
                                    "; write to a clone() instead");
    }
    return tensors;
  }

  bool released_ = false;
  CustomFunction function_;
  std::vector<SavedTensor> inputs_, results_;  // results off the tape
  Location here_;
};

}  // namespace

std::vector<Tensor> apply(const CustomFunction& function, const std::vector<Tensor>& inputs,
                          Location here) {
  if (!function.forward || !function.backward)
    throw EagerError(here, function.name + ": a custom function needs both forward and backward");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined())
      throw EagerError(here, function.name + ": input " + std::to_string(i) + " is undefined");
  std::vector<Tensor> results = no_grad([&] { return function.forward(inputs); });
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].defined())
      throw EagerError(here,
                       function.name + ": forward left result " + std::to_string(i) + " undefined");
  bool wanted = false;
  for (const Tensor& t : inputs) wanted = wanted || t.requires_grad();
  if (!wanted || !grad_enabled()) return results;
  std::vector<Tensor> kept;
  for (Tensor& t : results) {
    kept.push_back(t.detach());
    t = shallow(t);  // an input that forward returns gets a history of its own
  }
  auto node = std::make_shared<CustomNode>(function, inputs, kept, here);
  for (const Tensor& t : inputs) node->edges.push_back(gradient_edge(t));
  for (size_t k = 0; k < results.size(); ++k) {
    results[k].impl()->autograd = std::make_unique<Autograd>();
    results[k].impl()->autograd->grad_fn = node;
    results[k].impl()->autograd->result = static_cast<int>(k);
  }
  end_complete_run();
  return results;
}

}  // namespace taper::eager
