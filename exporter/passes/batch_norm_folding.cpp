#include <cmath>
#include <unordered_map>

#include "taper/exporter/passes/match.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Value;

struct Patterns {
  match::Variable conv, weight, bias, gamma, beta, mean, variance;
  /// A batch norm that follows any convolution.
  match::Pattern candidate = match::call<ops::_native_batch_norm_legit_no_training>(
      match::arg<"input">(as(conv, match::call<ops::convolution>())));
  /// A batch norm that can be folded. In a transposed convolution, the output channels are another
  /// dimension of the weight, so it is left alone.
  match::Pattern foldable = match::call<ops::_native_batch_norm_legit_no_training>(
      match::arg<"input">(match::call<ops::convolution>(
          match::arg<"weight">(constant(weight)), match::arg<"bias">(absent_or(constant(bias))),
          match::arg<"transposed">(match::number(false)))),
      match::arg<"weight">(absent_or(constant(gamma))),
      match::arg<"bias">(absent_or(constant(beta))), match::arg<"running_mean">(constant(mean)),
      match::arg<"running_var">(constant(variance)));
};

class BatchNormFolder {
 public:
  BatchNormFolder(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {
    for (const ir::Constant& c : graph.constants()) payloads_[c.value.get()] = c.payload.get();
  }

  int run() {
    int folded = 0;
    for (auto at = graph_.nodes().begin(); at != graph_.nodes().end();) folded += visit(*at++);
    if (folded > 0) remove_dead_code(graph_, context_);
    return folded;
  }

 private:
  bool visit(const ir::Node& norm) {
    static const Patterns patterns;
    const auto candidate = find(patterns.candidate, norm);
    if (!candidate) return false;
    const auto decline = [&](const char* why) { return context_.declined(norm, why), false; };
    const Value* conv = (*candidate)[patterns.conv];
    if (conv->users.size() != 1 || graph_.is_returned(conv))
      return decline("the convolution's result is used elsewhere, too");
    const auto found = find(patterns.foldable, norm);
    if (!found)
      return decline("a weight or statistic is no constant, or the convolution is transposed");
    for (size_t i = 1; i < norm.results.size(); ++i)
      if (norm.result(i) != nullptr && graph_.is_used(norm.result(i)))
        return decline("its statistics are used");
    const auto& constants = *found;
    for (const match::Variable* v : {&patterns.weight, &patterns.bias, &patterns.gamma,
                                     &patterns.beta, &patterns.mean, &patterns.variance})
      if (constants[*v] != nullptr && constants[*v]->type.dtype != DType::f32)
        return decline("a weight or statistic is not f32");
    fold(norm, conv->node, constants, patterns);
    return true;
  }

  void fold(const ir::Node& norm, ir::Node* conv, const match::Match& constants,
            const Patterns& p) {
    const float *w = elements(constants[p.weight]), *b = elements(constants[p.bias]),
                *gamma = elements(constants[p.gamma]), *beta = elements(constants[p.beta]),
                *mean = elements(constants[p.mean]), *variance = elements(constants[p.variance]);
    const double eps = ir::Call<ops::_native_batch_norm_legit_no_training>(norm).get<"eps">();
    const ir::Payload& old = *payloads_.at(constants[p.weight]);
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
    using Convolution = ir::Call<ops::convolution>;
    graph_.set_argument(conv, Convolution::position<"weight">,
                        add_constant(conv, ".weight", ir::Payload::from(weight, old.sizes)));
    graph_.set_argument(conv, Convolution::position<"bias">,
                        add_constant(conv, ".bias", ir::Payload::from(bias, {channels})));
    context_.did(norm, "is in the weights of " + ir::describe(*conv) + " now");
    graph_.replace_uses(norm.result(), conv->result());
  }

  /// The elements of an f32 constant; nullptr for an absent one.
  const float* elements(const Value* constant) const {
    return constant == nullptr
               ? nullptr
               : reinterpret_cast<const float*>(payloads_.at(constant)->bytes.get());
  }

  Value* add_constant(const ir::Node* conv, const char* name,
                      std::shared_ptr<const ir::Payload> payload) {
    Value* value = graph_.add_constant(
        (conv->module.empty() ? "convolution" : conv->module) + name + ".folded", payload);
    payloads_[value] = payload.get();  // the graph keeps it alive
    return value;
  }

  ir::Graph& graph_;
  PassContext& context_;
  std::unordered_map<const Value*, const ir::Payload*> payloads_;
};

}  // namespace

int fold_batch_norm(ir::Graph& graph, PassContext& context) {
  return BatchNormFolder(graph, context).run();
}

}  // namespace taper::passes
