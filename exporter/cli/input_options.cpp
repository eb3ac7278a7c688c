#include <cmath>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/runtime/platform/pthreadpool/thread_pool.h"

namespace taper::cli {
namespace {

std::string check_finite(const std::string& text) {
  const std::optional<double> number = number_of<double>(text);
  return number && std::isfinite(*number) ? "" : text + " is not a finite number";
}

std::string check_divisor(const std::string& text) {
  return number_of<double>(text) == 0 ? "pixels cannot be divided by 0" : check_finite(text);
}

}  // namespace

void add_input_options(Command& command, InputOptions& options) {
  command
      .option("--input", options.given,
              "FILE for the next input, NAME=FILE, or NAME=NUMBER; .npy, .png, .jpg, "
              ".safetensors[:TENSOR]")
      .value_name("[NAME=]FILE")
      .one_value();
  command.option("--resize", options.pictures.resize, "Resizes a picture's shorter side to this")
      .in_range(1, 1 << 14);
  command.option("--crop", options.pictures.crop, "Cuts a square of this side from the middle")
      .in_range(1, 1 << 14);
  command.flag("--bgr", options.pictures.bgr, "Gives the channels as blue, green, red");
  command.flag(
      "--imagenet",
      [&options] {
        options.pictures.scale = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
      },
      "The usual --mean and --std of models trained on ImageNet");
  command
      .option("--mean", options.pictures.scale.mean,
              "Subtracted from pixels in 0..1: one number, or one for each channel")
      .separated_by(',')
      .checked_by(check_finite)
      .one_value();
  command
      .option("--std", options.pictures.scale.deviation,
              "Divides pixels after --mean: one number, or one for each channel")
      .separated_by(',')
      .checked_by(check_divisor)
      .one_value();
}

std::string check_tolerance(const std::string& text) {
  const std::optional<double> number = number_of<double>(text);
  return number && std::isfinite(*number) && *number >= 0 ? ""
                                                          : text + " is not a number of at least 0";
}

void add_threads_option(Command& command, int& threads) {
  command.option("--threads", threads, "Threads; default: as many as the machine has cores")
      .in_range(1, max_threads);
}

}  // namespace taper::cli
