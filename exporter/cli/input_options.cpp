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
      .add_option(
          "--input", options.given,
          "FILE for the next input, NAME=FILE, or NAME=NUMBER; .npy, .png, .safetensors[:TENSOR]")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  command
      .add_option("--mean", options.scale.mean,
                  "Subtracted from pixels in 0..1: one number, or one for each channel")
      ->delimiter(',')
      ->check(CLI::Validator(check_finite, ""))
      ->allow_extra_args(false);
  command
      .add_option("--std", options.scale.deviation,
                  "Divides pixels after --mean: one number, or one for each channel")
      ->delimiter(',')
      ->check(CLI::Validator(check_divisor, ""))
      ->allow_extra_args(false);
}

void add_threads_option(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "Threads; default: as many as the machine has cores")
      ->check(CLI::Range(1, max_threads));
}

}  // namespace taper::cli
