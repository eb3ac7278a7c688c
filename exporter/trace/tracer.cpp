#include "taper/exporter/trace/tracer.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "taper/exporter/dim/check.h"
#include "taper/exporter/eager/alias.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/lazy_zeros.h"

namespace taper {
namespace {

using eager::Boxed;
using eager::Storage;
using eager::Tensor;

bool starts_with(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// Whether a state is the member of a module called "cache" and holds zeros.
bool is_empty_cache(const ir::State& state, bool untouched) {
  if (!starts_with(state.path, "cache.") && state.path.find(".cache.") == std::string::npos)
    return false;
  if (untouched) return true;
  const std::byte* const bytes = state.initial->bytes.get();
  const size_t size = state.initial->size_bytes;
  return size == 0 || (bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

ir::StateKind kind_of(const Tensor& tensor) {
  if (tensor.requires_grad()) return ir::StateKind::parameter;
  if (starts_with(tensor.name(), "optimizer.")) return ir::StateKind::optimizer;
  if (starts_with(tensor.name(), "random")) return ir::StateKind::random;
  return ir::StateKind::buffer;
}

/// The state's first value: the tensor's own memory, as it will be when the program is written.
std::shared_ptr<const ir::Payload> payload_of(const Tensor& tensor) {
  const eager::TensorImpl& impl = *tensor.impl();
  auto payload = std::make_shared<ir::Payload>();
  payload->dtype = impl.ref.dtype;
  payload->sizes.assign(impl.shape.sizes, impl.shape.sizes + impl.shape.rank);
  payload->bytes =
      std::shared_ptr<const std::byte>(impl.storage, static_cast<const std::byte*>(impl.ref.data));
  payload->layout = impl.ref.layout;
  payload->size_bytes = stored_bytes(static_cast<size_t>(impl.ref.size_bytes()), payload->layout);
  return payload;
}

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Tracer::Tracer(ir::Graph& graph) : graph_(graph), id_(next_id()), names_(own_names_) {}
Tracer::Tracer(ir::Graph& graph, Tracer& outside)
    : graph_(graph),
      outside_(&outside),
      id_(next_id()),
      names_(outside.names_),
      last_(outside.last_) {}

Tracer::~Tracer() {
  for (auto& [leaf, gradient] : gradients_before_) leaf.impl()->autograd->grad = gradient;
}

Tensor Tracer::add_input(const std::string& name, const eager::Dims& sizes, DType dtype) {
  return stand_for(graph_.add_input(name, ir::dense_type(dtype, sizes)));
}

Tensor Tracer::stand_for(ir::Value* value) {
  const Tensor tensor = eager::traced_tensor(value->type);
  *tensor.impl()->symbolic = value->type;  // of a view with its strides
  Track& track = tracks_[tensor.impl()->storage.get()];
  track.storage = tensor.impl()->storage, track.base = tensor, track.current = value;
  remember(tensor, value, 0);
  return tensor;
}

void Tracer::remember(const Tensor& tensor, ir::Value* value, uint64_t generation) {
  tensor.impl()->trace_value = std::make_shared<Seen>(Seen{id_, value, generation});
}

Tracer::Track& Tracer::capture(const Tensor& base, Location here) {
  if (outside_ != nullptr) return capture_from_outside(base, here);
  if (base.is_traced())
    throw EagerError(here,
                     "export: a tensor of another trace is used here; a traced function must not "
                     "keep tensors between calls");
  if (!base.is_dense())
    throw EagerError(
        here, "export: a tensor from before the trace is not dense; call contiguous() on it first");
  const std::string path = base.name().empty() ? graph_.fresh_name("captured") : base.name();
  const std::vector<int64_t> sizes(base.impl()->shape.sizes,
                                   base.impl()->shape.sizes + base.impl()->shape.rank);
  if (const ir::State* other = graph_.find_state(path))
    throw EagerError(here, "export: two different tensors are called \"" + other->path +
                               "\"; give each model or optimizer a name of its own");
  Track& track = tracks_[base.impl()->storage.get()];
  track.storage = base.impl()->storage, track.base = base;
  track.state = graph_.add_state(path, kind_of(base), base.requires_grad(), base.dtype(), sizes,
                                 payload_of(base));
  track.current = track.state->value.get();
  track.untouched = eager::is_untouched(*track.storage);
  captured_.push_back(&track);
  return track;
}

Tracer::Track& Tracer::track_of(const Tensor& tensor, Location here) {
  const auto at = tracks_.find(tensor.impl()->storage.get());
  if (at != tracks_.end()) return at->second;
  return capture(tensor.impl()->base.defined() ? tensor.impl()->base : tensor, here);
}

ir::Value* Tracer::value_of(const Tensor& tensor, Location here) {
  Track& track = track_of(tensor, here);
  const eager::TensorImpl& impl = *tensor.impl();
  if (!impl.base.defined()) return track.current;
  const Seen* seen = static_cast<const Seen*>(impl.trace_value.get());
  if (seen != nullptr && seen->tracer == id_ && seen->generation == track.generation)
    return seen->value;
  // a view from before the trace, or from before a write: follow its chain from the current value
  eager::NoGrad guard;
  const Tensor fresh = eager::replay(impl.view.get(), impl.base, here);
  ir::Value* value = static_cast<const Seen*>(fresh.impl()->trace_value.get())->value;
  remember(tensor, value, track.generation);
  return value;
}

ir::Argument Tracer::argument(const Parameter& parameter, const Boxed& b, Location here) {
  if (!b.present) return {};
  const auto value = [&](const Tensor& t) { return t.defined() ? value_of(t, here) : nullptr; };
  if (parameter.kind == Kind::tensor) {
    if (!b.list) return value(b.tensor());
    std::vector<ir::Value*> list;
    for (uint32_t k = 0; k < b.size; ++k) list.push_back(value(b.tensors[k]));
    return list;
  }
  if (b.list) {
    if (b.kind == Kind::real) return std::vector<double>(b.reals, b.reals + b.size);
    std::vector<Dim> list;
    for (uint32_t k = 0; k < b.size; ++k)
      list.push_back(b.symbolic ? b.dims[k] : Dim(b.integers[k]));
    return list;
  }
  switch (parameter.kind) {
    case Kind::integer:
      return b.dim;
    case Kind::boolean:
      return b.integer() != 0;
    case Kind::real:
      return b.scalar().to<double>();
    case Kind::scalar:
      if (b.kind == Kind::integer && !b.dim.is_constant()) return b.dim;
      return b.scalar();
    case Kind::dtype:
      return static_cast<DType>(b.integer());
    default:
      return std::string(b.text, b.size);
  }
}

void Tracer::record(const eager::OperatorInfo& info, const Boxed* arguments, Tensor* results,
                    const std::vector<Check>& checks, Location here) {
  if (place().known()) here = place();
  if (here.known()) last_ = here;
  std::vector<ir::Argument> list;
  for (int i = 0; i < info.argument_count; ++i)
    list.push_back(argument(info.arguments[i], arguments[i], here));
  std::vector<ir::Type> types;
  for (int k = 0; k < info.schema.result_count; ++k) {
    if (results[k].defined())
      types.push_back(*results[k].impl()->symbolic);
    else
      types.emplace_back().present = false;
  }
  for (const Check& check : checks) add_check(check, here);
  const ir::Node* node = graph_.append(*info.op, std::move(list), types,
                                       here.known() ? here : last_, eager::module_path());
  for (int k = 0; k < info.schema.result_count; ++k) {
    if (!results[k].defined()) continue;
    ir::Value* value = node->result(static_cast<size_t>(k));
    if (info.op->category == Category::view) {
      remember(results[k], value, track_of(results[k], here).generation);
      continue;
    }
    Track& track = tracks_[results[k].impl()->storage.get()];
    track.storage = results[k].impl()->storage, track.base = {}, track.current = value;
    remember(results[k], value, 0);
  }
}

void Tracer::write(const Tensor& base, const Tensor& source, Location here) {
  Track& track = track_of(base, here);
  if (track.current->origin == ir::Value::Origin::input && outside_ != nullptr)
    throw EagerError(here, "export: the body of a branch or loop writes a tensor from outside" +
                               (base.name().empty() ? "" : ", \"" + base.name() + "\",") +
                               " in place; give the new value as a result instead");
  if (track.current->origin == ir::Value::Origin::input)
    throw EagerError(here,
                     "export: this writes the input \"" +
                         graph_.inputs()[static_cast<size_t>(track.current->index)].name +
                         "\" in place, which the caller of the program would not see; clone() it "
                         "first, or give the new value as an output");
  if (track.state != nullptr && base.name().empty())
    throw EagerError(here,
                     "export: this writes a tensor of size " + eager::to_string(base.sizes()) +
                         " that existed before the trace and has no name; register it in a module "
                         "(TAPER_MODULE), or call set_name() on it, so that it becomes a state");
  eager::NoGrad guard;
  const Tensor dense = source.is_dense() ? source : source.clone(here);
  ir::Value* value = value_of(dense, here);
  track.current = value;
  ++track.generation;
  track.written = true;
}

// `wanted`, or a name like it that no other symbol of the method has.
std::string Tracer::name_of_element(const std::string& wanted) {
  const auto is_taken = [&](const std::string& name) {
    for (const Tracer* t = this; t != nullptr; t = t->outside_)
      for (const ir::SymbolBinding& s : t->graph_.symbols())
        if (s.symbol.as_symbol()->name == name) return true;
    return names_.contains(name);
  };
  std::string name = wanted.empty() ? "u0" : wanted;
  for (int i = wanted.empty() ? 1 : 2; is_taken(name); ++i)
    name = (wanted.empty() ? "u" : wanted + "_") + std::to_string(i);
  names_.insert(name);
  return name;
}

Dim Tracer::element(const Tensor& tensor, int64_t minimum, int64_t maximum, const std::string& name,
                    Location here) {
  eager::NoGrad guard;
  Tensor read = tensor;
  ir::Value* value = value_of(read, here);
  if (value->node != nullptr && value->node->op->category == Category::view)
    value = value_of(read = tensor.clone(here), here);
  const Dim symbol = Dim::symbol(name_of_element(name), minimum, maximum);
  graph_.bind_symbol({symbol, ir::SymbolSource::element, 0, 0, value});
  return symbol;
}

// A caller may give a declared size any value of its range, so an operator that works for one of
// them alone is a mistake of the model or of the declaration.
void Tracer::add_check(const Check& check, Location here) {
  if (const std::optional<Collapse> left = collapse_of(check); left && is_declared(left->symbol)) {
    const Symbol& s = *left->symbol;
    const std::string range =
        s.name + " is declared as " + std::to_string(s.minimum) + ".." + std::to_string(s.maximum);
    if (!left->value)
      throw EagerError(here, "export: " + check.message + ": no size meets this, " + range);
    const std::string value = std::to_string(*left->value);
    throw EagerError(here, "export: " + check.message + ": " + range + ", and only " + s.name +
                               " = " + value + " meets this; mend the model so that every " +
                               s.name + " fits, or declare the one size: Dim::symbol(\"" + s.name +
                               "\", " + value + ", " + value + "), of a .pt2 --dim " + s.name +
                               "=" + value);
  }
  graph_.add_check(check);
}

/// Whether a symbol stands for a size or a number that the caller chooses.
bool Tracer::is_declared(const Symbol* symbol) const {
  if (outside_ != nullptr) return outside_->is_declared(symbol);
  return std::ranges::any_of(graph_.symbols(), [&](const ir::SymbolBinding& s) {
    return s.symbol.as_symbol() == symbol && (s.source == ir::SymbolSource::input_extent ||
                                              s.source == ir::SymbolSource::input_number);
  });
}

void Tracer::assume(const Check& check) { add_check(check, place().known() ? place() : last_); }

void Tracer::keep_grad(const Tensor& leaf) {
  if (outside_ != nullptr) return outside_->keep_grad(leaf);
  if (!leaf.impl()->autograd) leaf.impl()->autograd = std::make_unique<eager::Autograd>();
  if (kept_.try_emplace(leaf.impl(), gradients_before_.size()).second)
    gradients_before_.emplace_back(leaf, leaf.grad());
}

void Tracer::name(const Tensor& tensor, const std::string& name) {
  const auto track = tracks_.find(tensor.impl()->storage.get());
  if (track == tracks_.end()) return;
  const Seen* seen = static_cast<const Seen*>(tensor.impl()->trace_value.get());
  ir::Value* value = tensor.impl()->base.defined() && seen != nullptr && seen->tracer == id_
                         ? seen->value
                         : track->second.current;
  if (value->origin == ir::Value::Origin::result && !value->named_by_user)
    graph_.name_by_user(value, name);
}

void Tracer::refuse_value(const Tensor& tensor, Location here) {
  throw DataDependentError(
      here, "export: a number is read from a tensor of size " + eager::to_string(tensor.sizes()) +
                ", which is known only at run time: `if` on a tensor's value and item() cannot "
                "be traced; choose with where() or cond(), repeat with while_loop() or scan(), or "
                "leave that part outside");
}

void Tracer::finish() {
  for (const Track* track : captured_)
    if (track->written && track->current != track->state->value.get()) {
      graph_.add_write(track->state, track->current);
      if (is_empty_cache(*track->state, track->untouched)) {
        track->state->kind = ir::StateKind::cache;
        track->state->initial = nullptr;  // zeros, which take no place in a file
      }
      if (track->untouched) eager::keep_untouched(*track->storage);
    }
}

}  // namespace taper
