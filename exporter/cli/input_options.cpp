#include <CLI/CLI.hpp>

#include "taper/exporter/cli/inputs.h"

namespace taper::cli {

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
      ->allow_extra_args(false);
  command
      .add_option("--std", options.scale.deviation,
                  "Divides pixels after --mean: one number, or one for each channel")
      ->delimiter(',')
      ->allow_extra_args(false);
}

}  // namespace taper::cli
