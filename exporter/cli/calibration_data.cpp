#include "taper/exporter/cli/calibration_data.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "taper/exporter/cli/recorded_inputs.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/safetensors.h"

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

[[noreturn]] void refuse(const io::Array& array, const Input& input, const path& file) {
  throw ExportError(file.string() + ": " + array.describe() + " does not fit the input " +
                    input.text + input.ranges);
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
    if (input_.is_number || array_.dtype != input_.dtype) refuse(array_, input_, file_);
    if (rank == 0 && given == 0) return {eager::tensor_of(array_)};
    if (given == rank + 1 && tail_fits(1, 0)) return stacked();
    if (given == rank && tail_fits(1, 1)) return in_batches();
    if (given + 1 == rank && tail_fits(0, 1)) {
      io::Array one = array_;
      one.sizes.insert(one.sizes.begin(), 1);
      if (fits(one, input_)) return {eager::tensor_of(one)};
    }
    refuse(array_, input_, file_);
  }

 private:
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
    if (wanted != any_extent && (wanted == 0 || count % wanted != 0)) refuse(array_, input_, file_);
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

Calls calls_of_npy(const path& file, const std::vector<Input>& inputs) {
  Calls calls;
  for (Tensor& t : Cutter(io::read_npy(file), only_input(inputs, file), file).run())
    calls.push_back({std::move(t)});
  return calls;
}

Calls recorded_calls(const path& file, const std::vector<Input>& inputs) {
  Calls calls;
  for (const io::RecordedCall& call : io::read_recorded_calls(file)) {
    const auto positions = choose_inputs(call.inputs, inputs);
    if (!positions)
      throw ExportError(file.string() + ": the recorded arguments of call " +
                        std::to_string(calls.size()) + " do not fit the " +
                        io::counted(static_cast<int64_t>(inputs.size()), "input") +
                        " of the model");
    calls.emplace_back();
    for (const int i : *positions) calls.back().push_back(eager::tensor_of(call.inputs.at(i)));
  }
  return calls;
}

/// A tensor for each input, by its name.
Calls named_calls(const path& file, const io::SafeTensors& content,
                  const std::vector<Input>& inputs) {
  Calls calls;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto found = content.tensors.find(inputs[k].name);
    if (found == content.tensors.end())
      throw ExportError(file.string() + " has no tensor " + inputs[k].name + " for the input " +
                        inputs[k].text);
    std::vector<Tensor> column = Cutter(found->second, inputs[k], file).run();
    if (k == 0) calls.resize(column.size());
    if (column.size() != calls.size())
      throw ExportError(file.string() + " has " + std::to_string(calls.size()) + " examples of " +
                        inputs[0].name + ", but " + std::to_string(column.size()) + " of " +
                        inputs[k].name);
    for (size_t i = 0; i < calls.size(); ++i) calls[i].push_back(std::move(column[i]));
  }
  return calls;
}

Calls calls_of_safetensors(const path& file, const std::vector<Input>& inputs) {
  const io::SafeTensors content = io::read_safetensors(file);
  const bool is_named = std::ranges::any_of(
      inputs, [&](const Input& input) { return content.tensors.contains(input.name); });
  return is_named ? named_calls(file, content, inputs) : recorded_calls(file, inputs);
}

Calls calls_of(const path& file, const std::vector<Input>& inputs) {
  if (file.extension() == ".npy") return calls_of_npy(file, inputs);
  if (file.extension() == ".safetensors") return calls_of_safetensors(file, inputs);
  throw ExportError(file.string() +
                    " is no calibration data; give .safetensors, .npy, or a folder of pictures");
}

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
                                    const PictureOptions& pictures, size_t most) {
  if (!std::filesystem::exists(from))
    throw ExportError(from.string() + ": there is no such file or folder");
  quantize::Examples examples;
  if (!std::filesystem::is_directory(from)) {
    examples = is_picture_file(from) ? examples_of_pictures({from}, inputs, pictures)
                                     : quantize::Examples(calls_of(from, inputs));
  } else if (const Folder folder(from); !folder.pictures.empty()) {
    examples = examples_of_pictures(folder.pictures, inputs, pictures);
  } else {
    Calls all;
    for (const path& file : folder.others)
      for (auto& call : calls_of(file, inputs)) all.push_back(std::move(call));
    examples = quantize::Examples(std::move(all));
  }
  if (examples.count == 0)
    throw ExportError(from.string() +
                      " has no examples; give pictures, .npy or .safetensors files");
  if (most > 0) examples.count = std::min(examples.count, most);
  return examples;
}

}  // namespace taper::cli
