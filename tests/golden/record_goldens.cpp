// Runs golden cases on each kernel record of this machine, on memory of the exact size
// (exact_calls.h): a build with sanitizers sees every access beside it.
//
//   record_goldens [--variations N] [--known FILE]… [--seeds FILE]… [--all] FOLDER…
//
// A FOLDER holds files as in cases.h; a file FOLDER.jsonl holds cases as text, and --seeds calls
// without results, see seeds.h; then pointwise rows have some, too. Each case runs in eager,
// gradients included, as often as records fit one of its calls: first the preferred ones are
// called, then the second ones, and so on to the portable ones. What passes with the preferred ones
// must pass with the others, but for the cases that --known lists. --variations runs others like
// each case, too, whose results are not compared: other sizes, strides and dtypes (variation.h).
//
// Exits with 1 if a record did what it must not; with --all also if a record of this machine was
// not called.
#include <cstdio>

#include "exact_calls.h"
#include "known.h"
#include "run_case.h"
#include "seeds.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/ops/random.h"
#include "taper/exporter/eager/threads.h"
#include "variation.h"

namespace {

using namespace taper;
using namespace taper::golden;

struct Options {
  std::vector<std::string> folders, seeds;
  Known known;
  int variations = 0;
  bool wants_all = false;
};
struct Counts {
  int cases = 0, runs = 0, failed = 0;
};

class RecordGoldens {
 public:
  explicit RecordGoldens(const Options& options) : options_(options) {}

  void run(const CaseFile& file) {
    Random random(1);
    for (const Json& golden : file.cases) {
      try {
        const Target target = target_of(file.name, golden);
        const bool compares = golden.contains("error") || !golden.at("outputs").empty();
        run(golden.at("id").get<std::string>(), [&] {
          return compares ? run_eager(file, golden, target) : only_call(file, golden, target);
        });
        if (golden.contains("error")) continue;
        for (int i = 0; i < options_.variations; ++i) {
          const Variation variation = vary(file, golden, *target.info, random);
          run(golden.at("id").get<std::string>() + ", variation " + std::to_string(i),
              [&] { return only_call(variation.file, variation.golden, target); });
        }
      } catch (const NotHere&) {  // op_goldens says so
      }
    }
  }

  /// The records of this machine that no call took.
  std::set<std::string> unreached() const {
    std::set<std::string> names;
    for (const Kernel* kernel : eager::all_kernels())
      if (eager::cpu().has(kernel->needs) && !calls_.called().contains(kernel))
        names.insert(kernel->name);
    return names;
  }
  size_t reached() const { return calls_.called().size(); }
  const Counts& counts() const { return counts_; }

 private:
  /// `once()` gives the verdict of a case, with the records that are wanted.
  template <class Once>
  void run(const std::string& id, const Once& once) {
    now_running(id);
    ++counts_.cases;
    bool passed = true;
    size_t n = 0;
    do {
      calls_.take(n);
      eager::manual_seed(0);
      ++counts_.runs;
      const Verdict verdict = once();
      if (n == 0) passed = verdict.outcome == Outcome::passed && !options_.known.contains(id);
      std::string wrong = calls_.wrong();
      if (passed && verdict.outcome != Outcome::passed) wrong += verdict.reason;
      if (wrong.empty()) continue;
      ++counts_.failed;
      std::printf("    FAILED %s with record %zu of those that fit: %s\n", id.c_str(), n,
                  wrong.c_str());
    } while (++n < calls_.most_fitting());
  }

  static Verdict only_call(const CaseFile& file, const Json& golden, const Target& target) {
    try {
      Call arguments(file, golden, *target.info);
      call(arguments, target);
    } catch (const ExportError&) {  // refused
    }
    return {Outcome::decided_by_data, ""};
  }

  const Options& options_;
  ExactCalls calls_;
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--all")
      options.wants_all = true;
    else if (argument == "--variations" && i + 1 < argc)
      options.variations = std::stoi(argv[++i]);
    else if (argument == "--known" && i + 1 < argc)
      options.known.read(argv[++i]);
    else if (argument == "--seeds" && i + 1 < argc)
      options.seeds.push_back(argv[++i]);
    else if (argument[0] == '-')
      return std::fprintf(stderr, "record_goldens: unknown option %s\n", argv[i]), 2;
    else
      options.folders.push_back(argument);
  }

  eager::set_threads(2);  // also where the machine has one core
  RecordGoldens goldens(options);
  for (const std::string& folder : options.folders)
    for_each_case_file(
        folder, [](const std::string&) { return true; },
        [&](const std::string&, const CaseFile& file) { goldens.run(file); });
  for (const std::string& path : options.seeds)
    for (const CaseFile& file : read_seeds(path)) goldens.run(file);
  if (!options.seeds.empty())
    for (const CaseFile& file : pointwise_seeds()) goldens.run(file);

  const std::set<std::string> unreached = goldens.unreached();
  const Counts& counts = goldens.counts();
  std::printf(
      "%d cases, %d runs, %d failed; %zu records were called, %zu of this machine were not\n",
      counts.cases, counts.runs, counts.failed, goldens.reached(), unreached.size());
  if (options.wants_all)
    for (const std::string& name : unreached) std::printf("    NOT CALLED: %s\n", name.c_str());
  if (counts.cases == 0)
    return std::fprintf(stderr, "record_goldens: there are no such cases\n"), 2;
  return counts.failed > 0 || (options.wants_all && !unreached.empty()) ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "record_goldens: %s\n", e.what());
  return 2;
}
