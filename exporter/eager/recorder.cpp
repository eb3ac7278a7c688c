#include "taper/exporter/eager/recorder.h"

#include "taper/exporter/ir/type.h"

namespace taper::eager {
namespace {
thread_local Recorder* current = nullptr;
thread_local std::string path;
thread_local Location current_place;
}  // namespace

Recorder* recorder() { return current; }
Recording::Recording(Recorder* recorder) : before_(current) { current = recorder; }
Recording::~Recording() { current = before_; }

ModuleScope::ModuleScope(const std::string& name) : length_before_(path.size()) {
  if (!name.empty()) path += (path.empty() ? "" : ".") + name;
}
ModuleScope::~ModuleScope() { path.resize(length_before_); }
const std::string& module_path() { return path; }

PlaceScope::PlaceScope(const Location& place) : before_(current_place) { current_place = place; }
PlaceScope::~PlaceScope() { current_place = before_; }
const Location& place() { return current_place; }

Tensor traced_tensor(const TensorType<Dim>& type) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>(Storage::Symbolic{});
  impl->ref.dtype = type.dtype;
  impl->symbolic = std::make_unique<TensorType<Dim>>(type);
  ir::make_dense(*impl->symbolic);
  return Tensor(std::move(impl));
}

}  // namespace taper::eager
