#include <cmath>
#include <unordered_map>

#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Value;

class BatchNormFolder {
 public:
  explicit BatchNormFolder(ir::Graph& graph) : graph_(graph) {
    for (const ir::Constant& c : graph.constants()) payloads_[c.value.get()] = c.payload.get();
  }

  int run() {
    int folded = 0;
    for (auto at = graph_.nodes().begin(); at != graph_.nodes().end();) {
      ir::Node* node = &*at++;
      folded += node->op == &ops::_native_batch_norm_legit_no_training && fold(node);
    }
    if (folded > 0) remove_dead_code(graph_);
    return folded;
  }

 private:
  /// The elements of an f32 constant; nullptr for anything else.
  const float* constant(const ir::Argument& argument) const {
    const auto* value = std::get_if<Value*>(&argument);
    const auto at = value == nullptr ? payloads_.end() : payloads_.find(*value);
    if (at == payloads_.end() || at->second->dtype != DType::f32) return nullptr;
    return reinterpret_cast<const float*>(at->second->bytes.get());
  }
  static bool is_absent(const ir::Argument& argument) {
    return std::holds_alternative<std::monostate>(argument);
  }
  bool is_constant_or_absent(const ir::Argument& argument) const {
    return is_absent(argument) || constant(argument) != nullptr;
  }

  // batch norm: (input, weight?, bias?, running_mean, running_var, momentum, eps)
  // convolution: (input, weight, bias?, stride, padding, dilation, transposed, output_padding,
  // groups)
  bool fold(ir::Node* norm) {
    const Value* input = std::get<Value*>(norm->arguments[0]);
    ir::Node* conv = input->node;
    if (conv == nullptr || conv->op != &ops::convolution || input->users.size() != 1 ||
        graph_.is_returned(input))
      return false;
    if (std::get<bool>(conv->arguments[6]))
      return false;  // transposed: output channels are another dimension of the weight
    const float *w = constant(conv->arguments[1]), *mean = constant(norm->arguments[3]),
                *variance = constant(norm->arguments[4]);
    if (w == nullptr || mean == nullptr || variance == nullptr ||
        !is_constant_or_absent(conv->arguments[2]) || !is_constant_or_absent(norm->arguments[1]) ||
        !is_constant_or_absent(norm->arguments[2]))
      return false;
    for (size_t i = 1; i < norm->results.size(); ++i)
      if (norm->result(i) != nullptr && graph_.is_used(norm->result(i))) return false;

    const float *b = constant(conv->arguments[2]), *gamma = constant(norm->arguments[1]),
                *beta = constant(norm->arguments[2]);
    const double eps = std::get<double>(norm->arguments[6]);
    const ir::Payload& old = *payloads_.at(std::get<Value*>(conv->arguments[1]));
    const int64_t channels = old.sizes[0];
    const size_t per_channel =
        channels == 0 ? 0 : old.size_bytes / sizeof(float) / static_cast<size_t>(channels);
    std::vector<float> weight(old.size_bytes / sizeof(float)), bias(static_cast<size_t>(channels));
    for (size_t c = 0; c < bias.size(); ++c) {
      const double scale = (gamma != nullptr ? gamma[c] : 1.0) / std::sqrt(variance[c] + eps);
      for (size_t i = c * per_channel; i < (c + 1) * per_channel; ++i)
        weight[i] = static_cast<float>(w[i] * scale);
      bias[c] = static_cast<float>(((b != nullptr ? b[c] : 0.0) - mean[c]) * scale +
                                   (beta != nullptr ? beta[c] : 0.0));
    }
    graph_.set_argument(conv, 1,
                        add_constant(conv, ".weight", ir::Payload::from(weight, old.sizes)));
    graph_.set_argument(conv, 2, add_constant(conv, ".bias", ir::Payload::from(bias, {channels})));
    graph_.replace_uses(norm->result(), conv->result());
    return true;
  }

  Value* add_constant(const ir::Node* conv, const char* name,
                      std::shared_ptr<const ir::Payload> payload) {
    Value* value = graph_.add_constant(
        (conv->module.empty() ? "convolution" : conv->module) + name + ".folded", payload);
    payloads_[value] = payload.get();  // the graph keeps it alive
    return value;
  }

  ir::Graph& graph_;
  std::unordered_map<const Value*, const ir::Payload*> payloads_;
};

}  // namespace

int fold_batch_norm(ir::Graph& graph) { return BatchNormFolder(graph).run(); }

}  // namespace taper::passes
