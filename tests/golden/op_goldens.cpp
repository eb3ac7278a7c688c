// Runs golden cases of operators and counts.
//
//   op_goldens [--exported] [--known FILE]… [--counts FILE] [--only NAME]… [--values NAME]…
//       [--verbose] [--errors] FOLDER…
//
// In eager; with --exported each case that passes there is also traced, written as a program and
// run. Prints a line an overload (cases run, passed, failed, without kernel, refused because of
// complex numbers) and one of totals;
// exits with 1 if a case failed that --known does not list (a case and its reason a line), or if a
// case that it lists passes.
// --only takes a name as files have it, "torchao.quantize_affine", with all overloads; "aten." may
// be left out. --values takes the beginning of such a name: gradients are not compared there.
// --counts writes how many cases of each row passed and ran, those of its in-place twin included.
// --verbose prints every failure and what is missing, --errors the messages of refused calls.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "run_case.h"
#include "run_exported.h"
#include "taper/exporter/eager/ops/random.h"
#include "taper/exporter/eager/threads.h"

namespace {

using namespace taper;
using namespace taper::golden;

struct Counts {
  int run = 0, passed = 0, failed = 0, without = 0, complex = 0, surprises = 0;
  void add(const Counts& c) {
    run += c.run, passed += c.passed, failed += c.failed, without += c.without,
        complex += c.complex, surprises += c.surprises;
  }
};
struct Options {
  std::vector<std::string> folders, only, values;
  std::map<std::string, std::string> known;  // case → why it fails
  bool exported = false, verbose = false, errors = false;
  const char* counts = nullptr;
};

void print(const std::string& name, const Counts& c) {
  std::printf("%-40s %5d run %5d passed %5d failed %5d without kernel %5d refused (complex)\n",
              name.c_str(), c.run, c.passed, c.failed, c.without, c.complex);
}

bool has_gradients(const std::filesystem::path& path, const Options& options) {
  return std::none_of(options.values.begin(), options.values.end(), [&](const std::string& part) {
    return path.filename().string().starts_with(part);
  });
}

Counts run_file(const std::filesystem::path& path, const Options& options) {
  CaseFile file = CaseFile::read(path);
  Counts counts;
  std::string first_failure;
  Target target{};
  std::string missing;
  if (!has_gradients(path, options))
    for (Json& golden : file.cases) golden.erase("grads");
  try {
    target = target_of(file.name);
  } catch (const NotHere& e) {
    missing = e.what();
  }
  for (const Json& golden : file.cases) {
    eager::manual_seed(0);
    Verdict verdict =
        target.info ? run_eager(file, golden, target) : Verdict{Outcome::without_kernel, missing};
    if (options.exported && verdict.outcome == Outcome::passed)
      verdict = run_exported(file, golden, target);
    ++counts.run;
    const std::string id = golden.at("id").get<std::string>(), line = id + ": " + verdict.reason;
    const bool is_known = options.known.contains(id);
    if ((verdict.outcome == Outcome::failed) != is_known) {
      ++counts.surprises;
      if (is_known) std::printf("    KNOWN TO FAIL, but it does not: %s\n", line.c_str());
    }
    switch (verdict.outcome) {
      case Outcome::passed:
        ++counts.passed;
        if (options.errors && golden.contains("error"))
          std::printf("    refused %s\n", line.c_str());
        break;
      case Outcome::failed:
        ++counts.failed;
        if (is_known && options.verbose)
          std::printf("    known to fail %s (%s)\n", line.c_str(), options.known.at(id).c_str());
        if (!is_known && (options.verbose || first_failure.empty()))
          std::printf("    FAILED %s\n", (first_failure = line).c_str());
        break;
      case Outcome::without_kernel:
        ++counts.without;
        if (options.verbose) std::printf("    without kernel %s\n", line.c_str());
        break;
      case Outcome::complex:
        ++counts.complex;
        if (options.verbose) std::printf("    refused %s\n", line.c_str());
    }
  }
  print(file.name, counts);
  return counts;
}

/// Lines "case  reason"; empty ones and those that begin with # are left out.
std::map<std::string, std::string> read_known(const char* path) {
  std::map<std::string, std::string> known;
  std::ifstream in(path);
  if (!in) throw std::runtime_error(std::string("cannot read ") + path);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
    known[line.substr(0, space)] = line.substr(line.find_first_not_of(' ', space));
  }
  return known;
}

bool is_chosen(const std::filesystem::path& path, const Options& options) {
  const std::string name = path.filename().string();
  if (!name.ends_with(".safetensors")) return false;
  return options.only.empty() ||
         std::any_of(options.only.begin(), options.only.end(), [&](const std::string& part) {
           return name.starts_with("aten." + part + ".") || name.starts_with(part + ".");
         });
}

/// The row that a file's overload is, or is the in-place twin of; "" if there is none.
std::string row_of(const std::filesystem::path& path) {
  try {
    return std::string(target_of(overload_of(path)).info->name);
  } catch (const NotHere&) {
    return "";
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--exported") == 0)
      options.exported = true;
    else if (std::strcmp(argv[i], "--verbose") == 0)
      options.verbose = true;
    else if (std::strcmp(argv[i], "--errors") == 0)
      options.errors = true;
    else if (std::strcmp(argv[i], "--known") == 0 && i + 1 < argc)
      options.known.merge(read_known(argv[++i]));
    else if (std::strcmp(argv[i], "--counts") == 0 && i + 1 < argc)
      options.counts = argv[++i];
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
                        "usage: op_goldens [--exported] [--known FILE]... [--counts FILE] "
                        "[--only NAME]... [--verbose] [--errors] FOLDER...\n"),
           2;

  eager::set_threads(2);  // also where the machine has one core
  Counts total;
  std::map<std::string, Counts> by_row;
  for (const std::string& folder : options.folders) {
    if (!std::filesystem::is_directory(folder))
      return std::fprintf(stderr, "op_goldens: %s is not a folder\n", folder.c_str()), 2;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (is_chosen(entry.path(), options)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
      const Counts c = run_file(path, options);
      total.add(c);
      by_row[row_of(path)].add(c);
    }
  }
  if (options.counts != nullptr) {
    std::ofstream out(options.counts);
    for (const auto& [row, c] : by_row)
      if (!row.empty() && c.run > 0) out << row << ' ' << c.passed << '/' << c.run << '\n';
    if (!out.flush())
      return std::fprintf(stderr, "op_goldens: cannot write %s\n", options.counts), 2;
  }
  print("total", total);
  if (total.run + total.without == 0)
    return std::fprintf(stderr, "op_goldens: there are no such cases in the folders\n"), 2;
  return total.surprises == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "op_goldens: %s\n", e.what());
  return 2;
}
