#include "taper/exporter/cli/callable.h"

#include <algorithm>

#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/eager/threads.h"

namespace taper::cli {

index_t Callable::find_input(const std::string& name) const {
  const auto at = std::ranges::find(inputs_, name, &Input::name);
  return at == inputs_.end() ? -1 : at - inputs_.begin();
}

ExportError Callable::mismatch(index_t input, const io::Array& array,
                               const std::string& why) const {
  const Input& in = inputs_.at(static_cast<size_t>(input));
  return ExportError("input " + in.name + " is given " + array.describe() + ", and takes " +
                     in.text + why);
}

void Callable::require_state(const std::filesystem::path& path, const std::string& name,
                             const io::Array& array, DType dtype,
                             const std::vector<int64_t>& sizes) {
  if (array.dtype != dtype || array.sizes != sizes)
    throw ExportError(path.string() + ": " + name + " is " + array.describe() + ", the state is " +
                      io::Array::zeros(dtype, sizes).describe());
}

std::unique_ptr<Callable> open_callable(const std::filesystem::path& path,
                                        const std::string& method, const ImportChoice& import) {
  if (!is_exported_model(path))
    return std::make_unique<RunningMethod>(path, method, eager::threads());
  if (!method.empty() && method != "forward")
    throw ExportError(path.string() + " has no method " + method +
                      "; a model of PyTorch has one, forward, and --model chooses between several");
  return open_eager(path, import);
}

}  // namespace taper::cli
