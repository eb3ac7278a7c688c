#include "taper/exporter/llm/cross_attention.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/full_attention.h"

namespace taper::llm {

using namespace eager;

CrossAttention::CrossAttention(const Config& c, const Weights& weights)
    : q(weights["q"], c.hidden, c.heads * c.head_dim),
      k(weights["k"], c.hidden, c.heads * c.head_dim),
      v(weights["v"], c.hidden, c.heads * c.head_dim),
      out(weights["out"], c.heads * c.head_dim, c.hidden),
      cache(c.batch, c.heads, c.source_capacity, c.head_dim, c.source_cache),
      heads_(c.heads),
      head_dim_(c.head_dim),
      scale_(c.attention_scale) {
  set_names();
}

Tensor CrossAttention::in_heads(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), heads_, head_dim_}).transpose(1, 2);
}

void CrossAttention::read(const Tensor& states) {
  ModuleScope scope(name());
  const Tensor start = zeros({states.size(0)}, DType::i64);
  cache.write(cache.turned(in_heads(k(states))), cache.turned_values(in_heads(v(states))), start);
}

Tensor CrossAttention::forward(const Tensor& x, const Tensor& last) {
  // All n queries of a head stand at one position. So they are n heads that share keys.
  const Dim batch = x.size(0), n = x.size(1);
  const Tensor turned = cache.turned(in_heads(q(x)));
  const Tensor queries = turned.reshape({batch, heads_ * n, 1, head_dim_});
  CachedAttentionOptions options;
  options.scale = scale_;
  const Tensor y = attention_cached(queries, cache.key, cache.value, last, options);
  const Tensor by_head = cache.turned_values(y.reshape({batch, heads_, n, head_dim_}));
  return out(by_head.transpose(1, 2).reshape({batch, n, heads_ * head_dim_}));
}

CrossLayer::CrossLayer(const Config& c, const Weights& weights, int64_t layer, Norm::Kind norm)
    : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, norm),
      attention(c, weights["attention"], layer),
      cross_norm(weights["cross_norm"], {c.hidden}, c.norm_eps, norm),
      cross(c, weights["cross"]),
      mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, norm),
      mlp(make_mlp(c, weights["mlp"])) {
  set_names();
}

Tensor CrossLayer::forward(const Tensor& input, const Step& step) {
  Tensor x = input + attention(attention_norm(input), step);
  x = x + cross(cross_norm(x), step.source_last);
  return x + (*mlp)(mlp_norm(x));
}

}  // namespace taper::llm
