#include <array>
#include <cmath>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

/// The results of a scan of each kind and of its gradient.
struct Scan {
  const Operator *forward, *backward;
  index_t gates;
};
const Scan scans[] = {{&ops::taper_rnn_scan, &ops::taper_rnn_scan_backward, 1},
                      {&ops::taper_lstm_scan, &ops::taper_lstm_scan_backward, 4},
                      {&ops::taper_gru_scan, &ops::taper_gru_scan_backward, 3}};

struct Kernels {
  const Kernel *forward, *backward;
};

std::vector<Array> run(const Kernels& k, const Scan& scan, index_t time, index_t batch,
                       index_t hidden, bool reverse, const Threads* threads = nullptr) {
  const index_t width = scan.gates * hidden;
  const auto steps = [&](index_t w) { return Array({time, batch, w}, 77); };
  const auto state = [&] { return Array({batch, hidden}, 77); };
  const Array gates = Array::random({time, batch, width}, 1),
              hx = Array::random({batch, hidden}, 2), cx = Array::random({batch, hidden}, 3),
              w = Array::random({width, hidden}, 4), bias = Array::random({hidden}, 5),
              dy = Array::random({time, batch, hidden}, 6),
              dc = Array::random({time, batch, hidden}, 7);
  std::vector<Array> r;
  if (scan.gates == 1) {
    r.push_back(steps(hidden));
    call(*k.forward, {slot(gates), slot(hx), slot(w), slot(false), slot(reverse), slot(r[0])},
         threads);
    r.push_back(steps(width)), r.push_back(state());
    call(*k.backward,
         {slot(dy), slot(r[0]), slot(w), slot(false), slot(reverse), slot(r[1]), slot(r[2])},
         threads);
  } else if (scan.gates == 4) {
    r.push_back(steps(hidden)), r.push_back(steps(hidden)), r.push_back(steps(width));
    call(*k.forward,
         {slot(gates), slot(hx), slot(cx), slot(w), slot(reverse), slot(r[0]), slot(r[1]),
          slot(r[2])},
         threads);
    r.push_back(steps(width)), r.push_back(state()), r.push_back(state());
    call(*k.backward,
         {slot(dy), slot(dc), slot(cx), slot(r[1]), slot(r[2]), slot(w), slot(reverse), slot(r[3]),
          slot(r[4]), slot(r[5])},
         threads);
  } else {
    r.push_back(steps(hidden)), r.push_back(steps(4 * hidden));
    call(*k.forward,
         {slot(gates), slot(hx), slot(w), slot(bias), slot(reverse), slot(r[0]), slot(r[1])},
         threads);
    r.push_back(steps(width)), r.push_back(steps(width)), r.push_back(state());
    call(*k.backward,
         {slot(dy), slot(hx), slot(r[0]), slot(r[1]), slot(w), slot(reverse), slot(r[2]),
          slot(r[3]), slot(r[4])},
         threads);
  }
  return r;
}

Kernels portable_kernels(const Scan& scan) {
  Kernels found{};
  for (const Kernel* kernel : portable::all) {
    if (kernel->op == scan.forward && found.forward == nullptr) found.forward = kernel;
    if (kernel->op == scan.backward && found.backward == nullptr) found.backward = kernel;
  }
  return found;
}

TEST(scans, agree_with_the_plain_ones_at_every_level) {
  for (const Scan& scan : scans) {
    const std::vector<const Kernel*> forward = kernels_of(*scan.forward),
                                     backward = kernels_of(*scan.backward);
    ASSERT_FALSE(forward.empty());
    ASSERT_EQ(forward.size(), backward.size());
    for (const auto& [time, batch, hidden] : {std::array<index_t, 3>{1, 1, 1},
                                              {3, 1, 33},
                                              {4, 5, 16},
                                              {3, 40, 70},
                                              {6, 40, 12},
                                              {2, 0, 8}})
      for (const bool reverse : {false, true}) {
        const std::vector<Array> expected =
            run(portable_kernels(scan), scan, time, batch, hidden, reverse);
        for (size_t i = 0; i < forward.size(); ++i) {
          SCOPED_TRACE(forward[i]->name);
          const std::vector<Array> actual =
              run({forward[i], backward[i]}, scan, time, batch, hidden, reverse);
          for (size_t r = 0; r < expected.size(); ++r)
            for (index_t e = 0; e < expected[r].numel(); ++e)
              ASSERT_NEAR(actual[r][e], expected[r][e], 1e-4 * (1 + std::abs(expected[r][e])))
                  << "result " << r << ", element " << e << ", hidden " << hidden;
        }
      }
  }
}

TEST(scans, give_the_same_bits_with_threads) {
  ThreadPool pool(3);
  for (const Scan& scan : scans) {
    const std::vector<const Kernel*> forward = kernels_of(*scan.forward),
                                     backward = kernels_of(*scan.backward);
    for (size_t i = 0; i < forward.size(); ++i) {
      const Kernels k{forward[i], backward[i]};
      const std::vector<Array> one = run(k, scan, 5, 50, 90, false),
                               many = run(k, scan, 5, 50, 90, false, pool.threads());
      for (size_t r = 0; r < one.size(); ++r) EXPECT_EQ(one[r].values(), many[r].values());
    }
  }
}

}  // namespace
}  // namespace taper::tests
