// From a file to the first result: the time and the memory of whole processes. Each process loads
// the program, creates the method "forward" and calls it twice. In the lines "packed" a load packs
// weights that the file does not hold packed; in the lines "dense" it does not.
//
// Times are the smallest of several processes. `whole` is the time from the start of the process to
// the end of the first call. `peak` is the largest resident memory: of the process before it loads,
// and what the program adds. The latter is compared with the file, the arena and 3 MB.
//
//   taper export mobilenet_v2.pt2 -o mobilenet_v2.taper
//   taper export mobilenet_v2.pt2 -o dense.taper --dense
//   start [--threads N] mobilenet_v2.taper dense.taper
//
// This program links all kernels. scripts/app_size.sh builds it with those of one program. It needs
// Linux.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

#ifdef TAPER_START_KERNELS
#include "start.h"  // start_kernels, written by `taper export --header`
#endif

extern char** environ;

using namespace taper;

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "start: %s\n", what.c_str());
  std::exit(1);
}

KernelSet kernels() {
#ifdef TAPER_START_KERNELS
  return start_kernels;
#else
  return default_kernels();
#endif
}

/// Of a clock that all processes share.
int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The largest resident memory of this process so far.
int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// ---- the process that is measured ----

/// What it sends to the process that started it.
struct Start {
  int64_t started, entered, loaded, created, first_call, second_call;  ///< nanoseconds
  int64_t own_bytes, peak_bytes, arena_bytes, packed_bytes;
};

void fill(const TensorRef& t) {
  if (t.shape != nullptr) std::memset(t.data, 0, static_cast<size_t>(t.size_bytes()));
}

/// Loads the program, calls it twice, and writes a Start to the standard output.
void measure_this_process(const char* path, bool packs, int threads, int64_t started) {
  Start s{};
  s.started = started, s.entered = now_ns(), s.own_bytes = peak_bytes();
  const ThreadPool pool(threads);
  std::string why;
  ModuleOptions options;
  options.threads = pool.threads(), options.message = &why;
  options.pack_weights = packs ? PackWeights::of_mapped_files : PackWeights::never;
  Result<Module> module = Module::load(path, kernels(), options);
  if (!module.ok()) fail(why);
  s.loaded = now_ns();
  Result<Method> method = module->method("forward");
  if (!method.ok()) fail(module->message());
  s.created = now_ns();
  for (index_t i = 0; i < method->input_count(); ++i) fill(method->input(i));
  if (method->execute() != Error::ok) fail("the call failed");
  s.first_call = now_ns(), s.peak_bytes = peak_bytes();
  if (method->execute() != Error::ok) fail("the call failed");
  s.second_call = now_ns();
  Result<ModuleRequirements> needed = module->requirements("forward");
  if (!needed.ok()) fail(module->message());
  const MethodRequirements& m = needed->method;
  s.arena_bytes = static_cast<int64_t>(m.activations + m.scratch + m.io);
  s.packed_bytes = static_cast<int64_t>(needed->packed_weights);
  if (std::fwrite(&s, sizeof s, 1, stdout) != 1) fail("the result cannot be written");
}

// ---- the process that starts it ----

Start process(const char* path, bool packs, int threads) {
  int ends[2];
  if (pipe(ends) != 0) fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::vector<std::string> words{"start",
                                 "--measure",
                                 packs ? "packed" : "dense",
                                 std::to_string(threads),
                                 path,
                                 std::to_string(now_ns())};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ) != 0)
    fail("no process");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Start s{};
  const ssize_t got = read(ends[0], &s, sizeof s);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || got != static_cast<ssize_t>(sizeof s)) std::exit(1);
  return s;
}

double milliseconds(int64_t from, int64_t to) { return 1e-6 * static_cast<double>(to - from); }
double megabytes(int64_t bytes) { return 1e-6 * static_cast<double>(bytes); }

/// Smallest times and the largest memory.
struct Summary {
  double process = 1e9, load = 1e9, create = 1e9, first_call = 1e9, second_call = 1e9, whole = 1e9;
  int64_t own_bytes = 0, peak_bytes = 0;

  void add(const Start& s) {
    process = std::min(process, milliseconds(s.started, s.entered));
    load = std::min(load, milliseconds(s.entered, s.loaded));
    create = std::min(create, milliseconds(s.loaded, s.created));
    first_call = std::min(first_call, milliseconds(s.created, s.first_call));
    second_call = std::min(second_call, milliseconds(s.first_call, s.second_call));
    whole = std::min(whole, milliseconds(s.started, s.first_call));
    own_bytes = std::max(own_bytes, s.own_bytes);
    peak_bytes = std::max(peak_bytes, s.peak_bytes);
  }
};

void report(const char* path, int threads) {
  constexpr int processes = 15;
  const int64_t file_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  for (const bool packs : {true, false}) {
    Start s = process(path, packs, threads);  // brings the file into the system's cache
    Summary of;
    for (int i = 0; i < processes; ++i) of.add(s = process(path, packs, threads));
    if (packs)
      std::printf("%s: file %.1f MB, arena %.1f MB, packed at load %.1f MB\n", path,
                  megabytes(file_bytes), megabytes(s.arena_bytes), megabytes(s.packed_bytes));
    std::printf(
        "  %-6s  process %.2f ms + load %.2f + create %.2f + first call %.2f, whole %.2f; second "
        "call %.2f\n"
        "          peak %.1f MB: process %.1f, program %.1f of %.1f\n",
        packs ? "packed" : "dense", of.process, of.load, of.create, of.first_call, of.whole,
        of.second_call, megabytes(of.peak_bytes), megabytes(of.own_bytes),
        megabytes(of.peak_bytes - of.own_bytes), megabytes(file_bytes + s.arena_bytes + 3000000));
  }
}

int usage() {
  std::fprintf(stderr, "usage: start [--threads N] PROGRAM...\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto is = [&](int i, const char* word) {
    return i < argc && std::strcmp(argv[i], word) == 0;
  };
  if (argc == 6 && is(1, "--measure"))
    return measure_this_process(argv[4], is(2, "packed"), std::atoi(argv[3]), std::atoll(argv[5])),
           0;
  int first = 1, threads = 1;
  if (is(1, "--threads") && argc > 2) threads = std::atoi(argv[2]), first = 3;
  if (first >= argc || threads < 1) return usage();
  for (int i = first; i < argc; ++i) {
    std::error_code error;
    if (!std::filesystem::exists(argv[i], error)) fail(std::string(argv[i]) + ": no such file");
    report(argv[i], threads);
  }
  return 0;
}
