// Attention over a cache. A block of queries takes the keys block by block. Each block has sums of
// its own, relative to its largest score, which are merged in the order of the blocks. Blocks begin
// at multiples of 512, whatever the queries. So the result of a query depends neither on its
// neighbours nor on how a text was cut into calls, and a single query can be shared among threads:
// a task is then a block of keys. (T. Dao and others, "Flash-Decoding for long-context inference",
// 2023.) The work follows the positions of the queries, not the size of the cache. A cache that is
// not f32 is read a block of keys at a time: the result has the bits of a cache of these f32.
#include "taper/kernels/portable/cached_attention.h"

#include <cmath>
#include <cstring>

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/online_softmax.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/stored_cache.h"
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
  index_t read;  ///< f32 that a block of keys or values takes in scratch; 0: they are read in place

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

/// A cache whose rows are S. Those that are not dense are f32.
template <class S>
using CacheOf = std::conditional_t<std::is_same_v<S, float>, In, View<const S>>;

template <CpuLevel level, class S>
Error prepare(Context& context, Plan& plan, In query, CacheOf<S> key, CacheOf<S> value,
              View<const int64_t>, double, int64_t window, double, PerHead, PerHead,
              View<float> out) {
  plan = {portable::cached_heads(query.shape(), key.shape(), value.shape(), out.shape(), window)};
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
  if (!std::is_same_v<S, float>)
    plan.read = keys * portable::padded_row(larger(plan.features, plan.values));
  plan.bytes_per_slot = plan.gemm_bytes + bytes_of_floats(rows * round_up(keys, lanes)) +
                        Sums::bytes(rows, plan.values) + bytes_of_floats(plan.read);
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
template <class S>
struct Call {
  const float* query;
  const S *key, *value;
  const int64_t* start;
  CacheRows cache_rows;
  float scale, softcap;
  const float *sinks, *slopes;  ///< nullptr: none
  float* out;
};

/// What a thread writes to.
struct Buffers {
  void* gemm;
  float *scores, *read;
};

/// A block of rows. The caches hold S.
template <CpuLevel level, class S>
class Rows {
 public:
  Rows(const Plan& plan, const Call<S>& call, index_t task) : plan_(plan), call_(call) {
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
  void sum(index_t block, const Buffers& to, const Sums& sums) const {
    const index_t at = block * key_block, n = smaller(key_block, position_of(count_ - 1) + 1 - at);
    multiply_keys(at, n, to);
    for (index_t r = 0; r < count_; ++r) weigh(r, at, n, to.scores + r * round_up(n, lanes), sums);
    multiply_values(at, n, to, sums.values);
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

  /// Rows of a cache as f32.
  struct Operand {
    const float* data;
    index_t row, feature;
  };
  Operand read(const S* from, const portable::HeadSteps& steps, index_t at, index_t n,
               index_t features, float* to) const {
    from += at * steps.row;
    if constexpr (std::is_same_v<S, float>) return {from, steps.row, steps.feature};
    const index_t row = portable::padded_row(features);
    if constexpr (std::is_same_v<S, uint8_t>)
      AtLevel<level, portable::read_rows<S>>::call(from, n, features, steps.row, to);
    else if constexpr (!std::is_same_v<S, float>)
      for (index_t i = 0; i < n; ++i)
        widen_small<level>(dtypes_of<S>::dtype, features, from + i * features, to + i * row);
    return {to, row, 1};
  }
  /// Few queries compute faster than memory gives rows. The processor's own prefetch stops at the
  /// end of each page of 4 KB.
  void prefetch(const S* from, const portable::HeadSteps& steps, index_t at, index_t n) const {
    constexpr index_t line = 64 / sizeof(S);
    from += at * steps.row;
    // rows that lie apart belong to other heads in between
    const index_t width = smaller(steps.row, plan_.values * steps.feature);
    for (index_t j = 0; j < n; ++j, from += steps.row)
      for (index_t i = 0; i < width; i += line) __builtin_prefetch(from + i, 0, 2);
  }

  // A single query takes a few keys at a time, which then lie in the first cache. Meanwhile their
  // values are on their way.
  void multiply_keys(index_t at, index_t n, const Buffers& to) const {
    const index_t at_once = plan_.one_query ? 64 : n;
    for (index_t j = 0; j < n; j += at_once) {
      const index_t count = smaller(at_once, n - j);
      if (plan_.one_query) prefetch(value_, plan_.value, at + j, count);
      const Operand keys = read(key_, plan_.key, at + j, count, plan_.features, to.read);
      Gemm g;
      g.m = count_, g.k = plan_.features, g.n = count;
      g.a = query_, g.a_column = plan_.query.feature;
      g.a_row = plan_.one_query ? plan_.query.head : plan_.query.row;
      g.b = keys.data, g.b_row = keys.feature, g.b_column = keys.row;
      g.c = to.scores + j, g.c_row = round_up(n, lanes);
      g.alpha = call_.scale;
      run_gemm(microkernels<level>(), plan_.scores, g, to.gemm, nullptr);
    }
  }
  void multiply_values(index_t at, index_t n, const Buffers& from, float* to) const {
    const Operand values = read(value_, plan_.value, at, n, plan_.values, from.read);
    Gemm g;
    g.m = count_, g.k = n, g.n = plan_.values;
    g.a = from.scores, g.a_row = round_up(n, lanes);
    g.b = values.data, g.b_row = values.row, g.b_column = values.feature;
    g.c = to, g.c_row = plan_.values;
    run_gemm(microkernels<level>(), plan_.sums, g, from.gemm, nullptr);
    leave_out_hidden(at, n, from.scores, values, to);
  }
  /// A hidden key has weight 0, and what is not finite times that is NaN. So rows whose sums are
  /// not finite are summed again over what they see, in the order of the product.
  void leave_out_hidden(index_t at, index_t n, const float* scores, const Operand& values,
                        float* to) const {
    for (index_t r = 0; r < count_; ++r) {
      const auto [hidden, shown] = visible(r, at, n);
      if (hidden == 0 && shown == n) continue;
      const float* weights = scores + r * round_up(n, lanes);
      for (index_t f = 0; f < plan_.values; ++f) {
        float& sum = to[r * plan_.values + f];
        if (std::isfinite(sum)) continue;
        sum = 0;
        for (index_t begin = 0; begin < shown; begin += gemm_depth_block) {
          float chain = 0;
          for (index_t k = larger(begin, hidden); k < smaller(shown, begin + gemm_depth_block); ++k)
            chain = Arithmetic<level>::multiply_add(
                weights[k], values.data[k * values.row + f * values.feature], chain);
          sum = begin == 0 ? chain : sum + chain;
        }
      }
    }
  }
  struct Range {
    index_t hidden, shown;  ///< keys [hidden, shown) of the block
  };
  Range visible(index_t r, index_t at, index_t n) const {
    const index_t own = position_of(r);
    return {smaller(n, larger(0, plan_.first_key(own) - at)), smaller(n, larger(0, own + 1 - at))};
  }
  /// Turns the scores of row r into weights.
  void weigh(index_t r, index_t at, index_t n, float* x, const Sums& sums) const {
    const index_t width = round_up(n, lanes), own = position_of(r);
    if (call_.softcap > 0) cap_scores(x, n, call_.softcap);
    if (call_.slopes != nullptr)
      AtLevel<level, add_slope>::call(x, n, call_.slopes[head_of(r)], static_cast<float>(at - own));
    const auto [hidden, shown] = visible(r, at, n);
    for (index_t i = 0; i < hidden; ++i) x[i] = -HUGE_VALF;
    for (index_t i = shown; i < width; ++i) x[i] = -HUGE_VALF;
    sums.peaks[r] = -HUGE_VALF;
    sums.weights[r] =
        AtLevel<level, exponentials<Arithmetic<level>>>::call(x, width, &sums.peaks[r]);
  }

  const Plan& plan_;
  const Call<S>& call_;
  const float* query_;
  const S *key_, *value_;
  float* out_;
  index_t head_, position_, count_;  ///< of the first row; of all
};

/// The scratch of a thread.
struct ThreadScratch {
  ThreadScratch(Context& context, const Plan& plan, index_t slot)
      : parts(static_cast<char*>(context.scratch) + slot * plan.bytes_per_slot),
        rows(most_rows_of(plan, plan.queries)),
        buffers{parts.bytes(plan.gemm_bytes),
                parts.floats(rows * round_up(smaller(plan.capacity, key_block), lanes)),
                parts.floats(plan.read)} {}
  Parts parts;
  index_t rows;
  Buffers buffers;
};

/// Each task is a block of rows, with all its keys.
template <CpuLevel level, class S>
void attend_by_rows(Context& context, const Plan& plan, const Call<S>& call) {
  parallel_for_threads(context.threads, plan.tasks(), [&](index_t task, index_t slot) {
    ThreadScratch s(context, plan, slot);
    const Sums sums = Sums::in(s.parts, s.rows, plan.values);
    const Rows<level, S> rows(plan, call, task);
    float peaks[most_rows], weights[most_rows];
    rows.begin(peaks, weights);
    for (index_t block = rows.first_block(); block < rows.end_block(); ++block) {
      rows.sum(block, s.buffers, sums);
      rows.add(sums, peaks, weights);
    }
    rows.end(weights);
  });
}

/// One query: each task is a block of rows with a block of keys. Then the sums are merged.
template <CpuLevel level, class S>
void attend_by_keys(Context& context, const Plan& plan, const Call<S>& call) {
  char* const all = static_cast<char*>(context.scratch) + plan.slots * plan.bytes_per_slot;
  const index_t bytes = Sums::bytes(1, plan.values) * plan.row_block,
                most = ceil_div(plan.capacity, key_block);
  const auto sums_of = [&](index_t task, index_t block) {
    Parts parts(all + (task * most + block) * bytes);
    return Sums::in(parts, plan.row_block, plan.values);
  };
  index_t blocks = 0;  // of the longest row of the batch
  for (index_t task = 0; task < plan.tasks(); ++task)
    blocks = larger(blocks, Rows<level, S>(plan, call, task).end_block());
  parallel_for_threads(context.threads, plan.tasks() * blocks, [&](index_t i, index_t slot) {
    const index_t task = i / blocks, block = i % blocks;
    const Rows<level, S> rows(plan, call, task);
    if (block < rows.first_block() || block >= rows.end_block()) return;
    const ThreadScratch s(context, plan, slot);
    rows.sum(block, s.buffers, sums_of(task, block));
  });
  parallel_for(context.threads, plan.tasks(), [&](index_t task) {
    const Rows<level, S> rows(plan, call, task);
    float peaks[most_rows], weights[most_rows];
    rows.begin(peaks, weights);
    for (index_t block = rows.first_block(); block < rows.end_block(); ++block)
      rows.add(sums_of(task, block), peaks, weights);
    rows.end(weights);
  });
}

template <CpuLevel level, class S>
Error attend(Context& context, const Plan& plan, In query, CacheOf<S> key, CacheOf<S> value,
             View<const int64_t> start, CacheRows cache_rows, double scale, double softcap,
             PerHead sinks, PerHead slopes, View<float> out) {
  TAPER_TRY(portable::check_places(context, start, plan.queries, plan.capacity));
  const Call<S> call{query.data(),
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
    attend_by_keys<level, S>(context, plan, call);
  else
    attend_by_rows<level, S>(context, plan, call);
  return Error::ok;
}

template <CpuLevel level, class S>
Error run(Context& context, const Plan& plan, In query, CacheOf<S> key, CacheOf<S> value,
          View<const int64_t> start, double scale, int64_t, double softcap, PerHead sinks,
          PerHead slopes, View<float> out) {
  return attend<level, S>(context, plan, query, key, value, start, {}, scale, softcap, sinks,
                          slopes, out);
}

template <CpuLevel level, class S>
Error prepare_batch(Context& context, Plan& plan, In query, CacheOf<S> key, CacheOf<S> value,
                    View<const int64_t> start, View<const int64_t>, double scale, int64_t window,
                    double softcap, PerHead sinks, PerHead slopes, View<float> out) {
  return prepare<level, S>(context, plan, query, key, value, start, scale, window, softcap, sinks,
                           slopes, out);
}
template <CpuLevel level, class S>
Error run_batch(Context& context, const Plan& plan, In query, CacheOf<S> key, CacheOf<S> value,
                View<const int64_t> start, View<const int64_t> batch, double scale, int64_t,
                double softcap, PerHead sinks, PerHead slopes, View<float> out) {
  TAPER_TRY(portable::check_rows(context, batch, key.shape().sizes[0]));
  return attend<level, S>(context, plan, query, key, value, start, CacheRows(batch), scale, softcap,
                          sinks, slopes, out);
}

}  // namespace

#define TAPER_RECORDS_AT(variant, level, S)                                          \
  TAPER_RECORD(taper_attention_cached, taper_attention_cached_##variant,             \
               features_of(CpuLevel::level), {}, prepare<CpuLevel::level, S>,        \
               run<CpuLevel::level, S>)                                              \
  TAPER_RECORD(taper_attention_cached_batch, taper_attention_cached_batch_##variant, \
               features_of(CpuLevel::level), {}, prepare_batch<CpuLevel::level, S>,  \
               run_batch<CpuLevel::level, S>)
#if TAPER_X86_LEVELS
#define TAPER_RECORDS(variant, S)           \
  TAPER_RECORDS_AT(variant, portable, S)    \
  TAPER_RECORDS_AT(variant##_avx2, avx2, S) \
  TAPER_RECORDS_AT(variant##_avx512, avx512, S)
#else
#define TAPER_RECORDS(variant, S) TAPER_RECORDS_AT(variant, portable, S)
#endif
TAPER_RECORDS(f32, float)
TAPER_RECORDS(f32_f16, Half)
TAPER_RECORDS(f32_bf16, BFloat16)
TAPER_RECORDS(f32_blocks, uint8_t)

}  // namespace taper::optimized
