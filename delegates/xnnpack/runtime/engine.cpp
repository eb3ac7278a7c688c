#include "taper/delegates/xnnpack/runtime/engine.h"

#include <cstring>
#include <new>

#include "taper/delegates/xnnpack/runtime/define.h"
#include "taper/delegates/xnnpack/runtime/node_times.h"

namespace taper::delegates::xnnpack {

Engine* Engine::create(PackStore& store, const Part& part, const Shape* shapes, Weights& weights,
                       Workspace& workspace, const Threads* threads, Precision precision,
                       bool is_timed) {
  void* place = allocate(store.memory(), sizeof(Engine));
  if (place == nullptr) return nullptr;
  Engine* engine = new (place) Engine(store, weights, workspace, threads, is_timed);
  Memory& memory = store.memory();
  const uint32_t before = memory.failures();
  const auto can = [&](Precision p) {
    return memory.has_reserve() && memory.failures() == before && engine->build(part, shapes, p) &&
           memory.failures() == before;
  };
  if (precision == Precision::f16 && fits_f16(part) && can(Precision::f16)) return engine;
  if (can(Precision::f32)) return engine;
  destroy(memory, engine);
  return nullptr;
}

void Engine::destroy(Memory& memory, Engine* engine) {
  engine->~Engine();
  memory.release(engine, sizeof(Engine));
}

Engine::Engine(PackStore& store, Weights& weights, Workspace& workspace, const Threads* threads,
               bool is_timed)
    : memory_(store.memory()),
      weights_(weights),
      workspace_(workspace),
      packed_(store, weights),
      pool_{threads},
      is_timed_(is_timed) {
  workspace.all.add_engine(workspace);
}

Engine::~Engine() {
  if (runtime_ != nullptr) (void)xnn_delete_runtime(runtime_);
  if (grouped_product_ != nullptr) GroupedProduct::destroy(memory_, grouped_product_);
  workspace_.all.remove_engine(workspace_);
}

// Fails in f16 if the processor has none.
bool Engine::build(const Part& part, const Shape* shapes, Precision precision) {
  precision_ = precision;
  packed_.begin(precision);
  if (part.is_grouped_product()) {
    grouped_product_ = GroupedProduct::create(memory_, shapes[part.operands()],
                                              weights_.addresses()[0], packed_.provider(), &pool_);
    return grouped_product_ != nullptr;
  }
  const uint32_t flags = (is_timed_ ? XNN_FLAG_BASIC_PROFILING : 0u) |
                         (precision == Precision::f16 ? XNN_FLAG_FORCE_FP16_INFERENCE : 0u);
  xnn_subgraph_t subgraph = nullptr;
  if (xnn_create_subgraph(static_cast<uint32_t>(part.values()), 0, &subgraph) != xnn_status_success)
    return false;
  bool built = define(subgraph, part, shapes, weights_.addresses()) == xnn_status_success;
  built = built && xnn_create_runtime_v4(subgraph, packed_.provider(), workspace_.memory, &pool_,
                                         flags, &runtime_) == xnn_status_success;
  (void)xnn_delete_subgraph(subgraph);
  return built;
}

void Engine::tell(const Part& part, NodeObserver& observer) const {
  if (is_timed_ && runtime_ != nullptr)
    tell_node_times(runtime_, part, precision_, memory_, observer);
}

bool Engine::reshape(const Part& part, const Shape* shapes) {
  const uint32_t before = memory_.failures();
  is_broken_ = is_broken_ || !memory_.has_reserve() || !take_sizes(part, shapes) ||
               memory_.failures() != before;
  return !is_broken_;
}

bool Engine::take_sizes(const Part& part, const Shape* shapes) {
  if (!weights_.have_sizes(shapes + part.operands())) return false;
  if (grouped_product_ != nullptr) return true;
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
