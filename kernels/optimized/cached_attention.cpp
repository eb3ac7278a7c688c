// Attention over a cache. A block of queries takes the keys block by block. Each block has sums of
// its own, relative to its largest score, which are merged in the order of the blocks. Blocks begin
// at multiples of 512, whatever the queries. So the result of a query depends neither on its
// neighbours nor on how a text was cut into calls, and a single query can be shared among threads:
// a task is then a block of keys. (T. Dao and others, "Flash-Decoding for long-context inference",
// 2023.) The work follows the positions of the queries, not the size of the cache.
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
using portable::CacheRows;
using PerHead = Maybe<View<const float>>;

constexpr index_t most_rows = 128, key_block = 512;

/// A group of rows reads one head of the keys. If there is one query, its rows are the heads that
/// share these keys, so that keys are read once. Else its rows are queries of one head.
struct Plan : CachedHeads {
  bool one_query;
  index_t rows, row_block, blocks;  ///< of a group; of a block of rows; blocks of a group
  index_t groups;                   ///< in a row of the batch
  GemmPlan scores, sums;
  index_t slots, gemm_bytes, bytes_per_slot;

  index_t tasks() const { return batch * groups * blocks; }
};

/// What a block of rows has summed up: for each row its largest score, the sum of the weights
/// exp(score - largest), and the sum of weights times values.
struct Sums {
  float *peaks, *weights, *values;

  static index_t bytes(index_t rows, index_t width) {
    return 2 * bytes_of_floats(rows) + bytes_of_floats(rows * width);
  }
  static Sums in(Parts& parts, index_t rows, index_t width) {
    return {parts.floats(rows), parts.floats(rows), parts.floats(rows * width)};
  }
};

/// Rows of the largest block of rows, whether there is one query or more.
index_t most_rows_of(const CachedHeads& heads, index_t queries) {
  return smaller(larger(larger(queries, heads.sharing), 1), most_rows);
}
/// The bytes of the sums, over all blocks of keys, that a single query may have. False: too many.
/// Sizes of tensors without elements may be anything.
bool bytes_of_sums(const CachedHeads& heads, index_t own, index_t& bytes) {
  const index_t rows =
      heads.sharing <= most_rows ? heads.sharing : round_up(heads.sharing, most_rows);
  bytes = 1;
  for (const index_t n :
       {heads.batch, own, rows, ceil_div(heads.capacity, key_block), Sums::bytes(1, heads.values)})
    if (__builtin_mul_overflow(bytes, n, &bytes)) return false;
  return true;
}

template <CpuLevel level>
Error prepare(Context& context, Plan& plan, In query, In key, In value, View<const int64_t>, double,
              int64_t window, double, PerHead, PerHead, View<float>) {
  plan = {portable::cached_heads(query.shape(), key.shape(), value.shape(), window)};
  plan.one_query = plan.queries == 1;
  plan.rows = plan.one_query ? plan.sharing : plan.queries;
  plan.groups = plan.one_query ? key.shape().sizes[1] : plan.heads;
  plan.row_block = smaller(larger(plan.rows, 1), most_rows);
  plan.blocks = ceil_div(plan.rows, plan.row_block);
  const index_t rows = most_rows_of(plan, plan.queries), keys = smaller(plan.capacity, key_block);
  index_t sums_bytes = 0;
  constexpr index_t most_values = index_t{1} << 40;
  if (plan.values > most_values || plan.features > most_values ||
      !bytes_of_sums(plan, key.shape().sizes[1], sums_bytes))
    return context.fail(Error::out_of_memory, TAPER_TEXT("the scratch is too large"));
  plan.scores = plan_gemm(microkernels<level>(), 1, rows, keys, plan.features, 1);
  plan.sums = plan_gemm(microkernels<level>(), 1, rows, plan.values, keys, 1);
  plan.slots = thread_count(context.threads);
  plan.gemm_bytes = larger(plan.scores.bytes_per_slot, plan.sums.bytes_per_slot);
  plan.bytes_per_slot = plan.gemm_bytes + bytes_of_floats(rows * round_up(keys, lanes)) +
                        Sums::bytes(rows, plan.values);
  // scratch must not shrink when queries become more, so that of one query is always there
  context.need_scratch(static_cast<size_t>(plan.slots * plan.bytes_per_slot) +
                       static_cast<size_t>(sums_bytes));
  return Error::ok;
}

void cap_scores(float* scores, index_t n, float cap) {
  for (index_t i = 0; i < n; ++i) scores[i] = cap * std::tanh(scores[i] / cap);
}
void add_slope(float* scores, index_t n, float slope, float distance) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) scores[i] += slope * (distance + static_cast<float>(i));
}
void merge(float* y, index_t n, float y_factor, const float* x, float x_factor) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] = y[i] * y_factor + x[i] * x_factor;
}
/// exp(from - to); avoids exp(-inf - -inf).
float factor(float from, float to) { return from == to ? 1 : portable::math::exp(from - to); }

/// The arguments of a call.
struct Call {
  const float *query, *key, *value;
  const int64_t* start;
  CacheRows cache_rows;
  float scale, softcap;
  const float *sinks, *slopes;  ///< nullptr: none
  float* out;
};

/// A block of rows.
template <CpuLevel level>
class Rows {
 public:
  Rows(const Plan& plan, const Call& call, index_t task) : plan_(plan), call_(call) {
    const index_t block = task % plan.blocks, group = task / plan.blocks % plan.groups,
                  b = task / plan.blocks / plan.groups, first = block * plan.row_block;
    head_ = plan.one_query ? group * plan.sharing + first : group;
    const index_t i = plan.one_query ? 0 : first, own = head_ / plan.sharing;
    count_ = smaller(plan.row_block, plan.rows - first);
    position_ = static_cast<index_t>(call.start[b]) + i;
    query_ = call.query + b * plan.query.batch + head_ * plan.query.head + i * plan.query.row;
    const index_t row = call.cache_rows[b];
    key_ = call.key + row * plan.key.batch + own * plan.key.head;
    value_ = call.value + row * plan.value.batch + own * plan.value.head;
    out_ = call.out + ((b * plan.queries + i) * plan.heads + head_) * plan.values;
  }

  index_t count() const { return count_; }
  /// The keys that any row sees are in the blocks [first_block, end_block).
  index_t first_block() const { return plan_.first_key(position_) / key_block; }
  index_t end_block() const { return ceil_div(position_of(count_ - 1) + 1, key_block); }

  /// The sums over a block of keys.
  void sum(index_t block, void* gemm, float* scores, const Sums& sums) const {
    const index_t at = block * key_block, n = smaller(key_block, position_of(count_ - 1) + 1 - at);
    multiply_keys(at, n, gemm, scores);
    for (index_t r = 0; r < count_; ++r) weigh(r, at, n, scores + r * round_up(n, lanes), sums);
    multiply_values(at, n, gemm, scores, sums.values);
  }
  /// Before the first block. peak and weight: those of each row so far.
  void begin(float* peaks, float* weights) const {
    for (index_t r = 0; r < count_; ++r) {
      const bool sinks = call_.sinks != nullptr;
      peaks[r] = sinks ? call_.sinks[head_of(r)] : -HUGE_VALF, weights[r] = sinks ? 1 : 0;
      std::memset(row(r), 0, static_cast<size_t>(plan_.values) * sizeof(float));
    }
  }
  void add(const Sums& sums, float* peaks, float* weights) const {
    for (index_t r = 0; r < count_; ++r) {
      const float peak = sums.peaks[r];
      if (peak == -HUGE_VALF) continue;  // the row sees none of these keys
      const float most = peak > peaks[r] ? peak : peaks[r], old = factor(peaks[r], most),
                  added = factor(peak, most);
      AtLevel<level, merge>::call(row(r), plan_.values, old, sums.values + r * plan_.values, added);
      weights[r] = weights[r] * old + sums.weights[r] * added, peaks[r] = most;
    }
  }
  void end(const float* weights) const {
    for (index_t r = 0; r < count_; ++r)
      AtLevel<level, divide>::call(row(r), plan_.values, weights[r]);
  }

 private:
  index_t position_of(index_t r) const { return plan_.one_query ? position_ : position_ + r; }
  index_t head_of(index_t r) const { return plan_.one_query ? head_ + r : head_; }
  float* row(index_t r) const {
    return out_ + r * plan_.values * (plan_.one_query ? 1 : plan_.heads);
  }

  void multiply_keys(index_t at, index_t n, void* gemm, float* scores) const {
    Gemm g;
    g.m = count_, g.k = plan_.features, g.n = n;
    g.a = query_, g.a_column = plan_.query.feature;
    g.a_row = plan_.one_query ? plan_.query.head : plan_.query.row;
    g.b = key_ + at * plan_.key.row, g.b_row = plan_.key.feature, g.b_column = plan_.key.row;
    g.c = scores, g.c_row = round_up(n, lanes);
    g.alpha = call_.scale;
    run_gemm(microkernels<level>(), plan_.scores, g, gemm, nullptr);
  }
  void multiply_values(index_t at, index_t n, void* gemm, const float* weights, float* to) const {
    Gemm g;
    g.m = count_, g.k = n, g.n = plan_.values;
    g.a = weights, g.a_row = round_up(n, lanes);
    g.b = value_ + at * plan_.value.row;
    g.b_row = plan_.value.row, g.b_column = plan_.value.feature;
    g.c = to, g.c_row = plan_.values;
    run_gemm(microkernels<level>(), plan_.sums, g, gemm, nullptr);
  }
  /// Turns the scores of row r into weights.
  void weigh(index_t r, index_t at, index_t n, float* x, const Sums& sums) const {
    const index_t width = round_up(n, lanes), own = position_of(r);
    if (call_.softcap > 0) cap_scores(x, n, call_.softcap);
    if (call_.slopes != nullptr)
      AtLevel<level, add_slope>::call(x, n, call_.slopes[head_of(r)], static_cast<float>(at - own));
    const index_t hidden = smaller(n, larger(0, plan_.first_key(own) - at)),
                  shown = smaller(n, larger(0, own + 1 - at));
    for (index_t i = 0; i < hidden; ++i) x[i] = -HUGE_VALF;
    for (index_t i = shown; i < width; ++i) x[i] = -HUGE_VALF;
    sums.peaks[r] = -HUGE_VALF;
    sums.weights[r] =
        AtLevel<level, exponentials<Arithmetic<level>>>::call(x, width, &sums.peaks[r]);
  }

  const Plan& plan_;
  const Call& call_;
  const float *query_, *key_, *value_;
  float* out_;
  index_t head_, position_, count_;  ///< of the first row; of all
};

/// The scratch of a thread.
struct ThreadScratch {
  ThreadScratch(Context& context, const Plan& plan, index_t slot)
      : parts(static_cast<char*>(context.scratch) + slot * plan.bytes_per_slot),
        rows(most_rows_of(plan, plan.queries)),
        gemm(parts.bytes(plan.gemm_bytes)),
        scores(parts.floats(rows * round_up(smaller(plan.capacity, key_block), lanes))) {}
  Parts parts;
  index_t rows;
  void* gemm;
  float* scores;
};

/// Each task is a block of rows, with all its keys.
template <CpuLevel level>
void attend_by_rows(Context& context, const Plan& plan, const Call& call) {
  parallel_for_threads(context.threads, plan.tasks(), [&](index_t task, index_t slot) {
    ThreadScratch s(context, plan, slot);
    const Sums sums = Sums::in(s.parts, s.rows, plan.values);
    const Rows<level> rows(plan, call, task);
    float peaks[most_rows], weights[most_rows];
    rows.begin(peaks, weights);
    for (index_t block = rows.first_block(); block < rows.end_block(); ++block) {
      rows.sum(block, s.gemm, s.scores, sums);
      rows.add(sums, peaks, weights);
    }
    rows.end(weights);
  });
}

/// One query: each task is a block of rows with a block of keys. Then the sums are merged.
template <CpuLevel level>
void attend_by_keys(Context& context, const Plan& plan, const Call& call) {
  char* const all = static_cast<char*>(context.scratch) + plan.slots * plan.bytes_per_slot;
  const index_t bytes = Sums::bytes(1, plan.values) * plan.row_block,
                most = ceil_div(plan.capacity, key_block);
  const auto sums_of = [&](index_t task, index_t block) {
    Parts parts(all + (task * most + block) * bytes);
    return Sums::in(parts, plan.row_block, plan.values);
  };
  index_t blocks = 0;  // of the longest row of the batch
  for (index_t task = 0; task < plan.tasks(); ++task)
    blocks = larger(blocks, Rows<level>(plan, call, task).end_block());
  parallel_for_threads(context.threads, plan.tasks() * blocks, [&](index_t i, index_t slot) {
    const index_t task = i / blocks, block = i % blocks;
    const Rows<level> rows(plan, call, task);
    if (block < rows.first_block() || block >= rows.end_block()) return;
    const ThreadScratch s(context, plan, slot);
    rows.sum(block, s.gemm, s.scores, sums_of(task, block));
  });
  parallel_for(context.threads, plan.tasks(), [&](index_t task) {
    const Rows<level> rows(plan, call, task);
    float peaks[most_rows], weights[most_rows];
    rows.begin(peaks, weights);
    for (index_t block = rows.first_block(); block < rows.end_block(); ++block)
      rows.add(sums_of(task, block), peaks, weights);
    rows.end(weights);
  });
}

template <CpuLevel level>
Error attend(Context& context, const Plan& plan, In query, In key, In value,
             View<const int64_t> start, CacheRows cache_rows, double scale, double softcap,
             PerHead sinks, PerHead slopes, View<float> out) {
  TAPER_TRY(portable::check_places(context, start, plan.queries, plan.capacity));
  const Call call{query.data(),
                  key.data(),
                  value.data(),
                  start.data(),
                  cache_rows,
                  static_cast<float>(scale),
                  static_cast<float>(softcap),
                  sinks ? sinks->data() : nullptr,
                  slopes ? slopes->data() : nullptr,
                  out.data()};
  if (plan.one_query)
    attend_by_keys<level>(context, plan, call);
  else
    attend_by_rows<level>(context, plan, call);
  return Error::ok;
}

template <CpuLevel level>
Error run(Context& context, const Plan& plan, In query, In key, In value, View<const int64_t> start,
          double scale, int64_t, double softcap, PerHead sinks, PerHead slopes, View<float> out) {
  return attend<level>(context, plan, query, key, value, start, {}, scale, softcap, sinks, slopes,
                       out);
}

template <CpuLevel level>
Error prepare_batch(Context& context, Plan& plan, In query, In key, In value,
                    View<const int64_t> start, View<const int64_t>, double scale, int64_t window,
                    double softcap, PerHead sinks, PerHead slopes, View<float> out) {
  return prepare<level>(context, plan, query, key, value, start, scale, window, softcap, sinks,
                        slopes, out);
}
template <CpuLevel level>
Error run_batch(Context& context, const Plan& plan, In query, In key, In value,
                View<const int64_t> start, View<const int64_t> batch, double scale, int64_t,
                double softcap, PerHead sinks, PerHead slopes, View<float> out) {
  TAPER_TRY(portable::check_rows(context, batch, key.shape().sizes[0]));
  return attend<level>(context, plan, query, key, value, start, CacheRows(batch), scale, softcap,
                       sinks, slopes, out);
}

}  // namespace

TAPER_KERNEL_LEVELS(taper_attention_cached, prepare, run)
TAPER_KERNEL_LEVELS(taper_attention_cached_batch, prepare_batch, run_batch)

}  // namespace taper::optimized
