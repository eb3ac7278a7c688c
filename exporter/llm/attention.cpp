#include "taper/exporter/llm/attention.h"

#include <bit>
#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/causal_attention.h"

namespace taper::llm {

using namespace eager;

namespace {

/// (batch, n, heads * head_dim) -> (batch, n, heads, head_dim)
Tensor in_heads(const Tensor& x, int64_t heads, int64_t head_dim) {
  return x.reshape({x.size(0), x.size(1), heads, head_dim});
}

/// Of each head, or none. A GGUF file holds them as a weight.
Tensor sinks_of(const Weights& attention, int64_t heads) {
  const Tensor sinks = attention.vector_if({heads}, "sinks");
  return sinks.defined() ? sinks : attention["sinks"].vector_if({heads}, "weight");
}

std::vector<float> powers(double first, double ratio, int64_t count) {
  std::vector<float> list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back(static_cast<float>(first * std::pow(ratio, static_cast<double>(i))));
  return list;
}

}  // namespace

std::vector<float> alibi_slopes(int64_t heads) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const double ratio = std::exp2(-8.0 / static_cast<double>(whole));
  std::vector<float> slopes = powers(ratio, ratio, whole);
  // the remaining heads take every second slope of twice as many heads
  const std::vector<float> between = powers(std::sqrt(ratio), ratio, heads - whole);
  slopes.insert(slopes.end(), between.begin(), between.end());
  return slopes;
}

Attention::Attention(const Config& c, const Weights& weights, int64_t layer,
                     const AttentionOptions& options)
    : out(weights["out"], c.heads * c.head_dim, c.hidden, options.stored),
      sinks(sinks_of(weights, c.heads)),
      cache(c.batch, c.kv_heads, c.capacity, c.head_dim, c.cache),
      config_(c),
      layer_(layer),
      options_(options) {
  make_projections(weights);
  make_norms(weights);
  if (options.alibi) slopes = Tensor::from(alibi_slopes(c.heads), {c.heads});
  set_names();
}

void Attention::make_projections(const Weights& weights) {
  const int64_t own = config_.heads * config_.head_dim,
                shared = config_.kv_heads * config_.head_dim;
  const auto linear = [&](const char* part, int64_t features) {
    return std::make_unique<Linear>(weights[part], config_.hidden, features, options_.stored);
  };
  if (options_.projections == Projections::separate)
    q = linear("q", own), k = linear("k", shared), v = linear("v", shared);
  else
    qkv = linear("qkv", own + 2 * shared);
}

void Attention::make_norms(const Weights& weights) {
  using enum AttentionOptions::QkNorm;
  if (options_.qk_norm == none || options_.qk_norm == unit) return;
  const int64_t d = config_.head_dim;
  const auto norm = [&](const char* part, int64_t heads) {
    const Ints sizes = options_.qk_norm == per_head    ? Ints{d}
                       : options_.qk_norm == all_heads ? Ints{heads * d}
                                                       : Ints{heads, d};
    return std::make_unique<Norm>(weights[part], sizes, config_.norm_eps, options_.norm);
  };
  q_norm = norm("q_norm", config_.heads), k_norm = norm("k_norm", config_.kv_heads);
}

Attention::Heads Attention::separate(const Tensor& x) {
  Tensor queries = (*q)(x), keys = (*k)(x);
  if (options_.qk_norm == AttentionOptions::QkNorm::all_heads)
    queries = (*q_norm)(queries), keys = (*k_norm)(keys);
  const int64_t d = config_.head_dim;
  return {in_heads(queries, config_.heads, d), in_heads(keys, config_.kv_heads, d),
          in_heads((*v)(x), config_.kv_heads, d)};
}

Attention::Heads Attention::split_groups(const Tensor& joint) const {
  const int64_t groups = config_.kv_heads, sharing = config_.heads / groups, d = config_.head_dim;
  const Dim batch = joint.size(0), n = joint.size(1);
  const Tensor x = joint.reshape({batch, n, groups, sharing + 2, d});
  return {narrow(x, 3, 0, sharing).reshape({batch, n, config_.heads, d}), x.select(3, sharing),
          x.select(3, sharing + 1)};
}

Attention::Heads Attention::project(const Tensor& x) {
  if (options_.projections == Projections::separate) return separate(x);
  const Tensor joint = (*qkv)(x);
  if (options_.projections == Projections::by_group) return split_groups(joint);
  const int64_t heads = config_.heads, shared = config_.kv_heads;
  const Tensor all = in_heads(joint, heads + 2 * shared, config_.head_dim);
  return {narrow(all, 2, 0, heads), narrow(all, 2, heads, shared),
          narrow(all, 2, heads + shared, shared)};
}

CachedAttentionOptions Attention::scores() const {
  CachedAttentionOptions o;
  o.scale = config_.attention_scale;
  if (config_.scales_by_layer) o.scale /= static_cast<double>(layer_ + 1);
  o.window = config_.is_windowed(layer_) && !config_.window_jumps ? config_.window : 0;
  o.softcap = config_.attention_softcap;
  o.slopes = slopes, o.sinks = sinks;
  return o;
}

const Tensor& Attention::bias_of(const Step& step) const {
  return config_.is_windowed(layer_) && step.jumping_window.defined() ? step.jumping_window
                                                                      : step.score_bias;
}

/// (batch, heads, n, head_dim) -> (batch, n, heads, head_dim)
Tensor Attention::attend(const Tensor& queries, const Step& step) {
  const Tensor& bias = bias_of(step);
  if (!bias.defined()) {
    CachedAttentionOptions options = scores();
    options.batch = step.batch;
    return attention_cached(queries, cache.key, cache.value, step.start, options);
  }
  const bool shares_keys = config_.kv_heads != config_.heads;
  return scaled_dot_product_attention(queries, rows_of(cache.key, step), rows_of(cache.value, step),
                                      bias, 0, false, config_.attention_scale, shares_keys)
      .transpose(1, 2);
}

void Attention::norm_heads(Heads& heads) {
  using enum AttentionOptions::QkNorm;
  if (options_.qk_norm == unit) {
    const auto of_head = [&](const Tensor& x) {
      return rms_norm(x, Dims{config_.head_dim}, {}, config_.norm_eps);
    };
    heads.q = of_head(heads.q), heads.k = of_head(heads.k);
  } else if (q_norm && options_.qk_norm != all_heads) {
    heads.q = (*q_norm)(heads.q), heads.k = (*k_norm)(heads.k);
  }
}

/// K. Nakanishi, "Scalable-softmax is superior for attention", arXiv:2501.19399.
Tensor Attention::by_temperature(const Tensor& queries, const Step& step) const {
  if (config_.temperature_scale == 0 || config_.is_turned(layer_)) return queries;
  const Tensor count = floor((step.positions.to(DType::f32) + 1) / config_.temperature_floor);
  const Tensor factor = log1p(count) * config_.temperature_scale + 1;  // (batch, n)
  return queries * factor.unsqueeze(1).unsqueeze(-1);
}

/// Writes keys and values, and attends to all that the cache has then.
Tensor Attention::attend_to_cache(const Heads& heads, const Step& step) {
  const Tensor queries = cache.turned(heads.q), keys = cache.turned(heads.k);
  cache.write(keys, cache.turned_values(heads.v).transpose(1, 2), step.start, step.batch);
  return cache.turned_values(attend(queries, step));
}

Tensor Attention::forward(const Tensor& x, const Step& step) {
  Heads heads = project(x);
  norm_heads(heads);
  const Rotation& rotation = step.rotation_of(config_, layer_);
  heads.q = by_temperature(rotate(heads.q.transpose(1, 2), rotation), step);
  heads.k = rotate(heads.k.transpose(1, 2), rotation);
  const Tensor y = step.is_whole ? causal_attention(heads.q, heads.k, heads.v.transpose(1, 2),
                                                    scores(), bias_of(step))
                                 : attend_to_cache(heads, step);
  return out(y.reshape({x.size(0), x.size(1), config_.heads * config_.head_dim}));
}

}  // namespace taper::llm
