// The backward pass of attention without the matrix of scores (T. Dao, "FlashAttention-2: Faster
// Attention with Better Parallelism and Work Partitioning", arXiv:2307.08691, section 2.3). For a
// block of queries and a block of keys, the weights p = exp(score - logsumexp) are computed again.
// With d = Σ_f dout out, of query i:
//
//   dvalue_j = Σ_i p_ij dout_i         ds_ij = scale p_ij (dout_i · value_j - d_i)
//   dquery_i = Σ_j ds_ij key_j         dkey_j = Σ_i ds_ij query_i
//
// If the keys are one block, d is computed as Σ_j p_ij dout_i · value_j / Σ_j p_ij. This is the
// same number, but it rounds less where one weight is nearly 1 and ds is nearly 0.
//
// A group is a head of keys and values, with the heads of the query that share it. Groups run in
// parallel. If there are fewer groups than threads, blocks of keys run in parallel, and so do
// blocks of queries. Then both compute the weights for themselves: seven products instead of five.
// In both cases each sum takes its blocks in the same order, so the bits are the same.
#include <cstring>

#include "taper/kernels/optimized/attention.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/shapes/attention.h"

namespace taper::optimized {
namespace {

using namespace attention;
using portable::Heads;

constexpr index_t most_queries = 128, most_keys = 512;

struct Plan : portable::AttentionGradientHeads {
  index_t query_block, key_block;
  GemmPlan scores, slopes, query_sums, key_sums, value_sums;
  index_t slots, gemm_bytes, bytes_per_slot;

  index_t query_blocks() const { return ceil_div(queries, query_block); }
  index_t key_blocks() const { return ceil_div(keys, key_block); }
  index_t part_size() const {  // the largest product that is added to a sum
    return larger(smaller(queries, most_queries) * features,
                  smaller(keys, most_keys) * larger(features, values));
  }
  index_t block_size() const {
    return smaller(queries, most_queries) * round_up(smaller(keys, most_keys), lanes);
  }
};

template <CpuLevel level>
Error prepare(Context& context, Plan& plan, In grad_out, In query, In key, In value, In out,
              View<const float>, double dropout_p, bool, Mask mask, Maybe<double>, View<float>,
              View<float>, View<float>) {
  if (dropout_p != 0) return portable::no_dropout(context);
  plan = {portable::attention_gradient_heads(grad_out.shape(), query.shape(), key.shape(),
                                             value.shape(), mask ? &mask->shape() : nullptr,
                                             out.shape())};
  const auto block = [](index_t count, index_t most) {
    return larger(1, ceil_div(count, larger(1, ceil_div(count, most))));
  };
  plan.query_block = block(plan.queries, most_queries);
  plan.key_block = block(plan.keys, most_keys);
  const index_t rows = smaller(plan.queries, most_queries), keys = smaller(plan.keys, most_keys);
  const auto product = [&](GemmPlan& gemm, index_t m, index_t n, index_t k) {
    gemm = plan_gemm(microkernels<level>(), 1, m, n, k, 1);
    plan.gemm_bytes = larger(plan.gemm_bytes, gemm.bytes_per_slot);
  };
  product(plan.scores, rows, keys, plan.features);
  product(plan.slopes, rows, keys, plan.values);
  product(plan.query_sums, rows, plan.features, keys);
  product(plan.key_sums, keys, plan.features, rows);
  product(plan.value_sums, keys, plan.values, rows);
  plan.slots = thread_count(context.threads);
  plan.bytes_per_slot =
      plan.gemm_bytes + 2 * bytes_of_floats(plan.block_size()) + bytes_of_floats(plan.part_size());
  context.need_scratch(static_cast<size_t>(plan.slots * plan.bytes_per_slot));
  return Error::ok;
}

/// scores -> weights p. Returns their mean slope, Σ p slope / Σ p.
template <class M>
float weigh(float* scores, const float* slopes, index_t n, float shift) {
  float sum[lanes] = {}, sum_of_slopes[lanes] = {};
  for (index_t i = 0; i < n; i += lanes) {
    float* x = scores + i;
    const float* slope = slopes + i;
    TAPER_LANES
    for (index_t l = 0; l < lanes; ++l) {
      const float p = portable::math::exp_of_negative<M>(x[l] - shift);
      x[l] = p, sum[l] += p, sum_of_slopes[l] += p * slope[l];
    }
  }
  const float total = portable::join_lanes(sum);
  return total == 0 ? 0 : portable::join_lanes(sum_of_slopes) / total;
}
/// slopes -> scale p (slopes - d)
void differentiate(float* slopes, const float* weights, index_t n, float d, float scale) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) slopes[i] = weights[i] * (slopes[i] - d) * scale;
}

float dot(const float* a, index_t a_stride, const float* b, index_t b_stride, index_t n) {
  if (a_stride == 1 && b_stride == 1)
    return portable::sum_of<float, lanes>(n, [=](index_t i) { return a[i] * b[i]; });
  return portable::sum_of<float, lanes>(
      n, [=](index_t i) { return a[i * a_stride] * b[i * b_stride]; });
}

void add(float* y, const float* x, index_t n) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] += x[i];
}

/// The tensors of every task, by pointers to their first elements.
struct Tensors {
  In grad_out, query, key, value, out;
  Mask mask;
  const float* logsumexp;
  bool is_causal;
  Maybe<double> scale;
  float *grad_query, *grad_key, *grad_value;
};

struct Range {
  index_t begin, end;
};

/// Computes what some blocks of queries and some blocks of keys of one group add to the gradients:
/// of the queries (`to_queries`), or of keys and values (`to_keys`), or of both.
template <CpuLevel level>
class Task {
 public:
  const Plan& plan;
  const Tensors& t;
  index_t group;
  Range heads, query_blocks, key_blocks;
  Parts parts;
  bool to_queries = true, to_keys = true;
  void* gemm = parts.bytes(plan.gemm_bytes);
  float *weights = parts.floats(plan.block_size()), *slopes = parts.floats(plan.block_size()),
        *part = parts.floats(plan.part_size());  // one product, before it is added

  void run() const {
    clear();
    for (index_t head = heads.begin; head < heads.end; ++head) {
      const Scores<level> scores(plan, plan.scores, head, t.query, t.key, t.mask, t.is_causal,
                                 t.scale);
      for (index_t j = key_blocks.begin; j < key_blocks.end; ++j)
        for (index_t i = query_blocks.begin; i < query_blocks.end; ++i)
          meet(scores, head, i * plan.query_block, j * plan.key_block);
    }
  }

 private:
  /// A matrix from one of its rows on.
  struct Rows {
    const float* data;
    index_t row, column;
  };
  Rows rows_of(In tensor, const Heads& h, index_t head, index_t first) const {
    return {tensor.data() + plan.offset(h, head) + first * h.row, h.row, h.column};
  }
  float* grad_query(index_t head, index_t first) const {
    return t.grad_query + (head * plan.queries + first) * plan.features;
  }
  float* grad_key(index_t at) const {
    return t.grad_key + (group * plan.keys + at) * plan.features;
  }
  float* grad_value(index_t at) const {
    return t.grad_value + (group * plan.keys + at) * plan.values;
  }

  void clear() const {
    const auto zero = [](float* from, const float* to) {
      std::memset(from, 0, static_cast<size_t>(to - from) * sizeof(float));
    };
    const auto queries = [&](index_t block) {
      return smaller(plan.queries, block * plan.query_block);
    };
    const auto keys = [&](index_t block) { return smaller(plan.keys, block * plan.key_block); };
    for (index_t head = heads.begin; to_queries && head < heads.end; ++head)
      zero(grad_query(head, queries(query_blocks.begin)),
           grad_query(head, queries(query_blocks.end)));
    if (!to_keys) return;
    zero(grad_key(keys(key_blocks.begin)), grad_key(keys(key_blocks.end)));
    zero(grad_value(keys(key_blocks.begin)), grad_value(keys(key_blocks.end)));
  }

  /// Takes the block of queries from `first` on and the block of keys from `at` on.
  void meet(const Scores<level>& scores, index_t head, index_t first, index_t at) const {
    const index_t m = smaller(plan.query_block, plan.queries - first),
                  seen = scores.keys_of(first + m),
                  n = smaller(smaller(plan.key_block, plan.keys - at), seen - at),
                  width = round_up(n, lanes);
    if (n <= 0) return;
    const Rows dy = rows_of(t.grad_out, plan.grad_out, head, first),
               y = rows_of(t.out, plan.out, head, first),
               q = rows_of(t.query, plan.query, head, first),
               k = rows_of(t.key, plan.key, head, at), v = rows_of(t.value, plan.value, head, at);
    const auto turned = [](const Rows& rows) { return Rows{rows.data, rows.column, rows.row}; };
    scores.multiply(first, m, at, n, weights, gemm);
    multiply(plan.slopes, dy, turned(v), m, plan.values, n, slopes, width);
    for (index_t r = 0; r < m; ++r) {
      float *const p = weights + r * width, *const ds = slopes + r * width;
      scores.mask(first + r, at, n, p);
      std::memset(ds + n, 0, static_cast<size_t>(width - n) * sizeof(float));
      const float shift = portable::shift_of(t.logsumexp[head * plan.queries + first + r]);
      const float mean = AtLevel<level, weigh<Arithmetic<level>>>::call(p, ds, width, shift);
      const float d = plan.key_blocks() == 1
                          ? mean
                          : AtLevel<level, dot>::call(dy.data + r * dy.row, dy.column,
                                                      y.data + r * y.row, y.column, plan.values);
      AtLevel<level, differentiate>::call(ds, p, width, d, scores.scale);
    }
    const Rows p{weights, width, 1}, ds{slopes, width, 1};
    if (to_queries)
      add_product(plan.query_sums, ds, k, m, n, plan.features, grad_query(head, first));
    if (!to_keys) return;
    add_product(plan.key_sums, turned(ds), q, n, m, plan.features, grad_key(at));
    add_product(plan.value_sums, turned(p), dy, n, m, plan.values, grad_value(at));
  }

  /// c (m, n) = a (m, depth) b (depth, n)
  void multiply(const GemmPlan& cut, const Rows& a, const Rows& b, index_t m, index_t depth,
                index_t n, float* c, index_t c_row) const {
    Gemm g;
    g.m = m, g.k = depth, g.n = n;
    g.a = a.data, g.a_row = a.row, g.a_column = a.column;
    g.b = b.data, g.b_row = b.row, g.b_column = b.column;
    g.c = c, g.c_row = c_row;
    run_gemm(microkernels<level>(), cut, g, gemm, nullptr);
  }
  void add_product(const GemmPlan& cut, const Rows& a, const Rows& b, index_t m, index_t depth,
                   index_t n, float* sum) const {
    multiply(cut, a, b, m, depth, n, part, n);
    AtLevel<level, add>::call(sum, part, m * n);
  }
};

template <CpuLevel level>
Error run(Context& context, const Plan& plan, In grad_out, In query, In key, In value, In out,
          View<const float> logsumexp, double, bool is_causal, Mask mask, Maybe<double> scale,
          View<float> grad_query, View<float> grad_key, View<float> grad_value) {
  const Tensors t{grad_out,
                  query,
                  key,
                  value,
                  out,
                  mask,
                  logsumexp.data(),
                  is_causal,
                  scale,
                  grad_query.data(),
                  grad_key.data(),
                  grad_value.data()};
  const index_t key_tasks = plan.groups * plan.key_blocks(),
                query_tasks = plan.count * plan.query_blocks();
  const bool whole = 5 * ceil_div(plan.groups, plan.slots) * plan.slots <= 7 * plan.groups;
  parallel_for_threads(
      context.threads, whole ? plan.groups : key_tasks + query_tasks,
      [&](index_t task, index_t slot) {
        Task<level> w{plan,
                      t,
                      task,
                      {0, 0},
                      {0, plan.query_blocks()},
                      {0, plan.key_blocks()},
                      Parts(static_cast<char*>(context.scratch) + slot * plan.bytes_per_slot)};
        if (!whole && task < key_tasks) {
          const index_t block = task % plan.key_blocks();
          w.group = task / plan.key_blocks(), w.key_blocks = {block, block + 1};
          w.to_queries = false;
        }
        w.heads = {w.group * plan.sharing, (w.group + 1) * plan.sharing};
        if (!whole && task >= key_tasks) {
          const index_t head = (task - key_tasks) / plan.query_blocks(),
                        block = (task - key_tasks) % plan.query_blocks();
          w.group = head / plan.sharing, w.heads = {head, head + 1};
          w.query_blocks = {block, block + 1}, w.to_keys = false;
        }
        w.run();
      });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL_LEVELS(_scaled_dot_product_flash_attention_for_cpu_backward, prepare, run)

}  // namespace taper::optimized
