// The inputs of a method, from files and from the command line.
#pragma once
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/picture.h"
#include "taper/exporter/cli/running_method.h"

namespace taper::cli {

class Command;

/// `--input`, and the options for pictures: `--resize`, `--crop`, `--imagenet`, ….
struct InputOptions {
  /// Each is "FILE" for the next input, "NAME=FILE" or "NAME=NUMBER". A file is .npy, .png, .jpg or
  /// .safetensors. A .safetensors file without NAME gives all its tensors, by their names;
  /// "NAME=FILE.safetensors:TENSOR" gives one.
  std::vector<std::string> given;
  PictureOptions pictures;
};
void add_input_options(Command& command, InputOptions& options);       // input_options.cpp
void add_picture_options(Command& command, PictureOptions& pictures);  // input_options.cpp
/// `--threads`. The default is 1, as in Module::load.
void add_threads_option(Command& command, int& threads);         // input_options.cpp
void add_verify_option(Command& command, ImportChoice& choice);  // input_options.cpp
void add_read_option(Command& command, ImportChoice& choice);
/// --slots and --weights-folder
void add_outside_options(Command& command, ImportChoice& choice);  // input_options.cpp
/// The error of a tolerance; "" if the text is a number of at least 0.
std::string check_tolerance(const std::string& text);  // input_options.cpp
/// The error of the file for a page; "" if its name ends in .html and it can be written.
std::string check_page(const std::string& path);  // input_options.cpp
/// The error of a file that a command writes; "" if it can be written. Long work comes before.
std::string check_written(const std::string& path);  // input_options.cpp

/// The whole text as a number; nullopt if it is not one, or too large.
template <class T>
std::optional<T> number_of(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return stop == end && error == std::errc() ? std::optional(value) : std::nullopt;
}

/// Sets the inputs that are given. Returns the indices of the others, in order. Throws ExportError
/// for unknown names, unreadable files and tensors that do not fit.
std::vector<index_t> set_given_inputs(Callable& callable, const InputOptions& options);

/// Sets the inputs `indices` to random numbers in [-1, 1). Integers and bools become zeros, because
/// they may be indices. `symbols` gives symbolic extents by name. Others have their minimum, but at
/// least 1 if their range allows that. Throws ExportError for a name that the method does not have,
/// and for a value outside a symbol's range.
void set_random_inputs(RunningMethod& running, const std::vector<index_t>& indices,
                       const std::map<std::string, int64_t>& symbols);  // random_inputs.cpp

}  // namespace taper::cli
