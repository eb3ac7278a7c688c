// Attention over a cache, one query after the other. As in attention.cpp, a query keeps its peak m,
// the sum of exp(score - m), and the sum of exp(score - m) value. (M. Milakov, N. Gimelshein,
// "Online normalizer calculation for softmax", arXiv:1805.02867.) Soft caps: "Gemma 2",
// arXiv:2408.00118. Sinks: G. Xiao and others, arXiv:2309.17453. Slopes: O. Press and others,
// "Train short, test long", arXiv:2108.12409.
#include "taper/kernels/portable/cached_attention.h"

#include <cmath>
#include <type_traits>

#include "taper/kernels/portable/index_walk.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/stored_cache.h"
#include "taper/kernels/shapes/cached_attention.h"

namespace taper::portable {
namespace {

constexpr index_t key_block = 128;

template <class T>
using In = AnyView<const T>;
template <class T>
using PerHead = Maybe<View<const T>>;

/// A cache whose rows are S. Those that are not dense are f32.
template <class S>
using CacheOf = std::conditional_t<std::is_floating_point_v<S>, AnyView<const S>, View<const S>>;

/// The keys or values of a head, as T.
template <class T, class S>
struct HeadRows {
  const S* data;
  index_t row, features;
  T* buffer;  ///< for a row that is not stored as T

  const T* operator[](index_t j) const {
    if constexpr (std::is_same_v<T, S>) return data + j * row;
    if constexpr (!std::is_same_v<T, S>) read_rows(data + j * row, 1, features, row, buffer);
    return buffer;
  }
};

template <class T, class S>
struct Query {
  const CachedHeads& plan;
  const T* query;
  HeadRows<T, S> key, value;
  index_t position;
  T scale, softcap, slope;
  T* out;

  T score(index_t j) const {
    const index_t q_step = plan.query.feature, k_step = plan.key.feature;
    const T *q = query, *k = key[j];
    T s =
        scale * sum_of<T>(plan.features, [=](index_t f) { return q[f * q_step] * k[f * k_step]; });
    if (softcap > 0) s = softcap * static_cast<T>(std::tanh(s / softcap));
    return s + slope * static_cast<T>(j - position);
  }

  /// `sink`: nullptr if there is none.
  void attend(const T* sink) const {
    T* const y = out;
    for_each_element(plan.values, [=](index_t f) { y[f] = 0; });
    T peak = sink != nullptr ? *sink : -HUGE_VALF, sum = sink != nullptr ? 1 : 0;
    T weights[key_block];
    for (index_t at = plan.first_key(position); at <= position; at += key_block) {
      const index_t left = position + 1 - at, n = left < key_block ? left : key_block;
      const T before = peak;
      for (index_t j = 0; j < n; ++j) {
        weights[j] = score(at + j);
        peak = weights[j] > peak ? weights[j] : peak;
      }
      const T shift = peak == -HUGE_VALF ? 0 : peak;
      const T factor = before == peak ? 1 : math::exp(before - peak);
      for_each_element(n, [&](index_t j) { weights[j] = math::exp(weights[j] - shift); });
      sum = sum * factor + sum_of<T>(n, [&](index_t j) { return weights[j]; });
      if (factor != 1) for_each_element(plan.values, [=](index_t f) { y[f] *= factor; });
      for (index_t j = 0; j < n; ++j) add(weights[j], value[at + j]);
    }
    if (sum != 0) for_each_element(plan.values, [=](index_t f) { y[f] /= sum; });
  }

 private:
  void add(T weight, const T* v) const {
    T* const y = out;
    const index_t step = plan.value.feature;
    for_each_element(plan.values, [=](index_t f) { y[f] += weight * v[f * step]; });
  }
};

struct Plan : CachedHeads {
  index_t row_bytes, bytes_per_slot;  ///< of a key and a value as f32
};

template <class T, class S>
Error prepare(Context& context, Plan& plan, In<T> query, CacheOf<S> key, CacheOf<S> value,
              View<const int64_t>, double, int64_t window, double, PerHead<T>, PerHead<T>,
              View<T> out) {
  plan = {cached_heads(query.shape(), key.shape(), value.shape(), out.shape(), window), 0, 0};
  if (std::is_same_v<T, S>) return Error::ok;
  const index_t longest = plan.features > plan.values ? plan.features : plan.values;
  if (longest > index_t{1} << 40)  // without elements, rows may have any length
    return context.fail(Error::out_of_memory, TAPER_TEXT("the scratch is too large"));
  plan.row_bytes = (padded_row(longest) * index_t{sizeof(T)} + 63) / 64 * 64;
  plan.bytes_per_slot = 2 * plan.row_bytes;
  const int slots = context.threads == nullptr ? 1 : context.threads->count;
  context.need_scratch(static_cast<size_t>(plan.bytes_per_slot) * static_cast<size_t>(slots));
  return Error::ok;
}

template <class T, class S>
Error attend(Context& context, const Plan& plan, In<T> query, CacheOf<S> key, CacheOf<S> value,
             View<const int64_t> start, CacheRows rows, double scale, double softcap,
             PerHead<T> sinks, PerHead<T> slopes, View<T> out) {
  TAPER_TRY(check_places(context, start, plan.queries, plan.capacity));
  // tasks follow the elements of the result: (batch, query, head)
  const index_t tasks = plan.batch * plan.queries * plan.heads;
  parallel_for_threads(context.threads, tasks, [&](index_t task, index_t slot) {
    const index_t head = task % plan.heads, i = task / plan.heads % plan.queries,
                  b = task / plan.heads / plan.queries, own = head / plan.sharing;
    std::byte* const buffer = static_cast<std::byte*>(context.scratch) + slot * plan.bytes_per_slot;
    Query<T, S>{plan,
                query.data() + b * plan.query.batch + head * plan.query.head + i * plan.query.row,
                {key.data() + rows[b] * plan.key.batch + own * plan.key.head, plan.key.row,
                 plan.features, reinterpret_cast<T*>(buffer)},
                {value.data() + rows[b] * plan.value.batch + own * plan.value.head, plan.value.row,
                 plan.values, reinterpret_cast<T*>(buffer + plan.row_bytes)},
                static_cast<index_t>(start.data()[b]) + i,
                static_cast<T>(scale),
                static_cast<T>(softcap),
                slopes ? slopes->data()[head] : T{0},
                out.data() + task * plan.values}
        .attend(sinks ? sinks->data() + head : nullptr);
  });
  return Error::ok;
}

template <class T, class S>
Error run(Context& context, const Plan& plan, In<T> query, CacheOf<S> key, CacheOf<S> value,
          View<const int64_t> start, double scale, int64_t, double softcap, PerHead<T> sinks,
          PerHead<T> slopes, View<T> out) {
  return attend<T, S>(context, plan, query, key, value, start, {}, scale, softcap, sinks, slopes,
                      out);
}

template <class T, class S>
Error prepare_batch(Context& context, Plan& plan, In<T> query, CacheOf<S> key, CacheOf<S> value,
                    View<const int64_t> start, View<const int64_t>, double scale, int64_t window,
                    double softcap, PerHead<T> sinks, PerHead<T> slopes, View<T> out) {
  return prepare<T, S>(context, plan, query, key, value, start, scale, window, softcap, sinks,
                       slopes, out);
}
template <class T, class S>
Error run_batch(Context& context, const Plan& plan, In<T> query, CacheOf<S> key, CacheOf<S> value,
                View<const int64_t> start, View<const int64_t> batch, double scale, int64_t,
                double softcap, PerHead<T> sinks, PerHead<T> slopes, View<T> out) {
  TAPER_TRY(check_rows(context, batch, key.shape().sizes[0]));
  return attend<T, S>(context, plan, query, key, value, start, CacheRows(batch), scale, softcap,
                      sinks, slopes, out);
}

// ---- writing ----

constexpr index_t least_elements = 16384;  // fewer are written before another thread wakes up

struct Places {
  static constexpr uint32_t overwrites = 1;
  index_t batch, heads, count, features, capacity, width;  ///< width: that of the cache
  HeadSteps rows;
};

/// S: elements of the cache. E: those of the rows.
template <class S, class E>
Error prepare_write(Context&, Places& plan, View<const S> cache, AnyView<const E> rows,
                    View<const int64_t>, View<S>) {
  const Shape &c = cache.shape(), &r = rows.shape();
  plan = {r.sizes[0], c.sizes[1], r.sizes[2], r.sizes[3], c.sizes[2], c.sizes[3], head_steps(r)};
  return Error::ok;
}
template <class S, class E>
Error write(Context& context, const Places& plan, View<const S> cache, AnyView<const E> rows,
            View<const int64_t> start, CacheRows cache_rows, View<S> out) {
  TAPER_TRY(check_places(context, start, plan.count, plan.capacity));
  copy_unless_in_place(context.threads, cache, out);
  const index_t tasks = plan.batch * plan.heads, elements = tasks * plan.count * plan.features;
  const Threads* const threads = elements < least_elements ? nullptr : context.threads;
  parallel_for(threads, tasks, [&](index_t task) {
    const index_t b = task / plan.heads, head = task % plan.heads;
    const index_t at = static_cast<index_t>(start.data()[b]);
    const E* const from = rows.data() + b * plan.rows.batch + head * plan.rows.head;
    S* const to =
        out.data() + ((cache_rows[b] * plan.heads + head) * plan.capacity + at) * plan.width;
    for (index_t i = 0; i < plan.count; ++i) {
      if constexpr (std::is_same_v<S, E>)
        for (index_t f = 0; f < plan.features; ++f)
          to[i * plan.width + f] = from[i * plan.rows.row + f * plan.rows.feature];
      else
        write_row(from + i * plan.rows.row, plan.rows.feature, plan.features, to + i * plan.width,
                  plan.width);
    }
  });
  return Error::ok;
}

template <class S, class E = S>
Error cache_write(Context& context, const Places& plan, View<const S> cache, AnyView<const E> rows,
                  View<const int64_t> start, View<S> out) {
  return write<S, E>(context, plan, cache, rows, start, {}, out);
}

// `check_distinct` compares each row with all before it.
constexpr index_t most_rows_to_write = 4096;

// Two rows of the batch must not write to one row of the cache: which one would be last?
Error check_distinct(Context& context, View<const int64_t> batch) {
  const int64_t* const rows = batch.data();
  for (index_t b = 1; b < batch.numel(); ++b)
    for (index_t a = 0; a < b; ++a)
      if (rows[a] == rows[b])
        return context.fail(Error::invalid_argument,
                            TAPER_TEXT("rows {} and {} of the batch are both row {} of the cache"),
                            a, b, rows[a]);
  return Error::ok;
}

template <class S, class E>
Error prepare_write_batch(Context& context, Places& plan, View<const S> cache,
                          AnyView<const E> rows, View<const int64_t> start, View<const int64_t>,
                          View<S> out) {
  const index_t count = rows.shape().sizes[0];
  if (count > most_rows_to_write)
    return context.fail(Error::not_supported, TAPER_TEXT("{} rows in a call are more than {}"),
                        count, most_rows_to_write);
  return prepare_write<S, E>(context, plan, cache, rows, start, out);
}
template <class S, class E>
Error cache_write_batch(Context& context, const Places& plan, View<const S> cache,
                        AnyView<const E> rows, View<const int64_t> start, View<const int64_t> batch,
                        View<S> out) {
  TAPER_TRY(check_rows(context, batch, cache.shape().sizes[0]));
  TAPER_TRY(check_distinct(context, batch));
  return write<S, E>(context, plan, cache, rows, start, CacheRows(batch), out);
}

}  // namespace

#define TAPER_ATTENTION_CACHED(variant, T, S)                             \
  TAPER_KERNEL(taper_attention_cached, variant, prepare<T, S>, run<T, S>) \
  TAPER_KERNEL(taper_attention_cached_batch, variant, prepare_batch<T, S>, run_batch<T, S>)
TAPER_ATTENTION_CACHED(f32, float, float)
TAPER_ATTENTION_CACHED(f64, double, double)
TAPER_ATTENTION_CACHED(f32_f16, float, Half)
TAPER_ATTENTION_CACHED(f32_bf16, float, BFloat16)
TAPER_ATTENTION_CACHED(f32_blocks, float, uint8_t)
#undef TAPER_ATTENTION_CACHED

#define TAPER_CACHE_WRITE(variant, S, E, ...)                                      \
  TAPER_KERNEL(taper_cache_write, variant, prepare_write<S, E>, cache_write<S, E>) \
  TAPER_KERNEL(taper_cache_write_batch, variant, prepare_write_batch<S, E>, cache_write_batch<S, E>)
#define TAPER_CACHE_WRITE_BYTES(variant, E, ...) TAPER_CACHE_WRITE(variant, E, E)
TAPER_SIZES(TAPER_CACHE_WRITE_BYTES, )
TAPER_CACHE_WRITE(f16_f32, Half, float)
TAPER_CACHE_WRITE(bf16_f32, BFloat16, float)
TAPER_CACHE_WRITE(blocks_f32, uint8_t, float)
#undef TAPER_CACHE_WRITE
#undef TAPER_CACHE_WRITE_BYTES

}  // namespace taper::portable
