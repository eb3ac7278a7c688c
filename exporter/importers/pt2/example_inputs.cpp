// The arguments that a model was exported with.
#include <algorithm>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/importers/pt2/model_data.h"
#include "taper/exporter/io/torch_checkpoint.h"

namespace taper::pt2 {
namespace {

using io::TorchArguments;
using io::TorchLeaf;
using nn::Tensor;

/// An expanded tensor takes more memory than it does in the file, so this is limited.
constexpr int64_t max_expanded_bytes = 1 << 26;

/// All leaves, in the order of the program's inputs. Named arguments come in the order in which the
/// model declares them, not in which they were given.
std::vector<TorchLeaf> in_order(TorchArguments arguments,
                                const std::vector<std::string>& declared) {
  std::ranges::stable_sort(arguments.named, {}, [&](const auto& argument) {
    return std::ranges::find(declared, argument.first) - declared.begin();
  });
  std::vector<TorchLeaf> leaves = std::move(arguments.positional);
  for (auto& [name, parts] : arguments.named) std::ranges::move(parts, std::back_inserter(leaves));
  return leaves;
}

std::optional<Tensor> as_tensor(const TorchLeaf& leaf, const Input& input) {
  if (const auto* stored = std::get_if<io::StoredTensor>(&leaf)) {
    const bool expanded =
        io::checked_numel(stored->sizes, size_bytes(stored->dtype)) * size_bytes(stored->dtype) >
        std::max(static_cast<int64_t>(stored->storage.size()), max_expanded_bytes);
    if (input.kind != Input::Kind::tensor || stored->dtype != input.dtype ||
        stored->sizes.size() != input.sizes.size() || expanded)
      return std::nullopt;
    return eager::tensor_of(stored->to_array());
  }
  const auto* number = std::get_if<int64_t>(&leaf);
  if (number == nullptr || input.kind != Input::Kind::number) return std::nullopt;
  return eager::tensor_of(io::Array::of<int64_t>({}, std::span(number, 1)));
}

}  // namespace

std::optional<std::vector<Tensor>> Model::example_inputs() const {
  const Data& data = *data_;
  if (data.example_inputs.empty()) return std::nullopt;
  const std::string name = data.name + ", example inputs";
  const std::vector<TorchLeaf> leaves =
      in_order(io::parse_torch_arguments(data.example_inputs, name), data.program.argument_names);
  if (leaves.size() != data.inputs.size())
    throw io::FileError(name + ": " + std::to_string(leaves.size()) +
                        " arguments, the model takes " + std::to_string(data.inputs.size()));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Input& input = data.inputs[i];
    if (input.kind == Input::Kind::constant) continue;
    const std::optional<Tensor> tensor = as_tensor(leaves[i], input);
    if (!tensor) throw io::FileError(name + ": argument " + input.name + " does not fit the model");
    inputs.push_back(*tensor);
  }
  return inputs;
}

}  // namespace taper::pt2
