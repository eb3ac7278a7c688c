#include "taper/exporter/cli/taper.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <ostream>

#include "taper/exporter/cli/commands.h"

namespace taper::cli {
namespace {

constexpr char footer[] = R"(Examples:
  taper inspect lenet.taper --graph lenet.svg
  taper run lenet.taper --input digit.png
  taper profile lenet.taper --dim batch=64 --trace lenet.json
  taper export lenet.taper --kernels lenet_kernels.cpp --portable

Exit codes: 0 success, 1 failure (the line on stderr says what and how to go on), 2 wrong usage.)";

// A message on one line, whatever a file or a library put into it.
std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string subcommand_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "taper" : "taper " + chosen.front()->get_name();
}

}  // namespace

int run(std::vector<std::string> arguments, std::ostream& out, std::ostream& err) {
  CLI::App app{"Looks into, runs and measures Taper programs (.taper files).", "taper"};
  app.footer(footer);
  app.require_subcommand(1);
  app.set_version_flag("--version", "taper 0.1.0");
  add_inspect_command(app, out);
  add_run_command(app, out);
  add_profile_command(app, out);
  add_export_command(app, out);

  try {
    std::ranges::reverse(arguments);  // CLI11 takes them from the end
    app.parse(arguments);
    return success;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e, out, err);  // --help, --version
    const std::string command = subcommand_name(app);
    err << command << ": " << on_one_line(e.what()) << "; see `" << command << " --help`\n";
    return usage;
  } catch (const std::exception& e) {
    err << subcommand_name(app) << ": " << on_one_line(e.what()) << '\n';
    return failure;
  }
}

}  // namespace taper::cli
