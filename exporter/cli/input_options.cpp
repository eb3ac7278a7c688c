#include <cmath>
#include <filesystem>
#include <fstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

namespace taper::cli {
namespace {

std::string check_finite(const std::string& text) {
  const std::optional<double> number = number_of<double>(text);
  return number && std::isfinite(*number) ? "" : text + " is not a finite number";
}

std::string check_divisor(const std::string& text) {
  return number_of<double>(text) == 0 ? "--std must not be 0: pixels cannot be divided by 0"
                                      : check_finite(text);
}

}  // namespace

void add_input_options(Command& command, InputOptions& options) {
  command
      .option("--input [NAME=]FILE", options.given,
              "Sets the next input, or the input NAME, from .npy, .png, .jpg or "
              ".safetensors[:TENSOR]; NAME=NUMBER sets a number")
      .one_value();
  add_picture_options(command, options.pictures);
}

void add_picture_options(Command& command, PictureOptions& pictures) {
  command.option("--resize", pictures.resize, "Resizes a picture: its shorter side gets this size")
      .in_range(1, 1 << 14);
  command
      .option("--crop", pictures.crop, "Cuts a square of this size out of the middle of a picture")
      .in_range(1, 1 << 14);
  command.flag("--bgr", pictures.bgr, "Orders the channels of a picture blue, green, red");
  command.flag(
      "--imagenet",
      [&pictures] {
        pictures.scale = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
      },
      "Sets --mean and --std to the usual values for ImageNet");
  command
      .option("--mean", pictures.scale.mean,
              "Subtracts this from pixels in 0..1: one number, or one for each channel")
      .separated_by(',')
      .checked_by(check_finite)
      .one_value();
  command
      .option("--std", pictures.scale.deviation,
              "Divides pixels by this, after --mean: one number, or one for each channel")
      .separated_by(',')
      .checked_by(check_divisor)
      .one_value();
}

std::string check_tolerance(const std::string& text) {
  const std::optional<double> number = number_of<double>(text);
  return number && std::isfinite(*number) && *number >= 0 ? "" : text + " is not a number >= 0";
}

std::string check_page(const std::string& path) {
  const std::filesystem::path kind = std::filesystem::path(path).extension();
  if (kind != ".html" && kind != ".htm") return path + ": the name of a page must end in .html";
  return check_written(path);
}

std::string check_written(const std::string& path) {
  std::error_code ignored;
  const bool existed = std::filesystem::exists(path, ignored);
  // appending nothing leaves a file of an earlier run as it is
  if (!std::ofstream(path, std::ios::app))
    return path + ": it cannot be written; give a file in a folder that exists and may be changed";
  if (!existed) std::filesystem::remove(path, ignored);
  return "";
}

void add_threads_option(Command& command, int& threads) {
  command.option("--threads", threads, "The number of threads")
      .shows_default()
      .in_range(1, max_threads);
}

void add_verify_option(Command& command, ImportChoice& choice) {
  command.flag("--verify", choice.verify,
               "Compares the weights of a program with their checksums first");
}

void add_read_option(Command& command, ImportChoice& choice) {
  command.flag("--read", choice.read,
               "Reads the file into memory instead of mapping it; then the file may change");
}

void add_outside_options(Command& command, ImportChoice& choice) {
  command.option("--slots FILE.safetensors", choice.slots,
                 "Fills the slots of a program with the tensors of these names");
  command.option("--weights-folder FOLDER", choice.weights_folder,
                 "The folder of the weights files of a program; default: the program's");
}

}  // namespace taper::cli
