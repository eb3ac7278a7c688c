#include "taper/exporter/cli/callable.h"

#include <algorithm>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

// The first thing in which an array does not fit an input: "; dimension 2 must be 224".
std::string what_differs(const Callable::Input& input, const io::Array& array) {
  if (input.is_number) return "; give one integer";
  if (array.sizes.size() != input.sizes.size())
    return "; it must have " + io::counted(static_cast<int64_t>(input.sizes.size()), "dimension");
  for (size_t d = 0; d < input.sizes.size(); ++d)
    if (input.sizes[d] != any_extent && input.sizes[d] != array.sizes[d])
      return "; dimension " + std::to_string(d) + " must be " + std::to_string(input.sizes[d]);
  if (array.dtype != input.dtype)
    return std::string("; convert it to ") + taper::name_of(input.dtype) +
           " first (numpy: x.astype)";
  return input.ranges;
}

}  // namespace

index_t Callable::find_input(const std::string& name) const {
  const auto at = std::ranges::find(inputs_, name, &Input::name);
  return at == inputs_.end() ? -1 : at - inputs_.begin();
}

ExportError Callable::mismatch(index_t input, const io::Array& array) const {
  const Input& in = inputs_.at(static_cast<size_t>(input));
  return ExportError("input " + in.text + " does not accept " + array.describe() +
                     what_differs(in, array));
}

void Callable::require_state(const std::filesystem::path& path, const std::string& name,
                             const io::Array& array, DType dtype,
                             const std::vector<int64_t>& sizes) {
  if (array.dtype != dtype || array.sizes != sizes)
    throw ExportError(path.string() + ": " + name + " is " + array.describe() +
                      ", but the state is " + io::Array::zeros(dtype, sizes).describe());
}

void refuse_weights(const std::filesystem::path& program) {
  if (program.extension() == ".pt" || program.extension() == ".pth")
    throw ExportError(program.string() +
                      " is neither a program (.taper) nor an exported model (.pt2); export the "
                      "model with torch.export.export and save it with torch.export.save");
}

void refuse_dims(const std::filesystem::path& program, const ImportChoice& choice) {
  refuse_weights(program);
  if (!choice.dims.empty())
    throw UsageError(
        "--dim", program.string() + " is a program: its sizes were bounded when it was exported");
}

std::unique_ptr<Callable> open_callable(const std::filesystem::path& path,
                                        const std::string& method, const ImportChoice& import) {
  if (!is_exported_model(path)) {
    refuse_dims(path, import);
    return std::make_unique<RunningMethod>(path, method, eager::threads(), import);
  }
  if (!import.slots.empty())
    throw UsageError("--slots", path.string() + " is a PyTorch model, which has no slots");
  if (!method.empty() && method != "forward")
    throw ExportError(path.string() + " has no method " + method +
                      "; a PyTorch model has only the method forward. Use --model to choose one of "
                      "several models");
  return open_eager(path, import);
}

}  // namespace taper::cli
