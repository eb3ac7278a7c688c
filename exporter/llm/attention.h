// Attention over a cache, in all the variations of the families.
#pragma once
#include <memory>

#include "taper/exporter/llm/blocks.h"
#include "taper/exporter/llm/cache.h"
#include "taper/exporter/llm/step.h"

namespace taper::llm {

/// How a checkpoint holds the projections of queries, keys and values.
enum class Projections : uint8_t {
  separate,
  joint,     ///< one matrix: all heads of the queries, then of the keys, then of the values
  by_group,  ///< one matrix: for each head of keys its queries, then the key, then the value
};

struct AttentionOptions {
  Projections projections = Projections::separate;
  Linear::Stored stored = Linear::Stored::out_in;
  /// Norms of queries and keys: none, of each head, of all heads together, of each head with its
  /// own weights, of each head without weights.
  enum class QkNorm : uint8_t {
    none,
    per_head,
    all_heads,
    own_weights,
    unit
  } qk_norm = QkNorm::none;
  Norm::Kind norm = Norm::Kind::rms;
  bool alibi = false;  ///< scores fall with the distance
};

/// Scaled dot product attention with grouped heads. Positions, windows, soft caps and scales are
/// those of the configuration.
class Attention : public nn::Module {
 public:
  Attention(const Config& config, const Weights& weights, int64_t layer,
            const AttentionOptions& options = {});

  std::unique_ptr<Linear> q, k, v, qkv;
  Linear out;
  std::unique_ptr<Norm> q_norm, k_norm;
  Tensor slopes, sinks;
  Cache cache;
  TAPER_LAYER(q, k, v, qkv, out, q_norm, k_norm, slopes, sinks, cache)

  /// x (batch, n, hidden) -> (batch, n, hidden)
  Tensor forward(const Tensor& x, const Step& step);
  Tensor operator()(const Tensor& x, const Step& step) {
    eager::ModuleScope scope(name());
    return forward(x, step);
  }

 private:
  struct Heads {
    /// (batch, n, heads, head_dim). Rotary embedding turns q and k to (batch, heads, n, head_dim).
    Tensor q, k, v;
  };
  Heads project(const Tensor& x);
  Heads separate(const Tensor& x);
  Heads split_groups(const Tensor& joint) const;
  void make_projections(const Weights& weights);
  void make_norms(const Weights& weights);
  void norm_heads(Heads& heads);
  Tensor by_temperature(const Tensor& queries, const Step& step) const;
  eager::CachedAttentionOptions scores() const;
  const Tensor& bias_of(const Step& step) const;
  Tensor attend(const Tensor& queries, const Step& step);
  Tensor attend_to_cache(const Heads& heads, const Step& step);

  Config config_;
  int64_t layer_;
  AttentionOptions options_;
};

/// ALiBi: the slope of each head. O. Press and others, "Train short, test long", arXiv:2108.12409.
std::vector<float> alibi_slopes(int64_t heads);

}  // namespace taper::llm
