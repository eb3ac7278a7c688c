#include "taper/exporter/cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::cli {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() &&
         std::ranges::equal(text.substr(text.size() - end.size()), end, {},
                            [](unsigned char c) { return std::tolower(c); });
}

class InputReader {
 public:
  InputReader(Callable& callable, const InputOptions& options)
      : callable_(callable), options_(options), is_set_(callable.inputs().size()) {}

  std::vector<index_t> run() {
    for (const std::string& text : options_.given) read(text);
    std::vector<index_t> missing;
    for (size_t i = 0; i < is_set_.size(); ++i)
      if (!is_set_[i]) missing.push_back(static_cast<index_t>(i));
    return missing;
  }

 private:
  using Input = Callable::Input;

  void read(const std::string& text) {
    const size_t sign = text.find('=');
    const index_t named =
        sign == std::string::npos ? -1 : callable_.find_input(text.substr(0, sign));
    if (named >= 0) return set(named, text.substr(sign + 1));
    if (sign != std::string::npos && !std::filesystem::exists(text))
      throw no_input(text.substr(0, sign));
    if (ends_with(text, ".safetensors")) {
      for (const auto& [name, array] : io::read_safetensors(text).tensors) {
        const index_t i = callable_.find_input(name);
        if (i < 0) throw no_input(name);
        set_tensor(i, array);
      }
      return;
    }
    const auto next = std::ranges::find(is_set_, false);
    if (next == is_set_.end())
      throw ExportError("there are more --input options than inputs; the inputs are: " +
                        inputs_text());
    set(next - is_set_.begin(), text);
  }

  void set(index_t i, const std::string& text) {
    const Input& input = input_at(i);
    if (text.empty())
      throw ExportError("--input " + input.name + "= has no value for " + input.text +
                        "; give NAME=FILE or NAME=NUMBER");
    if (input.is_number) return set_number(i, text);
    if (const auto integer = number_of<int64_t>(text); integer && takes_integer(input))
      return set_tensor(i, io::Array::of<int64_t>({}, std::span(&*integer, 1)));
    if (ends_with(text, ".npy")) return set_tensor(i, io::read_npy(text));
    if (is_picture_file(text)) return set_picture(i, text);
    if (number_of<double>(text))
      throw ExportError("input " + input.text + " is a tensor, not the number " + text +
                        "; give --input " + input.name + "=FILE");
    if (ends_with(text, ".npz"))
      throw ExportError(text + ": an .npz file holds several arrays; save the one for " +
                        input.text + " as .npy (numpy.save)");
    if (ends_with(text, ".safetensors")) return set_stored(i, text, input.name);
    if (const size_t colon = text.rfind(':');
        colon != std::string::npos && ends_with(text.substr(0, colon), ".safetensors"))
      return set_stored(i, text.substr(0, colon), text.substr(colon + 1));
    throw ExportError(
        text + ": this kind of file cannot be an input; give .npy, .safetensors, .png or .jpg");
  }

  void set_stored(index_t i, const std::string& path, const std::string& name) {
    const io::SafeTensors file = io::read_safetensors(path);
    try {
      set_tensor(i, file.at(name));
    } catch (const io::FileError& e) {
      throw ExportError(path + ": " + e.what());
    }
  }

  void set_number(index_t i, const std::string& text) {
    const std::optional<int64_t> integer = number_of<int64_t>(text);
    const std::optional<double> real = number_of<double>(text);
    if (!real)
      throw ExportError("input " + input_at(i).text + " takes a number, not \"" + text + "\"");
    if (integer)
      callable_.set_number(i, *integer);
    else
      callable_.set_number(i, *real);
    is_set_[static_cast<size_t>(i)] = true;
  }

  void set_picture(index_t i, const std::string& path) {
    const Input& input = input_at(i);
    if (input.dtype != DType::f32)
      throw ExportError(path + ": a picture becomes f32, but the input is " + input.text +
                        "; give a .npy file");
    set_tensor(i, tensor_of_picture(read_picture_file(path), input.sizes, options_.pictures, path));
  }

  void set_tensor(index_t i, const io::Array& array) {
    callable_.set_input(i, array);
    is_set_[static_cast<size_t>(i)] = true;
  }

  static bool takes_integer(const Input& input) {
    return input.dtype == DType::i64 && input.sizes.empty();
  }
  const Input& input_at(index_t i) const { return callable_.inputs()[static_cast<size_t>(i)]; }
  std::string inputs_text() const {
    std::vector<std::string> texts;
    for (const Input& input : callable_.inputs()) texts.push_back(input.text);
    return texts.empty() ? "none" : io::joined(texts, "; ");
  }
  ExportError no_input(const std::string& name) const {
    return ExportError(callable_.name() + " has no input " + name +
                       "; the inputs are: " + inputs_text());
  }

  Callable& callable_;
  const InputOptions& options_;
  std::vector<bool> is_set_;
};

}  // namespace

std::vector<index_t> set_given_inputs(Callable& callable, const InputOptions& options) {
  return InputReader(callable, options).run();
}

}  // namespace taper::cli
