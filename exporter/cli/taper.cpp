#include "taper/exporter/cli/taper.h"

#include "taper/exporter/cli/commands.h"

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

}  // namespace

int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CommandLine line("taper", "taper 0.1.0",
                   "Exports models of PyTorch (.pt2) as Taper programs (.taper); looks into, runs, "
                   "checks, compares and measures both.",
                   footer);
  add_inspect_command(line, out);
  add_run_command(line, out);
  add_profile_command(line, out);
  add_check_command(line, out);
  add_compare_command(line, out);
  add_export_command(line, out);
  return line.run(arguments, out, err);
}

}  // namespace taper::cli
