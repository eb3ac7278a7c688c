#include "taper/delegates/xnnpack/runtime/backend.h"

#include <atomic>
#include <new>
#include <utility>

#include "taper/delegates/xnnpack/runtime/engine.h"

namespace taper::delegates::xnnpack {
namespace {

// A blob. An engine that nobody uses waits in `idle` for the next instance. Packed weights stay
// until the program is closed; there are as many as instructions with different constants.
struct Loaded {
  Part part;
  PackStore& store;
  Workspaces& workspaces;
  Precision precision;
  std::atomic<Engine*> idle;
  std::atomic<Weights*> weights;

  void keep(Engine* engine) {
    engine->next = idle;
    while (!idle.compare_exchange_weak(engine->next, engine)) {
    }
  }
  void keep_all(Engine* waiting) {
    while (waiting != nullptr) keep(std::exchange(waiting, waiting->next));
  }
  // The engine that waits and fits, in the session's workspace. The session destroys others there
  // and in workspaces of nobody. Those in workspaces of other sessions wait on.
  Engine* take(const void* session, Engine* waiting, const Workspace& workspace, const Weights& of,
               const Threads* threads, bool is_timed) {
    Engine *taken = nullptr, *next = nullptr;
    for (Engine* engine = waiting; engine != nullptr; engine = next) {
      next = engine->next;
      Workspace& its = engine->workspace();
      if (&its == &workspace && taken == nullptr && engine->fits(of, threads, is_timed)) {
        taken = engine;
      } else if (workspaces.try_join(its, session)) {
        Engine::destroy(store.memory(), engine);
        workspaces.leave(its);
      } else {
        keep(engine);
      }
    }
    return taken;
  }
  void drop_idle() {
    Engine* next = nullptr;
    for (Engine* engine = idle.exchange(nullptr); engine != nullptr; engine = next)
      next = engine->next, Engine::destroy(store.memory(), engine);
  }
  // Those of these constants; nullptr: there is no memory.
  Weights* weights_of(const Shape* shapes, const void* const* addresses) {
    for (Weights* w = weights; w != nullptr; w = w->next)
      if (w->are_at(addresses) && w->have_sizes(shapes)) return w;
    Weights* mine = Weights::create(store, part, shapes, addresses);
    if (mine == nullptr) return nullptr;
    mine->next = weights;
    while (!weights.compare_exchange_weak(mine->next, mine)) {
    }
    return mine;
  }
  void drop_weights() {
    Weights* next = nullptr;
    for (Weights* w = weights.exchange(nullptr); w != nullptr; w = next)
      next = w->next, Weights::destroy(store, w);
  }
};

// In the method's memory. Behind it stand the shapes of all values, the external values, and the
// addresses of the constants.
struct Instance {
  Loaded* loaded;
  Workspace* workspace;
  Engine* engine;  // nullptr: sizes were refused, or there was no memory for another one
  bool is_set_up;  // the library knows the addresses

  const Part& part() const { return loaded->part; }
  index_t external_count() const { return part().operands() + part().results(); }
  Shape* shapes() { return reinterpret_cast<Shape*>(this + 1); }
  const Shape* shapes() const { return reinterpret_cast<const Shape*>(this + 1); }
  xnn_external_value* externals() {
    return reinterpret_cast<xnn_external_value*>(shapes() + part().values());
  }
  const void** constants() {
    return reinterpret_cast<const void**>(externals() + external_count());
  }
  static size_t bytes_of(const Part& p) {
    return sizeof(Instance) + static_cast<size_t>(p.values()) * sizeof(Shape) +
           static_cast<size_t>(p.operands() + p.results()) * sizeof(xnn_external_value) +
           static_cast<size_t>(p.constants()) * sizeof(void*);
  }
};
static_assert(alignof(Instance) <= 8 && alignof(Shape) <= 8 && alignof(xnn_external_value) <= 8);

// Whether the tensors have the dtypes of the values from `first` on.
bool have_dtypes(const Part& part, index_t first, Span<const Slot> slots) {
  for (index_t i = 0; i < slots.size(); ++i)
    if (slots[i].tensor->dtype != part.dtype(first + i)) return false;
  return true;
}

// Computes the sizes of all values from those of the arguments.
Error take_shapes(Instance& instance, const DelegateArguments& arguments, Context& context) {
  const Part& part = instance.part();
  Shape* shapes = instance.shapes();
  for (index_t i = 0; i < part.operands(); ++i) shapes[i] = *arguments.operands[i].tensor->shape;
  for (index_t i = 0; i < part.constants(); ++i)
    shapes[part.operands() + i] = *arguments.constants[i].tensor->shape;
  const index_t wrong = part.infer(shapes);
  if (wrong < 0) return Error::ok;
  return context.fail(Error::invalid_argument,
                      TAPER_TEXT("node {} of the part cannot have these sizes"), wrong);
}

// Says why the library did not do something. `before`: how many allocations had failed.
Error fail_in_library(Memory& memory, Context& context, uint32_t before) {
  if (memory.failures() != before || !memory.has_reserve())
    return context.fail(Error::out_of_memory, TAPER_TEXT("XNNPACK got no memory"));
  return context.fail(Error::not_supported, TAPER_TEXT("XNNPACK refuses the part or these sizes"));
}

// Slots: x, ends, filters, y. The library times graphs alone.
Error multiply(const Instance& instance, const Slot* slots, NodeObserver* observer,
               Context& context) {
  if (!instance.engine->is_timed()) observer = nullptr;
  const uint64_t begin = observer == nullptr ? 0 : observer->now_us();
  TAPER_TRY(instance.engine->grouped_product()->run(*slots[0].tensor, *slots[1].tensor,
                                                    *slots[3].tensor, context));
  if (observer == nullptr) return Error::ok;
  const NodeObserver::Node node{"Grouped Fully Connected (NC, F32)", instance.part().node(0).source,
                                observer->now_us() - begin};
  observer->ran(&node, 1);
  return Error::ok;
}

// Uses an engine that waits, if it was made from the same constants.
Engine* take_engine(Instance& instance, const void* session, const Threads* threads,
                    bool is_timed) {
  Loaded& loaded = *instance.loaded;
  Workspaces& workspaces = loaded.workspaces;
  Weights* weights =
      loaded.weights_of(instance.shapes() + loaded.part.operands(), instance.constants());
  if (weights == nullptr) return nullptr;
  Engine* waiting = loaded.idle.exchange(nullptr);
  Workspace* workspace =
      workspaces.join(session, waiting == nullptr ? nullptr : &waiting->workspace());
  if (workspace == nullptr) return loaded.keep_all(waiting), nullptr;
  instance.workspace = workspace;
  Engine* engine = loaded.take(session, waiting, *workspace, *weights, threads, is_timed);
  if (engine == nullptr)
    engine = Engine::create(loaded.store, loaded.part, instance.shapes(), *weights, *workspace,
                            threads, loaded.precision, is_timed);
  if (engine == nullptr) workspaces.leave(*workspace);
  return engine;
}

// An engine that failed makes room for another one, of the same constants.
bool renew_engine(Instance& instance, const Threads* threads, bool is_timed) {
  Loaded& loaded = *instance.loaded;
  if (instance.engine != nullptr) Engine::destroy(loaded.store.memory(), instance.engine);
  instance.engine = nullptr;
  Weights* weights =
      loaded.weights_of(instance.shapes() + loaded.part.operands(), instance.constants());
  if (weights != nullptr)
    instance.engine = Engine::create(loaded.store, loaded.part, instance.shapes(), *weights,
                                     *instance.workspace, threads, loaded.precision, is_timed);
  return instance.engine != nullptr;
}

}  // namespace

Error XnnpackBackend::load(Span<const std::byte> blob, Context& context, void*& loaded) {
  if (!Part::is_valid(blob))
    return context.fail(Error::invalid_program, TAPER_TEXT("the part of XNNPACK is damaged"));
  if (!initialize(store_.memory()))
    return context.fail(Error::not_supported, TAPER_TEXT("XNNPACK does not run on this machine"));
  void* place = store_.memory().allocate(sizeof(Loaded));
  if (place == nullptr)
    return context.fail(Error::out_of_memory, TAPER_TEXT("XNNPACK got no memory"));
  loaded = new (place) Loaded{Part(blob), store_, workspaces_, precision_, {nullptr}, {nullptr}};
  return Error::ok;
}

void XnnpackBackend::unload(void* loaded) {
  static_cast<Loaded*>(loaded)->drop_idle();
  static_cast<Loaded*>(loaded)->drop_weights();
  store_.memory().release(loaded, sizeof(Loaded));
}

size_t XnnpackBackend::instance_bytes(const void* loaded) const {
  return Instance::bytes_of(static_cast<const Loaded*>(loaded)->part);
}

Error XnnpackBackend::create(void* loaded, void* memory, const DelegateArguments& arguments,
                             Context& context) {
  Instance& instance =
      *new (memory) Instance{static_cast<Loaded*>(loaded), nullptr, nullptr, false};
  const Part& part = instance.part();
  if (arguments.operands.size() != part.operands() ||
      arguments.constants.size() != part.constants() ||
      arguments.results.size() != part.results() || !have_dtypes(part, 0, arguments.operands) ||
      !have_dtypes(part, part.operands(), arguments.constants))
    return context.fail(Error::invalid_program,
                        TAPER_TEXT("the part of XNNPACK takes other arguments"));
  TAPER_TRY(take_shapes(instance, arguments, context));
  for (index_t i = 0; i < part.constants(); ++i)
    instance.constants()[i] = arguments.constants[i].tensor->data;
  for (index_t i = 0; i < part.operands(); ++i)
    instance.externals()[i] = {static_cast<uint32_t>(i), nullptr};
  for (index_t r = 0; r < part.results(); ++r)
    instance.externals()[part.operands() + r] = {static_cast<uint32_t>(part.result(r)), nullptr};
  const uint32_t before = store_.memory().failures();
  instance.engine = take_engine(instance, arguments.session, context.threads, observer_ != nullptr);
  if (instance.engine != nullptr) return Error::ok;
  return fail_in_library(store_.memory(), context, before);
}

void XnnpackBackend::release(void* memory) {
  Instance& instance = *static_cast<Instance*>(memory);
  Loaded& loaded = *instance.loaded;
  if (instance.engine != nullptr) {
    if (loaded.idle == nullptr && !instance.engine->is_broken())
      loaded.keep(instance.engine);
    else
      Engine::destroy(loaded.store.memory(), instance.engine);
  }
  loaded.workspaces.leave(*instance.workspace);
}

Error XnnpackBackend::reshape(void* memory, const DelegateArguments& arguments, Context& context) {
  Instance& instance = *static_cast<Instance*>(memory);
  instance.is_set_up = false;
  TAPER_TRY(take_shapes(instance, arguments, context));
  const uint32_t before = store_.memory().failures();
  const bool has_engine = (instance.engine != nullptr && !instance.engine->is_broken()) ||
                          renew_engine(instance, context.threads, observer_ != nullptr);
  if (has_engine && instance.engine->reshape(instance.part(), instance.shapes())) return Error::ok;
  return fail_in_library(store_.memory(), context, before);
}

void XnnpackBackend::result(const void* memory, index_t i, DType& dtype, Shape& shape) const {
  const Instance& instance = *static_cast<const Instance*>(memory);
  dtype = instance.part().dtype(instance.part().result(i));
  shape = instance.shapes()[instance.part().result(i)];
}

Error XnnpackBackend::execute(void* memory, const Slot* arguments, Context& context) {
  Instance& instance = *static_cast<Instance*>(memory);
  if (instance.engine->grouped_product() != nullptr)
    return multiply(instance, arguments, observer_, context);
  const Part& part = instance.part();
  xnn_external_value* externals = instance.externals();
  for (index_t i = 0; i < instance.external_count(); ++i) {
    const index_t at = i < part.operands() ? i : i + part.constants();
    void* data = arguments[at].tensor->data;
    instance.is_set_up = instance.is_set_up && externals[i].data == data;
    externals[i].data = data;
  }
  if (!instance.is_set_up) {
    instance.is_set_up = instance.engine->set_addresses(externals, instance.external_count());
    if (!instance.is_set_up)
      return context.fail(Error::device_failed, TAPER_TEXT("XNNPACK refuses the addresses"));
  }
  if (!instance.engine->run())
    return context.fail(Error::device_failed, TAPER_TEXT("XNNPACK failed"));
  if (observer_ != nullptr) instance.engine->tell(part, *observer_);
  return Error::ok;
}

}  // namespace taper::delegates::xnnpack
