// Runs golden cases of operators and counts.
//
//   op_goldens [--exported] [--known FILE]… [--in-double FILE] [--counts FILE] [--at-least N]
//       [--only NAME]… [--values NAME]… [--some] [--verbose] [--errors] FOLDER…
//
// A FOLDER holds files as in cases.h; a file FOLDER.jsonl holds cases as text, see seeds.h.
//
// In eager; with --exported each case is also traced, written as a program and run. Prints a line
// an overload (cases run, passed, failed, without kernel, decided by data: no program can hold
// them) and one of totals; exits with 1 if a case did not pass
// and --known does not list it with what goes wrong (known.h); or if --known lists what does not go
// wrong in eager, or a case that there is not. Not to be listed are operators that read a number,
// as programs.
// --in-double: where PyTorch computed in half precision, its exact results count as well
// (in_double.h).
// --only takes a name as files have it, "torchao.quantize_affine", with all overloads; "aten." may
// be left out. --values takes the beginning of such a name: gradients are not compared there.
// --counts writes how many cases of each row passed and ran, those of its in-place twin included.
// --at-least: exits with 1 if fewer cases pass.
// --some: the cases are some of those that --known is about; those that are not there count for
// nothing.
// --verbose prints every failure and what is missing, --errors the messages of refused calls.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "in_double.h"
#include "known.h"
#include "run_case.h"
#include "run_exported.h"
#include "seeds.h"
#include "taper/exporter/eager/ops/random.h"
#include "taper/exporter/eager/threads.h"

namespace {

using namespace taper;
using namespace taper::golden;

struct Counts {
  int run = 0, passed = 0, failed = 0, without = 0, decided = 0, surprises = 0;
  void add(const Counts& c) {
    run += c.run, passed += c.passed, failed += c.failed, without += c.without;
    decided += c.decided, surprises += c.surprises;
  }
  void add(Outcome outcome) {
    int Counts::*const counters[] = {&Counts::passed, &Counts::failed, &Counts::without,
                                     &Counts::decided};
    ++run, ++(this->*counters[static_cast<int>(outcome)]);
  }
};
struct Options {
  std::vector<std::string> folders, only, values;
  Known known;
  InDouble in_double;
  bool exported = false, verbose = false, errors = false, some = false;
  const char* counts = nullptr;
  int at_least = 0;
};
using CountsByRow = std::map<std::string, Counts>;
using Names = std::set<std::string>;

void print(const std::string& name, const Counts& c) {
  std::printf("%-40s %5d run %5d passed %5d failed %5d without kernel %5d decided by data\n",
              name.c_str(), c.run, c.passed, c.failed, c.without, c.decided);
}

bool has_gradients(const std::string& file, const Options& options) {
  return std::none_of(options.values.begin(), options.values.end(),
                      [&](const std::string& part) { return file.starts_with(part); });
}

Verdict run(const CaseFile& file, const Json& golden, const Target& target, bool exported) {
  eager::manual_seed(0);
  const Verdict in_eager = run_eager(file, golden, target);
  const bool has_values =
      in_eager.outcome == Outcome::passed || in_eager.outcome == Outcome::failed;
  if (!exported || !has_values) return in_eager;
  // what eager gives, a program gives, too, right or wrong
  const Verdict program = run_exported(file, golden, target, in_eager.outcome == Outcome::passed);
  return program.outcome == Outcome::passed ? in_eager : program;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The result or gradient that a line is about; "" where it says something else.
std::string result_of(const std::string& line) {
  for (const char* start : {"result ", "gradient of ", "second gradient of "})
    if (line.starts_with(start)) return line.substr(0, line.find(':'));
  return "";
}

/// What is wrong by PyTorch's own results and by its exact ones: each may be either.
Verdict wrong_in_both(const Verdict& own, const Verdict& exact) {
  std::set<std::string> wrong;
  std::string both;
  const auto keep = [&](const std::string& line) { both += (both.empty() ? "" : "\n") + line; };
  for (const std::string& line : lines_of(exact.reason)) {
    wrong.insert(result_of(line));
    if (exact.outcome != Outcome::passed && result_of(line).empty()) keep(line);
  }
  for (const std::string& line : lines_of(own.reason))
    if (result_of(line).empty() || wrong.contains(result_of(line))) keep(line);
  return {both.empty() ? Outcome::passed : Outcome::failed, both};
}

Verdict run(const CaseFile& file, const Json& golden, const Options& options,
            std::string& row_of_case) {
  try {
    const Target target = target_of(file.name, golden);
    row_of_case = std::string(target.info->name);
    const Verdict own = run(file, golden, target, options.exported);
    if (!options.in_double.has(golden)) return own;
    if (own.outcome != Outcome::failed)
      return {Outcome::failed,
              "PyTorch's own results are met: in_double.py need not have the case"};
    const auto [exact_file, exact] = options.in_double.exact(file, golden);
    return wrong_in_both(own, run(exact_file, exact, target, options.exported));
  } catch (const NotHere& e) {
    return {Outcome::without_kernel, e.what()};
  }
}

/// Operators that are there to read a number out of a tensor: only a run has one.
bool reads_a_number(const std::string& row) {
  return row == "item" || row == "_local_scalar_dense" || row == "_assert_async.msg";
}

/// Whether nothing is wrong with a case, or the list says it, line by line.
bool is_expected(const std::string& id, const std::string& row, const Verdict& verdict,
                 const Known& known) {
  if (verdict.outcome == Outcome::passed ||
      (verdict.outcome == Outcome::decided_by_data && reads_a_number(row)))
    return !known.contains(id) || known.depends_on_the_processor(id);
  return std::ranges::all_of(lines_of(verdict.reason), [&](const std::string& line) {
    return known.reason(id, line) != nullptr;
  });
}

/// Counts what the lists say of a failing case, and what is right by now.
int count_stale(const std::string& id, const Verdict& verdict, const Options& options) {
  // of a program that fails, nothing is said of what eager gives
  if (verdict.outcome != Outcome::failed || options.exported) return 0;
  const std::vector<std::string> stale = options.known.stale(id, lines_of(verdict.reason));
  for (const std::string& beginning : stale)
    std::printf("    KNOWN TO FAIL, but it does not: %s [%s]\n", id.c_str(), beginning.c_str());
  return static_cast<int>(stale.size());
}
int count_unknown_cases(const Known& known, const Names& ids) {
  int unknown = 0;
  for (const std::string& name : known.names()) {
    if (ids.contains(name)) continue;
    ++unknown;
    std::printf("    KNOWN TO FAIL, but there is no such case: %s\n", name.c_str());
  }
  return unknown;
}

void run_file(const CaseFile& file, const Options& options, CountsByRow& by_row, Counts& total,
              Names& ids) {
  Counts counts;
  for (const Json& golden : file.cases) {
    std::string row;
    const Verdict verdict = run(file, golden, options, row);
    const std::string id = golden.at("id").get<std::string>(), line = id + ": " + verdict.reason;
    ids.insert(id);
    const bool expected = is_expected(id, row, verdict, options.known);
    // the counts are the same on every processor
    const Outcome counted =
        options.known.depends_on_the_processor(id) ? Outcome::failed : verdict.outcome;
    counts.add(counted);
    by_row[row].add(counted);
    if (!expected) ++counts.surprises;
    constexpr const char* words[] = {"refused", "FAILED", "WITHOUT KERNEL", "DECIDED BY DATA"};
    const char* word = words[static_cast<int>(verdict.outcome)];
    if (verdict.outcome == Outcome::passed) {
      if (!expected) std::printf("    KNOWN TO FAIL, but it does not: %s\n", line.c_str());
      if (options.errors && golden.contains("error"))
        std::printf("    %s %s\n", word, line.c_str());
    } else if (!expected) {
      if (options.verbose || counts.surprises == 1) std::printf("    %s %s\n", word, line.c_str());
    } else if (options.verbose) {
      std::printf("    known: %s\n", line.c_str());
    }
    counts.surprises += count_stale(id, verdict, options);
  }
  print(file.name, counts);
  total.add(counts);
}

bool is_chosen(const std::string& name, const Options& options) {
  return options.only.empty() ||
         std::any_of(options.only.begin(), options.only.end(), [&](const std::string& part) {
           return name.starts_with("aten." + part + ".") || name.starts_with(part + ".");
         });
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--exported") == 0)
      options.exported = true;
    else if (std::strcmp(argv[i], "--verbose") == 0)
      options.verbose = true;
    else if (std::strcmp(argv[i], "--some") == 0)
      options.some = true;
    else if (std::strcmp(argv[i], "--errors") == 0)
      options.errors = true;
    else if (std::strcmp(argv[i], "--known") == 0 && i + 1 < argc)
      options.known.read(argv[++i]);
    else if (std::strcmp(argv[i], "--in-double") == 0 && i + 1 < argc)
      options.in_double = InDouble(argv[++i]);
    else if (std::strcmp(argv[i], "--counts") == 0 && i + 1 < argc)
      options.counts = argv[++i];
    else if (std::strcmp(argv[i], "--at-least") == 0 && i + 1 < argc)
      options.at_least = std::stoi(argv[++i]);
    else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      options.only.push_back(argv[++i]);
    else if (std::strcmp(argv[i], "--values") == 0 && i + 1 < argc)
      options.values.push_back(argv[++i]);
    else if (argv[i][0] == '-')
      return std::fprintf(stderr, "op_goldens: unknown option %s\n", argv[i]), 2;
    else
      options.folders.push_back(argv[i]);
  }
  if (options.folders.empty())
    return std::fprintf(stderr,
                        "usage: op_goldens [--exported] [--known FILE]... [--in-double FILE] "
                        "[--counts FILE] [--at-least N] [--only NAME]... [--values NAME]... "
                        "[--some] [--verbose] "
                        "[--errors] FOLDER...\n"),
           2;

  eager::set_threads(2);  // also where the machine has one core
  Counts total;
  CountsByRow by_row;
  Names ids;
  for (const std::string& folder : options.folders)
    for_each_case_file(
        folder, [&](const std::string& name) { return is_chosen(name, options); },
        [&](const std::string& name, CaseFile& file) {
          if (!has_gradients(name, options))
            for (Json& golden : file.cases) golden.erase("grads");
          run_file(file, options, by_row, total, ids);
        });
  if (options.only.empty() && !options.some)
    total.surprises += count_unknown_cases(options.known, ids);
  if (options.counts != nullptr) {
    std::ofstream out(options.counts);
    for (const auto& [row, c] : by_row)
      if (!row.empty()) out << row << ' ' << c.passed << '/' << c.run << '\n';
    if (!out.flush())
      return std::fprintf(stderr, "op_goldens: cannot write %s\n", options.counts), 2;
  }
  print("total", total);
  if (total.run == 0)
    return std::fprintf(stderr, "op_goldens: there are no such cases in the folders\n"), 2;
  if (total.passed < options.at_least)
    return std::fprintf(stderr, "op_goldens: %d cases passed, fewer than %d\n", total.passed,
                        options.at_least),
           1;
  return total.surprises == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "op_goldens: %s\n", e.what());
  return 2;
}
