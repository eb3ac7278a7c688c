#include "taper/delegates/xnnpack/runtime/engine.h"

#include <cstring>
#include <new>

#include "taper/delegates/xnnpack/runtime/define.h"

namespace taper::delegates::xnnpack {

Engine* Engine::create(Memory& memory, const Part& part, const Shape* shapes,
                       const void* const* constants, const Threads* threads) {
  const size_t bytes = bytes_of(part);
  void* place = memory.allocate(bytes);
  if (place == nullptr) return nullptr;
  Engine* engine = new (place) Engine();
  engine->bytes_ = bytes, engine->constants_ = part.constants();
  engine->pool_.threads = threads;
  for (index_t i = 0; i < part.constants(); ++i) {
    engine->addresses()[i] = constants[i];
    engine->sizes()[i] = shapes[part.operands() + i];
  }
  if (engine->build(part, shapes)) return engine;
  destroy(memory, engine);
  return nullptr;
}

void Engine::destroy(Memory& memory, Engine* engine) {
  if (engine->runtime_ != nullptr) (void)xnn_delete_runtime(engine->runtime_);
  if (engine->workspace_ != nullptr) (void)xnn_release_workspace(engine->workspace_);
  memory.release(engine, engine->bytes_);
}

bool Engine::fits(const void* const* constants, const Threads* threads) const {
  return pool_.threads == threads &&
         std::memcmp(addresses(), constants, static_cast<size_t>(constants_) * sizeof(void*)) == 0;
}

bool Engine::has_sizes(const Shape* constants) const {
  for (index_t i = 0; i < constants_; ++i)
    if (sizes()[i].rank != constants[i].rank || !sizes()[i].same_sizes(constants[i])) return false;
  return true;
}

bool Engine::build(const Part& part, const Shape* shapes) {
  xnn_subgraph_t subgraph = nullptr;
  if (xnn_create_workspace(&workspace_) != xnn_status_success ||
      xnn_create_subgraph(static_cast<uint32_t>(part.values()), 0, &subgraph) != xnn_status_success)
    return false;
  bool built = define(subgraph, part, shapes, addresses()) == xnn_status_success;
  built = built && xnn_create_runtime_v4(subgraph, nullptr, workspace_, &pool_, 0, &runtime_) ==
                       xnn_status_success;
  (void)xnn_delete_subgraph(subgraph);
  return built;
}

bool Engine::reshape(const Part& part, const Shape* shapes) {
  if (!has_sizes(shapes + part.operands())) return false;
  for (index_t i = 0; i < part.operands(); ++i) {
    const Dims dims(shapes[i]);
    if (xnn_reshape_external_value(runtime_, static_cast<uint32_t>(i), dims.count, dims.sizes) !=
        xnn_status_success)
      return false;
  }
  if (xnn_reshape_runtime(runtime_) != xnn_status_success) return false;
  for (index_t r = 0; r < part.results(); ++r) {
    const Dims expected(shapes[part.result(r)]);
    size_t count = 0, sizes[XNN_MAX_TENSOR_DIMS];
    if (xnn_get_external_value_shape(runtime_, static_cast<uint32_t>(part.result(r)), &count,
                                     sizes) != xnn_status_success ||
        count != expected.count || std::memcmp(sizes, expected.sizes, count * sizeof(size_t)) != 0)
      return false;
  }
  return true;
}

}  // namespace taper::delegates::xnnpack
