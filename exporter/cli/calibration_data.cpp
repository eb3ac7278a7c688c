#include "taper/exporter/cli/calibration_data.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "taper/exporter/cli/recorded_inputs.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/safetensors.h"
#ifdef TAPER_HAS_TEXT_MODELS
#include "taper/exporter/llm/tokenizer_file.h"
#endif

namespace taper::cli {
namespace {

using eager::Tensor;
using Input = Callable::Input;
using std::filesystem::path;

/// The calls of one file.
using Calls = std::vector<std::vector<Tensor>>;

const Input& only_input(const std::vector<Input>& inputs, const path& file) {
  if (inputs.size() == 1) return inputs[0];
  throw ExportError(file.string() + " is for one input, but the model takes " +
                    io::counted(static_cast<int64_t>(inputs.size()), "input") +
                    "; give a .safetensors file with a tensor for each");
}

/// Whether the inputs are those of a language model: tokens, the position of the first one, and
/// perhaps the row of the caches and the adapter of each text.
bool take_tokens(const std::vector<Input>& inputs) {
  std::vector<std::string> names;
  for (const Input& input : inputs) names.push_back(input.name);
  std::vector<std::string> wanted = {"ids", "start"};
  for (const char* more : {"rows", "adapters"})
    if (std::ranges::find(names, more) != names.end()) wanted.emplace_back(more);
  return names == wanted;
}

/// Row-major bytes of [begin, end) along the first dimension, with other sizes.
Tensor rows(const io::Array& array, int64_t begin, int64_t end, std::vector<int64_t> sizes) {
  const size_t row = array.size_bytes() / static_cast<size_t>(array.sizes[0]);
  return Tensor::from_bytes(array.bytes.get() + static_cast<size_t>(begin) * row,
                            static_cast<size_t>(end - begin) * row, array.dtype, sizes);
}

/// Cuts an array into calls of an input.
class Cutter {
 public:
  Cutter(const io::Array& array, const Input& input, const path& file)
      : array_(array), input_(input), file_(file) {}

  std::vector<Tensor> run() const {
    const size_t rank = input_.sizes.size(), given = array_.sizes.size();
    if (input_.is_number || array_.dtype != input_.dtype) refuse();
    if (rank == 0 && given == 0) return {eager::tensor_of(array_)};
    if (given == rank + 1 && tail_fits(1, 0)) return stacked();
    if (given == rank && tail_fits(1, 1)) return in_batches();
    if (given + 1 == rank && tail_fits(0, 1)) {
      io::Array one = array_;
      one.sizes.insert(one.sizes.begin(), 1);
      if (fits(one, input_)) return {eager::tensor_of(one)};
    }
    refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    throw ExportError(file_.string() + ": " + array_.describe() + " does not fit the input " +
                      input_.text + input_.ranges);
  }
  /// Whether the sizes behind the first ones fit.
  bool tail_fits(size_t skip_given, size_t skip_wanted) const {
    return std::equal(
        array_.sizes.begin() + static_cast<std::ptrdiff_t>(skip_given), array_.sizes.end(),
        input_.sizes.begin() + static_cast<std::ptrdiff_t>(skip_wanted), input_.sizes.end(),
        [](int64_t a, int64_t b) { return b == any_extent || a == b; });
  }
  std::vector<Tensor> stacked() const {
    std::vector<Tensor> calls;
    const std::vector<int64_t> sizes(array_.sizes.begin() + 1, array_.sizes.end());
    for (int64_t i = 0; i < array_.sizes[0]; ++i) calls.push_back(rows(array_, i, i + 1, sizes));
    return calls;
  }
  std::vector<Tensor> in_batches() const {
    const int64_t count = array_.sizes[0], wanted = input_.sizes[0];
    constexpr int64_t free_batch = 32;
    const int64_t batch = wanted == any_extent ? free_batch : wanted;
    if (wanted != any_extent && (wanted == 0 || count % wanted != 0)) refuse();
    std::vector<Tensor> calls;
    for (int64_t i = 0; i < count; i += batch) {
      const int64_t end = std::min(count, i + batch);
      std::vector<int64_t> sizes = array_.sizes;
      sizes[0] = end - i;
      calls.push_back(rows(array_, i, end, sizes));
    }
    return calls;
  }

  const io::Array& array_;
  const Input& input_;
  const path& file_;
};

/// The calls of one array. Files hold token ids in small integers.
std::vector<Tensor> cut(io::Array array, const Input& input, const path& file) {
  if (is_integral(array.dtype) && is_integral(input.dtype) && array.dtype != input.dtype)
    array = eager::array_of(eager::tensor_of(array).to(input.dtype));
  return Cutter(array, input, file).run();
}

/// A language model begins each text at position 0. It takes the first row of its caches, and the
/// first adapter.
std::vector<Tensor> text_call(const Tensor& ids, const std::vector<Input>& inputs) {
  std::vector<Tensor> call(inputs.size(), eager::zeros({ids.size(0)}, DType::i64));
  call[0] = ids;
  return call;
}

/// Reads the calls of files.
class Reader {
 public:
  Reader(const std::vector<Input>& inputs, const CalibrationOptions& options)
      : inputs_(inputs), options_(options) {}

  Calls read(const path& file) const {
    const auto [named, tensor] = file_and_tensor(file);
    if (!tensor.empty()) return of_array(io::read_safetensors(named).at(tensor), file);
    if (file.extension() == ".npy") return of_array(io::read_npy(file), file);
    if (file.extension() == ".safetensors") return of_safetensors(file);
    if (file.extension() == ".txt") return of_text(file);
    throw ExportError(file.string() +
                      " is no calibration data; give .safetensors, .npy, a folder of pictures, or "
                      "a .txt file for a language model");
  }

  /// "file.safetensors:name" as its two parts; the name is "" if there is none.
  static std::pair<path, std::string> file_and_tensor(const path& given) {
    constexpr std::string_view kind = ".safetensors";
    const std::string text = given.string();
    const size_t colon = text.rfind(std::string(kind) + ":");
    if (colon == std::string::npos) return {given, ""};
    return {text.substr(0, colon + kind.size()), text.substr(colon + kind.size() + 1)};
  }

 private:
  /// An array for the only input, or the tokens of a language model.
  Calls of_array(const io::Array& array, const path& file) const {
    const bool texts = take_tokens(inputs_);
    const Input& input = texts ? inputs_[0] : only_input(inputs_, file);
    Calls calls;
    for (const Tensor& t : cut(array, input, file))
      calls.push_back(texts ? text_call(t, inputs_) : std::vector{t});
    return calls;
  }

  Calls of_safetensors(const path& file) const {
    const io::SafeTensors content = io::read_safetensors(file);
    const auto has = [&](const Input& input) { return content.tensors.contains(input.name); };
    if (std::ranges::none_of(inputs_, has)) return recorded(file);
    if (take_tokens(inputs_) && has(inputs_[0]) && !has(inputs_[1]))
      return of_array(content.tensors.at(inputs_[0].name), file);
    return named(file, content);
  }

  Calls recorded(const path& file) const {
    Calls calls;
    for (const io::RecordedCall& call : io::read_recorded_calls(file)) {
      const auto positions = choose_inputs(call.inputs, inputs_);
      if (!positions)
        throw ExportError(file.string() + ": the recorded arguments of call " +
                          std::to_string(calls.size()) + " do not fit the " +
                          io::counted(static_cast<int64_t>(inputs_.size()), "input") +
                          " of the model");
      calls.emplace_back();
      for (const int i : *positions) calls.back().push_back(eager::tensor_of(call.inputs.at(i)));
    }
    return calls;
  }

  /// A tensor for each input, by its name.
  Calls named(const path& file, const io::SafeTensors& content) const {
    Calls calls;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const auto found = content.tensors.find(inputs_[k].name);
      if (found == content.tensors.end())
        throw ExportError(file.string() + " has no tensor " + inputs_[k].name + " for the input " +
                          inputs_[k].text);
      std::vector<Tensor> column = cut(found->second, inputs_[k], file);
      if (k == 0) calls.resize(column.size());
      if (column.size() != calls.size())
        throw ExportError(file.string() + " has " + std::to_string(calls.size()) + " examples of " +
                          inputs_[0].name + ", but " + std::to_string(column.size()) + " of " +
                          inputs_[k].name);
      for (size_t i = 0; i < calls.size(); ++i) calls[i].push_back(std::move(column[i]));
    }
    return calls;
  }

  /// Windows of a text, as tokens.
  Calls of_text(const path& file) const {
    if (!take_tokens(inputs_))
      throw ExportError(file.string() +
                        ": a text is for language models; give .npy or .safetensors");
#ifdef TAPER_HAS_TEXT_MODELS
    const llm::Tokenizer tokenizer = llm::read_tokenizer(options_.language_model);
    const io::Bytes bytes = io::read_file(file);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t own = tokenizer.encode(text, {.add_special_tokens = false}).size();
    if (own < 2)
      throw ExportError(file.string() + ": the text has " +
                        io::counted(static_cast<int64_t>(own), "token") +
                        ", which teaches nothing; give a text like those that the model will get");
    const std::vector<llm::TokenId> ids = tokenizer.encode(text);
    Calls calls;
    for (size_t at = 0; at < ids.size(); at += options_.window) {
      const size_t end = std::min(ids.size(), at + options_.window);
      const std::vector<int64_t> window(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                        ids.begin() + static_cast<std::ptrdiff_t>(end));
      calls.push_back(
          text_call(Tensor::from(window, {1, static_cast<int64_t>(end - at)}), inputs_));
    }
    return calls;
#else
    throw ExportError(file.string() + ": this build of Taper reads no texts");
#endif
  }

  const std::vector<Input>& inputs_;
  const CalibrationOptions& options_;
};

/// Reads a picture in each call of `at`, so that only one is in memory.
quantize::Examples examples_of_pictures(const std::vector<path>& files,
                                        const std::vector<Input>& inputs,
                                        const PictureOptions& options) {
  const Input input = only_input(inputs, files[0]);
  if (input.is_number || input.dtype != DType::f32)
    throw ExportError(files[0].string() + ": a picture becomes f32, but the input is " +
                      input.text);
  return {files.size(), [files, input, options](size_t i) {
            return std::vector{eager::tensor_of(tensor_of_picture(
                read_picture_file(files[i]), input.sizes, options, files[i].string()))};
          }};
}

/// The files of a folder by their names: pictures, and others that hold examples.
struct Folder {
  std::vector<path> pictures, others;
  explicit Folder(const path& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const path& file = entry.path();
      if (is_picture_file(file)) pictures.push_back(file);
      if (file.extension() == ".npy" || file.extension() == ".safetensors") others.push_back(file);
    }
    std::ranges::sort(pictures);
    std::ranges::sort(others);
  }
};

}  // namespace

std::vector<Input> inputs_of(const ir::Graph& graph) {
  std::vector<Input> inputs;
  for (const ir::Input& given : graph.inputs()) {
    Input input;
    input.name = given.name;
    input.is_number = given.value == nullptr;
    if (input.is_number) {
      input.text = given.name + ": integer";
    } else {
      const ir::Type& type = given.value->type;
      input.text = given.name + ": " + ir::to_string(type);
      input.dtype = type.dtype;
      for (int d = 0; d < type.rank; ++d)
        input.sizes.push_back(type.sizes[d].is_constant() ? type.sizes[d].value() : any_extent);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

quantize::Examples read_calibration(const path& from, const std::vector<Input>& inputs,
                                    const CalibrationOptions& options) {
  const path file = Reader::file_and_tensor(from).first;
  if (!std::filesystem::exists(file))
    throw ExportError(file.string() + ": there is no such file or folder");
  const Reader reader(inputs, options);
  quantize::Examples examples;
  if (!std::filesystem::is_directory(file)) {
    examples = is_picture_file(file) ? examples_of_pictures({file}, inputs, options.pictures)
                                     : quantize::Examples(reader.read(from));
  } else if (const Folder folder(file); !folder.pictures.empty()) {
    examples = examples_of_pictures(folder.pictures, inputs, options.pictures);
  } else {
    Calls all;
    for (const path& part : folder.others)
      for (auto& call : reader.read(part)) all.push_back(std::move(call));
    examples = quantize::Examples(std::move(all));
  }
  if (examples.count == 0)
    throw ExportError(from.string() +
                      " has no examples; give pictures, .npy or .safetensors files");
  if (options.most > 0) examples.count = std::min(examples.count, options.most);
  return examples;
}

}  // namespace taper::cli
