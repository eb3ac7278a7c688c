// The scans of recurrent layers with the packed matrix product of gemm.h.
#include "taper/kernels/portable/recurrent.h"

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {
namespace {

namespace recurrent = portable::recurrent;

template <CpuLevel level>
struct Packed {
  using T = float;
  using Plan = GemmPlan;
  // For a few examples, the product goes row by row and reads the weight where it lies.
  static constexpr index_t steps_worth_a_copy = 4;

  static void transpose(const Context& context, const T* from, index_t rows, index_t columns,
                        T* to) {
    constexpr index_t at_once = 64;
    parallel_for(context.threads, ceil_div(rows, at_once), [&](index_t task) {
      const index_t row = task * at_once;
      microkernels<level>().pack(from + row * columns, columns, 1, smaller(at_once, rows - row),
                                 columns, to + row, rows);
    });
  }
  static size_t plan(Context& context, Plan& plan, index_t m, index_t n, index_t k) {
    plan = plan_gemm(microkernels<level>(), 1, m, n, k, thread_count(context.threads));
    return plan.scratch_bytes();
  }
  static void run(Context& context, const Plan& plan, const portable::Product<float>& p) {
    Gemm g;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.a = p.a.data, g.a_row = p.a.row, g.a_column = p.a.column;
    g.b = p.b.data, g.b_row = p.b.row, g.b_column = p.b.column;
    g.c = p.out.data, g.c_row = p.out.row;
    g.addend = p.addend.data;
    g.addend_row = p.addend.row, g.addend_column = p.addend.column;
    run_gemm(microkernels<level>(), plan, g, context.scratch, context.threads);
  }
};

// The templates of a record may depend only on the level.
#define TAPER_SCAN(name)                                                    \
  template <CpuLevel level>                                                 \
  constexpr auto prepare_##name = recurrent::prepare_##name<Packed<level>>; \
  template <CpuLevel level>                                                 \
  constexpr auto name = recurrent::name<Packed<level>>;
TAPER_SCAN(rnn)
TAPER_SCAN(rnn_backward)
TAPER_SCAN(lstm)
TAPER_SCAN(lstm_backward)
TAPER_SCAN(gru)
TAPER_SCAN(gru_backward)
#undef TAPER_SCAN

}  // namespace

TAPER_KERNEL_LEVELS(taper_rnn_scan, prepare_rnn, rnn)
TAPER_KERNEL_LEVELS(taper_rnn_scan_backward, prepare_rnn_backward, rnn_backward)
TAPER_KERNEL_LEVELS(taper_lstm_scan, prepare_lstm, lstm)
TAPER_KERNEL_LEVELS(taper_lstm_scan_backward, prepare_lstm_backward, lstm_backward)
TAPER_KERNEL_LEVELS(taper_gru_scan, prepare_gru, gru)
TAPER_KERNEL_LEVELS(taper_gru_scan_backward, prepare_gru_backward, gru_backward)

}  // namespace taper::optimized
