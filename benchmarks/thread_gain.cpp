// Whether any method is slower with two threads than with one: programs (.taper) and PyTorch models
// (.pt2), each method with random inputs, both ways in turns. Prints the slowest ratios.
//
//   thread_gain [--rows N] FILE_OR_FOLDER...
//
// A time is the least of all calls. A method fails if two threads take 3 % and 0.3 microseconds
// longer. Such a method is measured again, twice, and the best ratio counts, because a thread that
// another program holds up is no fault of the method. Run it on an idle machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/export_options.h"
#include "taper/exporter/io/file.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;
namespace fs = std::filesystem;

namespace {

constexpr double slice_us = 5000, least_gain = 0.97, least_loss_us = 0.3;
constexpr int turns = 8, tries = 3;

struct Times {
  std::string name;
  double one_us = 1e30, two_us = 1e30;

  double ratio() const { return one_us / two_us; }
  bool is_slower() const { return ratio() < least_gain && two_us - one_us > least_loss_us; }
};

/// The least time of a call, of calls for so long.
double least_us(cli::RunningMethod& running) {
  double best = 1e30, spent = 0;
  while (spent < slice_us) {
    const auto start = std::chrono::steady_clock::now();
    running.execute();
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, us), spent += us;
  }
  return best;
}

void set_inputs(cli::RunningMethod& running) {
  std::vector<index_t> all;
  for (index_t i = 0; i < running.method().input_count(); ++i) all.push_back(i);
  cli::set_random_inputs(running, all, {});
}

Times measure(const std::string& name, cli::RunningMethod& one, cli::RunningMethod& two) {
  Times best{name};
  for (int i = 0; i < tries && (i == 0 || best.is_slower()); ++i) {
    Times now{name};
    for (int turn = 0; turn < turns; ++turn) {
      now.one_us = std::min(now.one_us, least_us(one));
      now.two_us = std::min(now.two_us, least_us(two));
    }
    if (i == 0 || now.ratio() > best.ratio()) best = now;
  }
  return best;
}

std::vector<std::byte> bytes_of(const fs::path& file) {
  if (!cli::is_exported_model(file)) return io::read_file(file);
  ExportOptions as_the_command;
  as_the_command.exact = false, as_the_command.quiet = true;
  as_the_command.name = file.stem().string();
  emit::Report report;
  return cli::program_bytes(file, {}, as_the_command, report);
}

/// Each method of a file. What cannot run with random inputs is left out, and said.
void measure_file(const fs::path& file, const Threads* threads, std::vector<Times>& results,
                  int& left_out) try {
  const std::vector<std::byte> bytes = bytes_of(file);
  cli::ImportChoice import;
  import.pack = true;
  const cli::RunningMethod first(file, bytes, "", nullptr, import);
  for (index_t i = 0; i < first.program().method_count(); ++i) {
    const std::string method = first.program().method_name(i);
    cli::RunningMethod one(file, bytes, method, nullptr, import),
        two(file, bytes, method, threads, import);
    set_inputs(one), set_inputs(two);
    results.push_back(
        measure(file.filename().string() + (method == "forward" ? "" : ": " + method), one, two));
  }
} catch (const std::exception& e) {
  ++left_out;
  std::string why = e.what();
  std::fprintf(stderr, "left out: %s: %s\n", file.filename().c_str(),
               why.substr(0, why.find('\n')).c_str());
}

std::vector<fs::path> files_of(const std::vector<std::string>& arguments) {
  std::vector<fs::path> files;
  const auto is_program = [](const fs::path& p) {
    return p.extension() == ".taper" || p.extension() == ".pt2";
  };
  for (const std::string& argument : arguments) {
    if (!fs::is_directory(argument)) {
      files.emplace_back(argument);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argument))
      if (is_program(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void print(std::vector<Times> results, size_t rows, int left_out) {
  std::sort(results.begin(), results.end(),
            [](const Times& a, const Times& b) { return a.ratio() < b.ratio(); });
  std::printf("| method | 1 thread, µs | 2 threads, µs | ratio |\n| --- | ---: | ---: | ---: |\n");
  for (size_t i = 0; i < std::min(rows, results.size()); ++i)
    std::printf("| %s | %.2f | %.2f | %.2f |\n", results[i].name.c_str(), results[i].one_us,
                results[i].two_us, results[i].ratio());
  const auto slower =
      std::count_if(results.begin(), results.end(), [](const Times& t) { return t.is_slower(); });
  std::printf("\n%zu methods, %td slower with two threads; %d files left out\n", results.size(),
              slower, left_out);
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  size_t rows = 10;
  if (arguments.size() >= 2 && arguments[0] == "--rows") {
    rows = static_cast<size_t>(std::stoul(arguments[1]));
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.empty())
    return std::fprintf(stderr, "usage: thread_gain [--rows N] FILE_OR_FOLDER...\n"), 2;
  const ThreadPool pool(2);
  std::vector<Times> results;
  int left_out = 0;
  for (const fs::path& file : files_of(arguments))
    measure_file(file, pool.threads(), results, left_out);
  print(results, rows, left_out);
  return std::any_of(results.begin(), results.end(), [](const Times& t) { return t.is_slower(); });
} catch (const std::exception& e) {
  std::cerr << "thread_gain: " << e.what() << "\n";
  return 2;
}
