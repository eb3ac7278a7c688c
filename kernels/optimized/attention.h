// What the forward and the backward pass of attention share: the scores of a block of queries with
// a block of keys.
#pragma once
#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/attention.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/math.h"

namespace taper::optimized::attention {

inline constexpr index_t lanes = 16;  ///< rows of scores are padded with -inf to a multiple of this

using In = AnyView<const float>;
using Mask = portable::AttentionMask<float>;
template <CpuLevel level>
using Arithmetic = std::conditional_t<level == CpuLevel::portable, portable::math::Separate,
                                      portable::math::Fused>;

// Selects by bits: the compiler would make a choice between numbers a branch.
inline float shown_if(float score, uint8_t attends) {
  using namespace portable::math;
  const uint32_t keep = 0u - attends;
  return float_of((bits_of(score) & keep) | (bits_of(-HUGE_VALF) & ~keep));
}
inline void hide(float* scores, index_t n, const uint8_t* attends, index_t stride) {
  if (stride == 1) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t i = 0; i < n; ++i) scores[i] = shown_if(scores[i], attends[i]);
  } else {
    for (index_t i = 0; i < n; ++i) scores[i] = shown_if(scores[i], attends[i * stride]);
  }
}

/// scores -> scale scores + mask, in a pass along the rows of both. The tiles of a product would
/// read the mask in pieces of a dozen rows.
inline void scale_and_mask(float* scores, index_t n, float scale, const float* mask,
                           index_t stride) {
  if (stride == 1) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t i = 0; i < n; ++i) scores[i] = scores[i] * scale + mask[i];
  } else {
    for (index_t i = 0; i < n; ++i) scores[i] = scores[i] * scale + mask[i * stride];
  }
}

/// The scores of one head.
template <CpuLevel level>
class Scores {
 public:
  Scores(const portable::AttentionHeads& heads, const GemmPlan& plan, index_t head, In query,
         In key, const Mask& mask, bool is_causal, const Maybe<double>& scale)
      : scale(static_cast<float>(portable::attention_scale(scale, heads.features))),
        query_row(query.data() + heads.offset(heads.query, head)),
        key_row(key.data() + heads.offset(heads.key, head)),
        heads_(heads),
        plan_(plan),
        mask_(mask ? static_cast<const char*>(mask->ref->data) +
                         heads.offset(heads.mask, head) * size_bytes(mask->dtype())
                   : nullptr),
        adds_mask_(mask && mask->dtype() != DType::boolean),
        is_causal_(is_causal) {}

  const float scale;
  const float *const query_row, *const key_row;  ///< the first rows of query and key

  /// How many keys the first `queries` queries may attend to, as far as is_causal says.
  index_t keys_of(index_t queries) const {
    return is_causal_ ? smaller(heads_.keys, queries) : heads_.keys;
  }
  /// The scores of queries [first, first + count) and keys [at, at + n), before the mask. Call
  /// `mask` for each row to complete them.
  void multiply(index_t first, index_t count, index_t at, index_t n, float* scores,
                void* gemm_scratch) const {
    Gemm g;
    g.m = count, g.k = heads_.features, g.n = n;
    g.a = query_row + first * heads_.query.row;
    g.a_row = heads_.query.row, g.a_column = heads_.query.column;
    g.b = key_row + at * heads_.key.row, g.b_row = heads_.key.column, g.b_column = heads_.key.row;
    g.c = scores, g.c_row = round_up(n, lanes);
    if (!adds_mask_) g.alpha = scale;
    run_gemm(microkernels<level>(), plan_, g, gemm_scratch, nullptr);
  }
  /// Masks one query's row of scores, and pads it.
  void mask(index_t query, index_t at, index_t n, float* scores) const {
    const index_t place = query * heads_.mask.row + at * heads_.mask.column;
    if (adds_mask_)
      AtLevel<level, scale_and_mask>::call(
          scores, n, scale, static_cast<const float*>(mask_) + place, heads_.mask.column);
    else if (mask_ != nullptr)
      AtLevel<level, hide>::call(scores, n, static_cast<const uint8_t*>(mask_) + place,
                                 heads_.mask.column);
    const index_t shown = is_causal_ ? smaller(n, larger(0, query + 1 - at)) : n;
    for (index_t i = shown; i < round_up(n, lanes); ++i) scores[i] = -HUGE_VALF;
  }

 private:
  const portable::AttentionHeads& heads_;
  const GemmPlan& plan_;
  const void* mask_;
  bool adds_mask_, is_causal_;
};

/// Hands out parts of a task's scratch.
class Parts {
 public:
  explicit Parts(void* memory) : at_(static_cast<char*>(memory)) {}
  void* bytes(index_t size) {
    void* taken = at_;
    at_ += size;
    return taken;
  }
  float* floats(index_t count) { return static_cast<float*>(bytes(bytes_of_floats(count))); }

 private:
  char* at_;
};

}  // namespace taper::optimized::attention
