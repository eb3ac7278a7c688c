// Attention over a cache. A block of queries takes the keys block by block, as in attention.cpp;
// the blocks begin at multiples of 512, whatever the queries, so that the result of a query depends
// neither on its neighbours nor on how a text was cut into calls. The work follows the positions
// of the queries, not the size of the cache.
#include "taper/kernels/portable/cached_attention.h"

#include <cmath>
#include <cstring>

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/online_softmax.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/shapes/cached_attention.h"

namespace taper::optimized {
namespace {

using namespace attention;
using portable::CachedHeads;
using PerHead = Maybe<View<const float>>;

constexpr index_t most_rows = 128, key_block = 512;

/// A task is a block of rows of one head of the keys. If there is one query, its rows are the heads
/// that share these keys, so that keys are read once. Else its rows are queries of one head.
struct Plan : CachedHeads {
  bool rows_are_heads;
  index_t rows, row_block, blocks;  ///< rows of a group, rows of a task, tasks of a group
  index_t groups;                   ///< of rows, in a row of the batch
  GemmPlan scores, sums;
  index_t slots, gemm_bytes, bytes_per_slot;
};

template <CpuLevel level>
Error prepare(Context& context, Plan& plan, In query, In key, In value, View<const int64_t>, double,
              int64_t window, double, PerHead, PerHead, View<float>) {
  plan = {portable::cached_heads(query.shape(), key.shape(), value.shape(), window)};
  plan.rows_are_heads = plan.queries == 1;
  plan.rows = plan.rows_are_heads ? plan.sharing : plan.queries;
  plan.groups = plan.rows_are_heads ? key.shape().sizes[1] : plan.heads;
  plan.row_block = smaller(larger(plan.rows, 1), most_rows);
  plan.blocks = ceil_div(plan.rows, plan.row_block);
  // scratch must not shrink when queries become more: one query has as many rows as heads share
  const index_t rows = smaller(larger(larger(plan.queries, plan.sharing), 1), most_rows),
                keys = smaller(plan.capacity, key_block);
  plan.scores = plan_gemm(microkernels<level>(), 1, rows, keys, plan.features, 1);
  plan.sums = plan_gemm(microkernels<level>(), 1, rows, plan.values, keys, 1);
  plan.slots = thread_count(context.threads);
  plan.gemm_bytes = larger(plan.scores.bytes_per_slot, plan.sums.bytes_per_slot);
  plan.bytes_per_slot = plan.gemm_bytes + bytes_of(rows * round_up(keys, lanes)) +
                        bytes_of(rows * plan.values) + 2 * bytes_of(rows);
  context.need_scratch(static_cast<size_t>(plan.slots * plan.bytes_per_slot));
  return Error::ok;
}

struct Numbers {
  float scale, softcap;
  const float *sinks, *slopes;  ///< nullptr: none
};

void cap_scores(float* scores, index_t n, float cap) {
  for (index_t i = 0; i < n; ++i) scores[i] = cap * std::tanh(scores[i] / cap);
}
void add_slope(float* scores, index_t n, float slope, float distance) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) scores[i] += slope * (distance + static_cast<float>(i));
}

template <CpuLevel level>
class Block {
 public:
  const Plan& plan;
  const Numbers& numbers;
  const float *query, *key, *value;  ///< of the first row; of the head
  index_t position, head;            ///< of the first row
  index_t count;
  float* out;
  void* gemm;
  float *scores, *part, *peaks, *sums;

  void run() const {
    for (index_t r = 0; r < count; ++r) {
      const float* sink = numbers.sinks != nullptr ? numbers.sinks + head_of(r) : nullptr;
      peaks[r] = sink != nullptr ? *sink : -HUGE_VALF, sums[r] = sink != nullptr ? 1 : 0;
      std::memset(row(r), 0, static_cast<size_t>(plan.values) * sizeof(float));
    }
    const index_t end = position_of(count - 1) + 1,
                  begin = plan.first_key(position) / key_block * key_block;
    for (index_t at = begin; at < end; at += key_block) add_keys(at, smaller(key_block, end - at));
    for (index_t r = 0; r < count; ++r) AtLevel<level, divide>::call(row(r), plan.values, sums[r]);
  }

 private:
  index_t position_of(index_t r) const { return plan.rows_are_heads ? position : position + r; }
  index_t head_of(index_t r) const { return plan.rows_are_heads ? head + r : head; }
  float* row(index_t r) const {
    return out + r * plan.values * (plan.rows_are_heads ? 1 : plan.heads);
  }

  void add_keys(index_t at, index_t n) const {
    Gemm g;
    g.m = count, g.k = plan.features, g.n = n;
    g.a = query, g.a_column = plan.query.feature;
    g.a_row = plan.rows_are_heads ? plan.query.head : plan.query.row;
    g.b = key + at * plan.key.row, g.b_row = plan.key.feature, g.b_column = plan.key.row;
    g.c = scores, g.c_row = round_up(n, lanes);
    g.alpha = numbers.scale;
    run_gemm(microkernels<level>(), plan.scores, g, gemm, nullptr);
    float factors[most_rows];
    for (index_t r = 0; r < count; ++r) factors[r] = weigh(r, at, n);
    multiply_values(at, n);
    for (index_t r = 0; r < count; ++r)
      AtLevel<level, scale_and_add>::call(row(r), plan.values, factors[r], part + r * plan.values);
  }
  void multiply_values(index_t at, index_t n) const {
    Gemm g;
    g.m = count, g.k = n, g.n = plan.values;
    g.a = scores, g.a_row = round_up(n, lanes);
    g.b = value + at * plan.value.row, g.b_row = plan.value.row, g.b_column = plan.value.feature;
    g.c = part, g.c_row = plan.values;
    run_gemm(microkernels<level>(), plan.sums, g, gemm, nullptr);
  }
  /// Turns the scores of row r into weights. Returns the factor for the sums of earlier blocks.
  float weigh(index_t r, index_t at, index_t n) const {
    const index_t width = round_up(n, lanes), own = position_of(r);
    float* const x = scores + r * width;
    if (numbers.softcap > 0) cap_scores(x, n, numbers.softcap);
    if (numbers.slopes != nullptr)
      AtLevel<level, add_slope>::call(x, n, numbers.slopes[head_of(r)],
                                      static_cast<float>(at - own));
    const index_t hidden = smaller(n, larger(0, plan.first_key(own) - at)),
                  shown = smaller(n, larger(0, own + 1 - at));
    for (index_t i = 0; i < hidden; ++i) x[i] = -HUGE_VALF;
    for (index_t i = shown; i < width; ++i) x[i] = -HUGE_VALF;
    const float before = peaks[r];
    const float sum = AtLevel<level, exponentials<Arithmetic<level>>>::call(x, width, &peaks[r]);
    // avoids exp(-inf - -inf) if there were no sums before
    const float factor = before == peaks[r] ? 1 : portable::math::exp(before - peaks[r]);
    sums[r] = sums[r] * factor + sum;
    return factor;
  }
};

template <CpuLevel level>
Error run(Context& context, const Plan& plan, In query, In key, In value, View<const int64_t> start,
          double scale, int64_t, double softcap, PerHead sinks, PerHead slopes, View<float> out) {
  TAPER_TRY(portable::check_places(context, start, plan.queries, plan.capacity));
  const Numbers numbers{static_cast<float>(scale), static_cast<float>(softcap),
                        sinks ? sinks->data() : nullptr, slopes ? slopes->data() : nullptr};
  const index_t rows = smaller(larger(larger(plan.queries, plan.sharing), 1), most_rows);
  const index_t per_batch = plan.groups * plan.blocks;
  parallel_for_threads(context.threads, plan.batch * per_batch, [&](index_t task, index_t slot) {
    const index_t b = task / per_batch, group = task % per_batch / plan.blocks,
                  first = task % plan.blocks * plan.row_block;
    const index_t head = plan.rows_are_heads ? group * plan.sharing + first : group,
                  i = plan.rows_are_heads ? 0 : first, own = head / plan.sharing;
    Parts parts(static_cast<char*>(context.scratch) + slot * plan.bytes_per_slot);
    void* gemm = parts.bytes(plan.gemm_bytes);
    float* scores = parts.floats(rows * round_up(smaller(plan.capacity, key_block), lanes));
    float* part = parts.floats(rows * plan.values);
    float *peaks = parts.floats(rows), *sums = parts.floats(rows);
    Block<level>{plan,
                 numbers,
                 query.data() + b * plan.query.batch + head * plan.query.head + i * plan.query.row,
                 key.data() + b * plan.key.batch + own * plan.key.head,
                 value.data() + b * plan.value.batch + own * plan.value.head,
                 static_cast<index_t>(start.data()[b]) + i,
                 head,
                 smaller(plan.row_block, plan.rows - first),
                 out.data() + ((b * plan.queries + i) * plan.heads + head) * plan.values,
                 gemm,
                 scores,
                 part,
                 peaks,
                 sums}
        .run();
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL_LEVELS(taper_attention_cached, prepare, run)

}  // namespace taper::optimized
