#include "taper/exporter/roofline/roofline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "taper/exporter/roofline/loops.h"

namespace taper::roofline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

int count_of(const Threads* threads) { return threads == nullptr ? 1 : threads->count; }

/// Calls `work(i)` for each of the threads at the same time, and writes to times[i] how long
/// that took. A pool may give the task of a thread that sleeps to another one. So each task waits
/// until all have started, but not for long. Returns whether they had.
bool run_together(const Threads* threads, const std::function<void(index_t)>& work,
                  std::vector<double>& times) {
  constexpr auto patience = std::chrono::milliseconds(1);
  const auto count = static_cast<int>(times.size());
  std::atomic<int> started{0}, early{0};
  parallel_for(threads, count, [&](index_t i) {
    const Clock::time_point deadline = Clock::now() + patience;
    ++started;
    while (started < count && Clock::now() < deadline) continue;
    if (started < count) ++early;
    const Clock::time_point begin = Clock::now();
    work(i);
    times[static_cast<size_t>(i)] = seconds(Clock::now() - begin);
  });
  return early == 0;
}

/// The least time of one call of `work`, as the mean rate of the threads gives it. Calls for
/// `budget` seconds, but at least twice. On a busy machine the threads seldom run undisturbed at
/// one moment. So each has its own best sample, of those in which all had started if there are any.
double best_seconds(double budget, const Threads* threads,
                    const std::function<void(index_t)>& work) {
  const auto count = static_cast<size_t>(count_of(threads));
  std::vector<double> together(count, std::numeric_limits<double>::infinity()), apart(together);
  const Clock::time_point start = Clock::now();
  for (int calls = 0; calls < 2 || seconds(Clock::now() - start) < budget; ++calls) {
    std::vector<double> sample(count);
    std::vector<double>& best = run_together(threads, work, sample) ? together : apart;
    for (size_t i = 0; i < count; ++i) best[i] = std::min(best[i], sample[i]);
  }
  double rate = 0;
  for (const double best : std::isinf(together[0]) ? apart : together) rate += 1 / best;
  return static_cast<double>(count) / rate;
}

/// Uses a result, so that no compiler leaves out what computes it.
void keep(float result) {
  [[maybe_unused]] static thread_local volatile float kept;
  kept = result;
}

/// The bytes of the first processor's cache of a level, as Linux tells them. 0: not known.
double cache_bytes(const std::string& level) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::ifstream level_file(folder + "level"), size_file(folder + "size");
    std::string found;
    double size = 0;
    char unit = ' ';
    if (level_file >> found && found == level && size_file >> size >> unit)
      return size * (unit == 'M' ? 1 << 20 : unit == 'K' ? 1 << 10 : 1);
  }
  return 0;
}

/// A place where operands lie, and how many bytes to read there to measure it.
struct Place {
  double up_to_bytes, measured_bytes;
};

// Each thread has its own second-level cache. The third level is shared.
std::vector<Place> places(int threads) {
  constexpr double usual_second_level = 256 << 10, least_memory = 64 << 20, most_memory = 256 << 20;
  const double found = cache_bytes("2"), third = cache_bytes("3");
  const double second = (found > 0 ? found : usual_second_level) * threads;
  std::vector<Place> list{{second, second / 2}};
  if (third > second) list.push_back({third, std::min(std::max(third / 4, second), most_memory)});
  list.push_back({std::numeric_limits<double>::infinity(),
                  std::clamp(2 * std::max(second, third), least_memory, most_memory)});
  return list;
}

/// Numbers that the threads share out in equal parts.
class Numbers {
 public:
  Numbers(double bytes, const Threads* threads)
      : threads_(threads), part_(part_of(bytes)), numbers_(new float[size()]) {
    parallel_for(threads, count_of(threads),
                 [&](index_t i) { std::fill_n(numbers_.get() + i * part_, part_, 0.0f); });
  }

  /// Bytes a second of `work(part, count)`, which goes once over a part, again and again over about
  /// the first `bytes`.
  template <class Work>
  double rate(double bytes, const Work& work) {
    constexpr double sample_bytes = 4 << 20;  // takes far longer than to wake threads
    constexpr double budget = 0.007;
    const index_t part = std::min(part_, part_of(bytes));
    const double once = static_cast<double>(part * count_of(threads_)) * sizeof(float);
    const int repeat = std::max(1, static_cast<int>(sample_bytes * count_of(threads_) / once));
    const double time = best_seconds(budget, threads_, [&](index_t i) {
      for (int k = 0; k < repeat; ++k) work(numbers_.get() + i * part_, part);
    });
    return once * repeat / time;
  }

 private:
  index_t part_of(double bytes) const {
    const double blocks = bytes / sizeof(float) / count_of(threads_) / block;
    return std::max<index_t>(1, static_cast<index_t>(blocks)) * block;
  }
  size_t size() const { return static_cast<size_t>(part_ * count_of(threads_)); }

  const Threads* threads_;
  index_t part_;
  std::unique_ptr<float[]> numbers_;
};

// The time to read the operands, or to read and write them.
Roof moving(const Peaks& peaks, const Work& work, bool both_ways) {
  double all = 0, memory = 0;
  for (const Operand& operand : work.operands) {
    if (operand.is_written && !both_ways) continue;
    const auto place = std::ranges::find_if(
        peaks.bandwidths, [&](const Bandwidth& b) { return operand.footprint <= b.up_to_bytes; });
    const double us =
        operand.bytes / (both_ways ? place->read_and_written_gbps : place->read_gbps) / 1e3;
    all += us;
    if (&*place == &peaks.bandwidths.back()) memory += us;
  }
  return {memory >= all / 2 ? Limit::memory : Limit::cache, all};
}

}  // namespace

double measure_gflops(const Threads* threads) {
  constexpr index_t rounds = 50'000;
  constexpr double budget = 0.02;
  const Loops& loops = fastest_loops();
  const double time =
      best_seconds(budget, threads, [&](index_t) { keep(loops.multiply_add(rounds)); });
  return 2e-9 * static_cast<double>(rounds * loops.multiply_adds_per_round) * count_of(threads) /
         time;
}

// The best of several rounds: what slows the machine down for a moment disturbs one of them.
Peaks measure_peaks(const Threads* threads) {
  constexpr int rounds = 3;
  const Loops& loops = fastest_loops();
  const auto read = [&](const float* part, index_t count) { keep(loops.read(part, count)); };
  const std::vector<Place> list = places(count_of(threads));
  Numbers numbers(list.back().measured_bytes, threads);
  Peaks peaks{0, {}};
  for (const Place& place : list) peaks.bandwidths.push_back({place.up_to_bytes, 0, 0});
  for (int round = 0; round < rounds; ++round) {
    peaks.gflops = std::max(peaks.gflops, measure_gflops(threads));
    for (size_t i = 0; i < list.size(); ++i) {
      Bandwidth& b = peaks.bandwidths[i];
      const double bytes = list[i].measured_bytes;
      b.read_gbps = std::max(b.read_gbps, 1e-9 * numbers.rate(bytes, read));
      b.read_and_written_gbps =
          std::max(b.read_and_written_gbps, 2e-9 * numbers.rate(bytes, loops.halve));
    }
  }
  return peaks;
}

const char* name_of(Limit limit) {
  switch (limit) {
    case Limit::compute:
      return "compute";
    case Limit::cache:
      return "cache";
    case Limit::memory:
      break;
  }
  return "memory";
}

double Work::bytes() const {
  double sum = 0;
  for (const Operand& operand : operands) sum += operand.bytes;
  return sum;
}

Roof roof_of(const Peaks& peaks, const Work& work) {
  const double computing = work.operations / peaks.gflops / 1e3;
  const Roof reading = moving(peaks, work, false), both_ways = moving(peaks, work, true);
  const Roof& slower = reading.us > both_ways.us ? reading : both_ways;
  return computing >= slower.us ? Roof{Limit::compute, computing} : slower;
}

Roof sum_of(const std::vector<Roof>& roofs) {
  double us[3] = {};
  for (const Roof& roof : roofs) us[static_cast<int>(roof.limit)] += roof.us;
  const double* const most = std::max_element(us, us + 3);
  return {static_cast<Limit>(most - us), us[0] + us[1] + us[2]};
}

}  // namespace taper::roofline
