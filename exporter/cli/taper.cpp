#include "taper/exporter/cli/taper.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <ostream>

#include "taper/exporter/cli/commands.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

constexpr char footer[] = R"(Examples:
  taper export resnet20.pt2 -o resnet20.taper
  taper check resnet20.taper resnet20.io.safetensors
  taper compare resnet20.pt2 resnet20.taper --input x=photo.npy
  taper inspect lenet.taper --graph lenet.svg
  taper run lenet.taper --input digit.png
  taper profile lenet.taper --dim batch=64 --trace lenet.json
  taper export lenet.taper --kernels lenet_kernels.cpp --portable

Exit codes: 0 success, 1 failure (the line on stderr says what and how to go on), 2 wrong usage.)";

// A message whose lines begin with blanks but for the first, whatever a file put into it.
std::string shown(const std::string& text) {
  std::string result;
  size_t begin = 0;
  for (size_t end = 0; end != text.npos; begin = end + 1) {
    end = text.find('\n', begin);
    result += (begin == 0 ? "" : "\n  ") + io::printable(text.substr(begin, end - begin));
  }
  return result;
}

// What is wrong with a command line that names no command of ours.
std::string without_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::string what =
      arguments.empty() ? "a command is missing" : "there is no command " + arguments.front();
  return what + "; the commands are " + io::joined(names);
}

std::string subcommand_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "taper" : "taper " + chosen.front()->get_name();
}

}  // namespace

int run(std::vector<std::string> arguments, std::ostream& out, std::ostream& err) {
  CLI::App app{
      "Exports models of PyTorch (.pt2) as Taper programs (.taper); looks into, runs, checks, "
      "compares and measures both.",
      "taper"};
  app.footer(footer);
  app.require_subcommand(1);
  app.set_version_flag("--version", "taper 0.1.0");
  add_inspect_command(app, out);
  add_run_command(app, out);
  add_profile_command(app, out);
  add_check_command(app, out);
  add_compare_command(app, out);
  add_export_command(app, out);

  try {
    std::vector<std::string> rest(arguments.rbegin(), arguments.rend());  // CLI11 takes the last
    app.parse(rest);
    if (out.flush()) return success;
    err << subcommand_name(app) << ": cannot write to the standard output\n";
    return failure;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e, out, err);  // --help, --version
    const std::string command = subcommand_name(app);
    const std::string what =
        app.get_subcommands().empty() ? without_command(app, arguments) : e.what();
    err << command << ": " << shown(what) << "; see `" << command << " --help`\n";
    return usage;
  } catch (const std::exception& e) {
    err << subcommand_name(app) << ": " << shown(e.what()) << '\n';
    return failure;
  }
}

}  // namespace taper::cli
