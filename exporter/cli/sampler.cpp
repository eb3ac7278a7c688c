#include "taper/exporter/cli/sampler.h"

#include "taper/exporter/base/error.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace taper::cli {
namespace {

constexpr long interval_ns = 50'000;

// What the handler writes to: the caller's memory, while there is a Sampler.
struct {
  std::atomic<Sample*> samples = nullptr;
  size_t capacity = 0;
  std::atomic<size_t> count = 0;
  std::atomic<int> handlers = 0;  // that run now
} sampled;

const void* place_of(const ucontext_t& context) {
#ifdef __x86_64__
  return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
#else
  return reinterpret_cast<const void*>(context.uc_mcontext.pc);
#endif
}

void on_signal(int, siginfo_t*, void* context) {
  const int error = errno;
  ++sampled.handlers;
  if (Sample* const to = sampled.samples) {
    const size_t i = sampled.count++;
    if (i < sampled.capacity) {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      to[i] = {
          static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec),
          place_of(*static_cast<const ucontext_t*>(context)), Sampler::this_thread()};
    }
  }
  --sampled.handlers;
  errno = error;
}

}  // namespace

class Sampler::Timers {
 public:
  explicit Timers(size_t capacity) : samples_(capacity) {
    sampled.capacity = capacity, sampled.count = 0;
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    if (sigaction(SIGPROF, &action, nullptr) != 0) refuse();
    sampled.samples = samples_.data();
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      start(static_cast<pid_t>(std::stol(task.path().filename().string())));
  }
  ~Timers() { stop(); }

  std::vector<Sample> take() {
    stop();
    samples_.resize(std::min(sampled.count.load(), samples_.size()));
    return std::move(samples_);
  }

 private:
  [[noreturn]] void refuse() {
    stop();
    throw ExportError("the system refuses the timers that --detail needs");
  }
  void start(pid_t thread) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event.sigev_notify_thread_id = thread;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) refuse();
    timers_.push_back(timer);
    const itimerspec every{{0, interval_ns}, {0, interval_ns}};
    if (timer_settime(timer, 0, &every, nullptr) != 0) refuse();
  }
  // The handler stays, because a signal may still be on its way; it finds nothing to write to.
  void stop() {
    for (timer_t timer : timers_) timer_delete(timer);
    timers_.clear();
    sampled.samples = nullptr;
    while (sampled.handlers > 0) sched_yield();
  }

  std::vector<Sample> samples_;
  std::vector<timer_t> timers_;
};

bool Sampler::is_supported() { return true; }
int Sampler::this_thread() { return static_cast<int>(syscall(SYS_gettid)); }
Sampler::Sampler(size_t capacity) : timers_(std::make_unique<Timers>(capacity)) {}
std::vector<Sample> Sampler::take() { return timers_->take(); }
Sampler::~Sampler() = default;

}  // namespace taper::cli

#else

namespace taper::cli {

class Sampler::Timers {};

bool Sampler::is_supported() { return false; }
int Sampler::this_thread() { return 0; }
Sampler::Sampler(size_t) { throw ExportError("--detail needs Linux on x86-64 or 64-bit Arm"); }
std::vector<Sample> Sampler::take() { return {}; }
Sampler::~Sampler() = default;

}  // namespace taper::cli
#endif
