#include <CLI/CLI.hpp>
#include <cmath>

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

void add_input_options(CLI::App& command, InputOptions& options) {
  command
      .add_option("--input", options.given,
                  "FILE for the next input, NAME=FILE, or NAME=NUMBER; .npy, .png, .jpg, "
                  ".safetensors[:TENSOR]")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  command
      .add_option("--resize", options.pictures.resize, "Resizes a picture's shorter side to this")
      ->check(CLI::Range(1, 1 << 14));
  command.add_option("--crop", options.pictures.crop, "Cuts a square of this side from the middle")
      ->check(CLI::Range(1, 1 << 14));
  command.add_flag("--bgr", options.pictures.bgr, "Gives the channels as blue, green, red");
  command.add_flag_callback(
      "--imagenet",
      [&options] {
        options.pictures.scale = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
      },
      "The usual --mean and --std of models trained on ImageNet");
  command
      .add_option("--mean", options.pictures.scale.mean,
                  "Subtracted from pixels in 0..1: one number, or one for each channel")
      ->delimiter(',')
      ->check(CLI::Validator(check_finite, ""))
      ->allow_extra_args(false);
  command
      .add_option("--std", options.pictures.scale.deviation,
                  "Divides pixels after --mean: one number, or one for each channel")
      ->delimiter(',')
      ->check(CLI::Validator(check_divisor, ""))
      ->allow_extra_args(false);
}

std::string check_tolerance(const std::string& text) {
  const std::optional<double> number = number_of<double>(text);
  return number && *number >= 0 ? "" : text + " is not a number of at least 0";
}

void add_threads_option(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "Threads; default: as many as the machine has cores")
      ->check(CLI::Range(1, max_threads));
}

}  // namespace taper::cli
