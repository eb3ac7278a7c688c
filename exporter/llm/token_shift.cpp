#include "taper/exporter/llm/token_shift.h"

#include "taper/exporter/eager/control_flow.h"
#include "taper/exporter/eager/lazy_zeros.h"

namespace taper::llm {

using namespace eager;

namespace {
constexpr double head_norm_eps = 64e-5;  // RWKV's, for all sizes
}  // namespace

TokenShift::TokenShift(const Config& c) : state(lazy_zeros({c.batch, 1, c.hidden})) { set_names(); }

Tensor TokenShift::forward(const Tensor& x, const Step& step) {
  const Dim n = x.size(1);
  const Tensor all = cat({kept(state, step), x}, 1);
  keep(state, narrow(all, 1, n, 1), step);
  return narrow(all, 1, 0, n);
}

SmallProducts::SmallProducts(const Config& c, const Weights& weights, const std::string& name,
                             int64_t rank, bool has_offset)
    : first(weights[name + "_1"], c.hidden, rank), second(weights[name + "_2"], rank, c.hidden) {
  if (has_offset) offset = weights[name].vector({c.hidden});
  set_names();
}

Tensor SmallProducts::forward(const Tensor& x, Tensor (*act)(const Tensor&)) {
  const Tensor few = first(x);
  const Tensor y = second(act == nullptr ? few : act(few));
  return offset.defined() ? y + offset : y;
}

HeadNorm::HeadNorm(const Config& c, const Weights& weights)
    : weight(weights.vector({c.hidden})), bias(weights.vector({c.hidden}, "bias")) {
  set_names();
}

Tensor HeadNorm::forward(const Tensor& x) const {
  const Tensor y = layer_norm(x, {x.size(3)}, {}, {}, head_norm_eps);
  return y.reshape({x.size(0), x.size(1), weight.size(0)}) * weight + bias;
}

Tensor in_heads(const Tensor& x, const Config& c) {
  return x.reshape({x.size(0), x.size(1), c.heads, c.head_dim});
}

Tensor for_each_token(MatrixStep (*token)(const Tensor&, const Tensor&), Tensor& state,
                      const std::vector<Tensor>& parts, const Step& step) {
  const Tensor by_token = stack(parts, 3);  // (batch, n, heads, parts, features)
  const Dim n = by_token.size(1);
  if (n.is_constant() && n.value() == 1) {
    const MatrixStep next = token(kept(state, step), by_token.select(1, 0));
    keep(state, next.state, step);
    return next.result.unsqueeze(1);
  }
  const Scanned all = scan(
      [token](const std::vector<Tensor>& carried, const std::vector<Tensor>& slices) {
        const MatrixStep next = token(carried[0], slices[0]);
        return Scanned{{next.state}, {next.result}};
      },
      {kept(state, step)}, {transpose(by_token, 0, 1)});
  keep(state, all.carried[0], step);
  return transpose(all.results[0], 0, 1);
}

}  // namespace taper::llm
