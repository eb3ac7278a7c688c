// Attention without the matrix of scores: a block of queries takes the keys block by block. Each
// query keeps its peak m, the sum l of exp(score - m), and the sum of exp(score - m) value. When a
// later block raises the peak, both sums are multiplied by exp(m_old - m_new). (As in
// portable/attention.cpp. Blocks of queries: M. N. Rabe, C. Staats, "Self-attention does not need
// O(n^2) memory", arXiv:2112.05682.)
//
// The blocks of keys are the same for every query. So the result of a query depends neither on its
// neighbours nor on threads. Causal attention skips the keys behind a block of queries, so a NaN
// among their values has no effect.
#include "taper/kernels/optimized/attention.h"

#include <cstring>
#include <type_traits>

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/online_softmax.h"
#include "taper/kernels/shapes/attention.h"

namespace taper::optimized {
namespace {

using namespace attention;
using portable::Heads;

constexpr index_t most_queries = 256, most_causal_queries = 128, key_block = 512;

struct Plan : portable::AttentionHeads {
  index_t query_block;
  GemmPlan scores, sums;
  index_t slots, gemm_bytes, bytes_per_slot;
};

/// If each head has one query, the heads that share keys become one head with several queries. Then
/// keys are read once.
void join_shared_heads(Plan& plan) {
  const index_t sharing = plan.key.sharing;
  if (plan.queries != 1 || sharing <= 1 || plan.value.sharing != sharing) return;
  const int head = plan.rank - 1;
  plan.sizes[head] /= sharing, plan.count /= sharing, plan.queries = sharing;
  for (Heads* h : {&plan.query, &plan.mask, &plan.result})
    h->row = h->strides[head], h->strides[head] *= sharing;
  plan.key.sharing = plan.value.sharing = 1;
}

/// `out`: the shape of a result whose heads lie before its queries.
template <CpuLevel level>
void make_plan(Context& context, Plan& plan, In query, In key, In value, const Mask& mask,
               bool is_causal, const Shape& out) {
  plan = {portable::attention_heads(query.shape(), key.shape(), value.shape(),
                                    mask ? &mask->shape() : nullptr, out)};
  if (!is_causal) join_shared_heads(plan);

  const index_t blocks =
      larger(1, ceil_div(plan.queries, is_causal ? most_causal_queries : most_queries));
  plan.query_block = larger(1, ceil_div(plan.queries, blocks));
  const index_t rows = smaller(larger(plan.queries, 1), most_queries),
                keys = smaller(plan.keys, key_block);
  plan.scores = plan_gemm(microkernels<level>(), 1, rows, keys, plan.features, 1);
  plan.sums = plan_gemm(microkernels<level>(), 1, rows, plan.values, keys, 1);
  plan.slots = thread_count(context.threads);
  plan.gemm_bytes = larger(plan.scores.bytes_per_slot, plan.sums.bytes_per_slot);
  plan.bytes_per_slot = plan.gemm_bytes + bytes_of_floats(rows * round_up(keys, lanes)) +
                        bytes_of_floats(rows * plan.values) + 2 * bytes_of_floats(rows);
  context.need_scratch(static_cast<size_t>(plan.slots * plan.bytes_per_slot));
}

// ---- a block of queries ----

struct Scratch {
  void* gemm;
  float *scores, *part, *peaks, *sums;
};

template <CpuLevel level>
class Block {
 public:
  const Plan& plan;
  Scores<level> scores;  // those of the head
  const float* value;
  index_t first, count;    // of the queries
  float *out, *logsumexp;  // of the first query; `logsumexp` may be nullptr
  Scratch scratch;

  void run() const {
    for (index_t r = 0; r < count; ++r) scratch.peaks[r] = -HUGE_VALF, scratch.sums[r] = 0;
    const index_t keys = scores.keys_of(first + count);
    for (index_t at = 0; at < keys; at += key_block) {
      const index_t n = smaller(key_block, keys - at);
      scores.multiply(first, count, at, n, scratch.scores, scratch.gemm);
      float scales[most_queries];
      for (index_t r = 0; r < count; ++r) scales[r] = weigh(r, at, n);
      if (at == 0) {
        multiply_values(at, n, out, plan.result.row);
        continue;
      }
      multiply_values(at, n, scratch.part, plan.values);
      for (index_t r = 0; r < count; ++r)
        AtLevel<level, scale_and_add>::call(out + r * plan.result.row, plan.values, scales[r],
                                            scratch.part + r * plan.values);
    }
    for (index_t r = 0; r < count; ++r) {
      float* y = out + r * plan.result.row;
      const float sum = scratch.sums[r];
      if (sum == 0)  // nothing to attend to
        std::memset(y, 0, static_cast<size_t>(plan.values) * sizeof(float));
      else
        AtLevel<level, divide>::call(y, plan.values, sum);
      if (logsumexp != nullptr)
        logsumexp[r] = sum == 0 ? -HUGE_VALF : scratch.peaks[r] + portable::math::log(sum);
    }
  }

 private:
  /// Turns the scores of query r into weights. Returns the factor for the sums of earlier blocks.
  float weigh(index_t r, index_t at, index_t n) const {
    const index_t width = round_up(n, lanes);
    float* const row = scratch.scores + r * width;
    scores.mask(first + r, at, n, row);
    float& peak = scratch.peaks[r];
    const float before = peak;
    const float sum = AtLevel<level, exponentials<Arithmetic<level>>>::call(row, width, &peak);
    // avoids exp(-inf - -inf) if there were no sums before
    const float factor = before == peak ? 1 : portable::math::exp(before - peak);
    scratch.sums[r] = scratch.sums[r] * factor + sum;
    return factor;
  }
  void multiply_values(index_t at, index_t n, float* to, index_t to_row) const {
    Gemm g;
    g.m = count, g.k = n, g.n = plan.values;
    g.a = scratch.scores, g.a_row = round_up(n, lanes);
    g.b = value + at * plan.value.row, g.b_row = plan.value.row, g.b_column = plan.value.column;
    g.c = to, g.c_row = to_row;
    run_gemm(microkernels<level>(), plan.sums, g, scratch.gemm, nullptr);
  }
};

template <CpuLevel level>
void attend(Context& context, const Plan& plan, In query, In key, In value, const Mask& mask,
            bool is_causal, const Maybe<double>& scale, float* out, float* logsumexp) {
  const index_t blocks = ceil_div(plan.queries, plan.query_block),
                rows = smaller(larger(plan.queries, 1), most_queries);
  parallel_for_threads(context.threads, plan.count * blocks, [&](index_t task, index_t slot) {
    const index_t head = task / blocks, first = task % blocks * plan.query_block,
                  row = head * plan.queries + first;
    Parts parts(static_cast<char*>(context.scratch) + slot * plan.bytes_per_slot);
    Scratch s;
    s.gemm = parts.bytes(plan.gemm_bytes);
    s.scores = parts.floats(rows * round_up(smaller(plan.keys, key_block), lanes));
    s.part = parts.floats(rows * plan.values);
    s.peaks = parts.floats(rows), s.sums = parts.floats(rows);
    Block<level>{plan,
                 {plan, plan.scores, head, query, key, mask, is_causal, scale},
                 value.data() + plan.offset(plan.value, head),
                 first,
                 smaller(plan.query_block, plan.queries - first),
                 out + plan.offset(plan.result, head) + first * plan.result.row,
                 logsumexp != nullptr ? logsumexp + row : nullptr,
                 s}
        .run();
  });
}

template <CpuLevel level>
Error prepare(Context& context, Plan& plan, In query, In key, In value, Mask mask, double dropout_p,
              bool is_causal, Maybe<double>, bool, View<float> out) {
  if (dropout_p != 0) return portable::no_dropout(context);
  make_plan<level>(context, plan, query, key, value, mask, is_causal, out.shape());
  return Error::ok;
}
template <CpuLevel level>
Error run(Context& context, const Plan& plan, In query, In key, In value, Mask mask, double,
          bool is_causal, Maybe<double> scale, bool, View<float> out) {
  attend<level>(context, plan, query, key, value, mask, is_causal, scale, out.data(), nullptr);
  return Error::ok;
}

template <CpuLevel level>
Error prepare_heads_last(Context& context, Plan& plan, In query, In key, In value, Mask mask,
                         bool is_causal, Maybe<double>, bool, View<float> out) {
  make_plan<level>(context, plan, query, key, value, mask, is_causal,
                   portable::heads_first(out.shape()));
  return Error::ok;
}
template <CpuLevel level>
Error run_heads_last(Context& context, const Plan& plan, In query, In key, In value, Mask mask,
                     bool is_causal, Maybe<double> scale, bool, View<float> out) {
  attend<level>(context, plan, query, key, value, mask, is_causal, scale, out.data(), nullptr);
  return Error::ok;
}

template <CpuLevel level>
Error prepare_flash(Context& context, Plan& plan, In query, In key, In value, double dropout_p,
                    bool is_causal, Mask mask, Maybe<double> scale, View<float> out, View<float>) {
  return prepare<level>(context, plan, query, key, value, mask, dropout_p, is_causal, scale, false,
                        out);
}
template <CpuLevel level>
Error run_flash(Context& context, const Plan& plan, In query, In key, In value, double,
                bool is_causal, Mask mask, Maybe<double> scale, View<float> out,
                View<float> logsumexp) {
  attend<level>(context, plan, query, key, value, mask, is_causal, scale, out.data(),
                logsumexp.data());
  return Error::ok;
}

}  // namespace

TAPER_KERNEL_LEVELS(scaled_dot_product_attention, prepare, run)
TAPER_KERNEL_LEVELS(taper_attention, prepare_heads_last, run_heads_last)
TAPER_KERNEL_LEVELS(_scaled_dot_product_flash_attention_for_cpu, prepare_flash, run_flash)

}  // namespace taper::optimized
