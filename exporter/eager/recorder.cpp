#include "taper/exporter/eager/recorder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "taper/exporter/dim/type.h"
#include "taper/exporter/eager/dispatch.h"

namespace taper::eager {
namespace {
thread_local Recorder* current = nullptr;
thread_local std::string path;
thread_local int64_t least_count = 0, most_count = std::numeric_limits<int64_t>::max();
thread_local std::string count_name;
}  // namespace

Recorder* recorder() { return current; }
Recording::Recording(Recorder* recorder) : before_(current) { current = recorder; }
Recording::~Recording() { current = before_; }

ModuleScope::ModuleScope(const std::string& name) : length_before_(path.size()) {
  if (!name.empty()) path += (path.empty() ? "" : ".") + name;
}
ModuleScope::~ModuleScope() { path.resize(length_before_); }
const std::string& module_path() { return path; }

ModulePathScope::ModulePathScope(std::string modules)
    : before_(std::exchange(path, std::move(modules))) {}
ModulePathScope::~ModulePathScope() { path = std::move(before_); }

CountBounds::CountBounds(int64_t minimum, int64_t maximum, std::string name)
    : minimum_before_(std::exchange(least_count, minimum)),
      maximum_before_(std::exchange(most_count, maximum)),
      name_before_(std::exchange(count_name, std::move(name))) {}
CountBounds::~CountBounds() {
  least_count = minimum_before_, most_count = maximum_before_;
  count_name = std::move(name_before_);
}

Dim element_as_dim(const Tensor& tensor, int64_t minimum, int64_t maximum, Location here) {
  if (!tensor.is_traced()) return tensor.item<int64_t>(here);
  return recorder()->element(tensor, std::max(minimum, least_count), std::min(maximum, most_count),
                             count_name, here);
}

Tensor dim_as_tensor(Dim number, DType dtype, Location here) {
  Boxed arguments[] = {Boxed::of(number), Boxed::of(dtype)};
  Tensor result;
  dispatch(info_of(ops::scalar_tensor), arguments, &result, here);
  return result;
}

Tensor traced_tensor(const TensorType<Dim>& type) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>(Storage::Symbolic{});
  impl->ref.dtype = type.dtype;
  impl->symbolic = std::make_unique<TensorType<Dim>>(type);
  ir::make_dense(*impl->symbolic);
  return Tensor(std::move(impl));
}

}  // namespace taper::eager
