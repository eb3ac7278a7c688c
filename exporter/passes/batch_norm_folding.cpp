#include <cmath>
#include <unordered_map>

#include "taper/exporter/passes/folded_norms.h"
#include "taper/exporter/passes/match.h"

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
    for (const ir::Constant& c : graph.constants()) parts_[c.value.get()] = {c.path, c.payload};
  }

  std::vector<FoldedNorm> run() {
    for (auto at = graph_.nodes().begin(); at != graph_.nodes().end();) visit(*at++);
    if (!norms_.empty()) remove_dead_code(graph_, context_);
    return std::move(norms_);
  }

 private:
  void visit(const ir::Node& norm) {
    static const Patterns patterns;
    const auto candidate = find(patterns.candidate, norm);
    if (!candidate) return;
    const auto decline = [&](const char* why) { context_.declined(norm, why); };
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
  }

  void fold(const ir::Node& norm, ir::Node* conv, const match::Match& constants,
            const Patterns& p) {
    const ir::Call<ops::_native_batch_norm_legit_no_training> call(norm);
    FoldedNorm of;
    of.weight = part(constants[p.weight]), of.bias = part(constants[p.bias]);
    of.gamma = part(constants[p.gamma]), of.beta = part(constants[p.beta]);
    of.mean = part(constants[p.mean]), of.variance = part(constants[p.variance]);
    of.eps = call.get<"eps">(), of.momentum = call.get<"momentum">();
    const std::string module = conv->module.empty() ? "convolution" : conv->module;
    of.weight_path = module + ".weight.folded", of.bias_path = module + ".bias.folded";
    const FoldedProduct product = folded(of);
    const std::vector<int64_t>& sizes = of.weight.payload->sizes;
    using Convolution = ir::Call<ops::convolution>;
    graph_.set_argument(conv, Convolution::position<"weight">,
                        add_constant(of.weight_path, ir::Payload::from(product.weight, sizes)));
    graph_.set_argument(conv, Convolution::position<"bias">,
                        add_constant(of.bias_path, ir::Payload::from(product.bias, {sizes[0]})));
    context_.did(norm, "is in the weights of " + ir::describe(*conv) + " now");
    graph_.replace_uses(norm.result(), conv->result());
    norms_.push_back(std::move(of));
  }

  FoldedNorm::Part part(const Value* constant) const {
    return constant == nullptr ? FoldedNorm::Part() : parts_.at(constant);
  }
  Value* add_constant(const std::string& path, std::shared_ptr<const ir::Payload> payload) {
    Value* value = graph_.add_constant(path, payload);
    parts_[value] = {path, std::move(payload)};
    return value;
  }

  ir::Graph& graph_;
  PassContext& context_;
  std::unordered_map<const Value*, FoldedNorm::Part> parts_;
  std::vector<FoldedNorm> norms_;
};

/// nullptr for an absent part.
const float* elements(const FoldedNorm::Part& part) {
  return part.payload == nullptr ? nullptr
                                 : reinterpret_cast<const float*>(part.payload->bytes.get());
}

}  // namespace

FoldedProduct folded(const FoldedNorm& norm) {
  const float *w = elements(norm.weight), *b = elements(norm.bias), *gamma = elements(norm.gamma),
              *beta = elements(norm.beta), *mean = elements(norm.mean),
              *variance = elements(norm.variance);
  const ir::Payload& old = *norm.weight.payload;
  const auto channels = static_cast<size_t>(old.sizes[0]);
  const size_t count = old.size_bytes / sizeof(float),
               per_channel = channels == 0 ? 0 : count / channels;
  FoldedProduct made{std::vector<float>(count), std::vector<float>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    const double scale = (gamma != nullptr ? gamma[c] : 1.0) / std::sqrt(variance[c] + norm.eps);
    for (size_t i = c * per_channel; i < (c + 1) * per_channel; ++i)
      made.weight[i] = static_cast<float>(w[i] * scale);
    made.bias[c] = static_cast<float>(((b != nullptr ? b[c] : 0.0) - mean[c]) * scale +
                                      (beta != nullptr ? beta[c] : 0.0));
  }
  return made;
}

std::vector<FoldedNorm> fold_batch_norms(ir::Graph& graph, PassContext& context) {
  return BatchNormFolder(graph, context).run();
}
int fold_batch_norm(ir::Graph& graph, PassContext& context) {
  return static_cast<int>(fold_batch_norms(graph, context).size());
}

}  // namespace taper::passes
