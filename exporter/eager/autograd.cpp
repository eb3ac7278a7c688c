#include "taper/exporter/eager/autograd.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include "taper/exporter/eager/alias.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

thread_local bool grad_mode = true;

/// Accumulators run after everything else, so they count as older than any call.
constexpr uint64_t accumulator_sequence = 0;
std::atomic<uint64_t> next_sequence{accumulator_sequence + 1};

std::string shown(const OperatorInfo& info) {
  const std::string name(info.name);
  return name.substr(0, name.find('.'));
}

bool has_halves(const Tensor& t) { return t.defined() && is_half(t.dtype()); }
/// Whether an operator does arithmetic. A kernel that takes both f16 and i16 only moves elements.
bool computes(const OperatorInfo& info) {
  constexpr DTypeSet alike = one(DType::f16) | one(DType::i16);
  return info.op->category != Category::view &&
         std::none_of(info.kernels.begin(), info.kernels.end(),
                      [](const Kernel* k) { return (k->expected[0].dtypes & alike) == alike; });
}
/// The form of a tensor that a derivative computes with: f32 for f16 and bf16. The gradient is
/// rounded once, when it is fitted to its argument.
Tensor widened(const OperatorInfo& info, Tensor t, const Location& here) {
  if (has_halves(t) && computes(info)) return cast(t, DType::f32, here);
  return t;
}

/// A call of an operator with a derivative.
class CallNode final : public Node {
 public:
  CallNode(const OperatorInfo& info, const Boxed* arguments, const Tensor* results,
           const Location& here)
      : call_(info, arguments, results, here, this) {
    result_count = info.schema.result_count;
  }
  Gradients backward(const Gradients& results) override {
    const PlaceScope scope(call_.here());
    const OperatorInfo& info = call_.info();
    if (std::none_of(results.begin(), results.end(), has_halves))
      return info.derivative->run(call_, results);
    Gradients wide;
    for (const Tensor& dy : results) wide.push_back(widened(info, dy, call_.here()));
    return info.derivative->run(call_, wide);
  }
  std::string name() const override { return std::string(call_.info().name); }
  Location here() const override { return call_.here(); }
  void release() override { call_.release(); }
  void forget() override { call_.forget(); }
  Tensor fit(size_t i, const Tensor& gradient) const override {
    return fit_gradient(gradient, call_.input_sizes(i), call_.input_dtype(i));
  }
  SavedCall& call() { return call_; }

 private:
  SavedCall call_;
};

class NoDerivativeNode final : public Node {
 public:
  NoDerivativeNode(const OperatorInfo& info, Location here) : info_(info), here_(here) {
    result_count = info.schema.result_count;
  }
  Gradients backward(const Gradients&) override {
    throw EagerError(
        here_,
        std::string(info_.name) +
            ": this operator has no derivative; detach() its input, or run it inside no_grad()");
  }
  std::string name() const override { return std::string(info_.name); }
  Location here() const override { return here_; }

 private:
  const OperatorInfo& info_;
  Location here_;
};

}  // namespace

Node::Node() : sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

/// Nodes are freed in a loop: recursion along a long chain would overflow the stack.
Node::~Node() {
  thread_local SmallVector<std::shared_ptr<Node>, 8>* pending = nullptr;
  if (pending != nullptr) {
    for (Edge& e : edges)
      if (e.node) pending->push_back(std::move(e.node));
    return;
  }
  SmallVector<std::shared_ptr<Node>, 8> list;
  pending = &list;
  for (Edge& e : edges)
    if (e.node) list.push_back(std::move(e.node));
  while (!list.empty()) {
    const std::shared_ptr<Node> node = std::move(list.back());
    list.pop_back();
  }
  pending = nullptr;
}

bool grad_enabled() {
  static const bool has_derivatives = !all_derivatives().empty();
  return grad_mode && has_derivatives;
}
NoGrad::NoGrad(bool enabled) : before_(grad_mode) { grad_mode = enabled; }
NoGrad::~NoGrad() { grad_mode = before_; }

// ---- saved tensors ----

Tensor shallow(const Tensor& tensor) {
  const TensorImpl& from = *tensor.impl();
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = from.storage, impl->shape = from.shape, impl->offset = from.offset;
  impl->ref = from.ref;
  impl->ref.shape = &impl->shape;
  impl->base = from.base, impl->view = from.view;
  if (from.symbolic) impl->symbolic = std::make_unique<TensorType<Dim>>(*from.symbolic);
  impl->trace_value = from.trace_value;
  impl->name = from.name;
  return Tensor(std::move(impl));
}

SavedTensor::SavedTensor(const Tensor& tensor) : kept_(tensor) {
  if (const Autograd* a = tensor.impl()->autograd.get()) grad_fn_ = a->grad_fn, result_ = a->result;
}
SavedTensor::SavedTensor(const Tensor& tensor, int result)
    : kept_(shallow(tensor)), result_(result), is_result_(true) {}

Tensor SavedTensor::unpack(const std::weak_ptr<Node>& owner) const {
  if (!kept_.defined()) return {};
  const Tensor tensor = kept_.get();
  const std::shared_ptr<Node> history = is_result_ ? owner.lock() : grad_fn_;
  const Autograd* now = tensor.impl()->autograd.get();
  if ((now ? now->grad_fn : nullptr) == history && (!history || now->result == result_))
    return tensor;
  Tensor alias = shallow(tensor);
  Autograd& a = autograd_of(alias);
  a.grad_fn = history, a.result = result_;
  return alias;
}

bool SavedTensor::is_overwritten(const Tensor& unpacked) const {
  return unpacked.defined() && unpacked.impl()->storage->version() != kept_.version();
}

EagerError overwritten(const Storage& storage, const std::string& user, const Location& here) {
  return EagerError(here, "backward: " + in_place_name(storage.last_writer()) + " at " +
                              storage.last_write().to_string() + " overwrote a value that " + user +
                              " at " + here.to_string() + " needs; write to a clone() instead");
}

void SavedCall::add_type(const Tensor* tensor) {
  Type& type = types_.emplace_back();
  type.first = static_cast<uint32_t>(extents_.size());
  if (tensor == nullptr || !tensor->defined()) return;
  const TensorImpl& impl = *tensor->impl();
  type.dtype = impl.ref.dtype;
  type.rank = static_cast<int8_t>(tensor->rank());
  for (int i = 0; i < type.rank; ++i)
    extents_.push_back(impl.symbolic ? impl.symbolic->sizes[i] : Dim(impl.shape.sizes[i]));
}
void SavedCall::add_layout(const Tensor& tensor) {
  const TensorType<Dim> type = tensor.type();
  for (int i = 0; i < type.rank; ++i) extents_.push_back(type.strides[i]);
  extents_.push_back(type.offset);
}

TensorType<Dim> SavedCall::source_type() const {
  assert(info_->op->category == Category::view);
  const Type& type = types_[0];
  const Dim* at = extents_.data() + type.first;
  TensorType<Dim> t;
  t.dtype = type.dtype, t.rank = type.rank;
  for (int i = 0; i < t.rank; ++i) t.sizes[i] = at[i], t.strides[i] = at[t.rank + i];
  t.offset = at[2 * t.rank];
  return t;
}

SavedCall::SavedCall(const OperatorInfo& info, const Boxed* arguments, const Tensor* results,
                     const Location& here, Node* owner)
    : info_(&info), here_(here), owner_(owner), boxed_(arguments, arguments + info.argument_count) {
  const uint32_t saves = info.derivative->saves;
  for (int i = 0; i < info.argument_count; ++i) {
    if (types_.size() > 127)
      throw EagerError(here,
                       std::string(info.name) +
                           ": more than 127 tensors in one differentiable call; call it in parts");
    first_[i] = static_cast<int8_t>(types_.size());
    Boxed& b = boxed_[static_cast<size_t>(i)];
    if (info.arguments[i].kind == Kind::tensor) {
      const uint32_t elements = b.list ? b.size : 1;
      for (uint32_t k = 0; k < elements; ++k) {
        const bool there = b.present && b.tensors[k].defined();
        add_type(there ? &b.tensors[k] : nullptr);
        if (!(saves >> i & 1)) continue;
        while (tensors_.size() + 1 < types_.size()) tensors_.emplace_back();
        there ? tensors_.emplace_back(b.tensors[k]) : tensors_.emplace_back();
      }
      if (i == 0 && info.op->category == Category::view) add_layout(b.tensor());
      b.tensors = nullptr;
    } else if (b.present && b.list && b.kind == Kind::real) {
      b.reals = reals_.emplace_back(b.reals, b.reals + b.size).data();
    } else if (b.present && b.list && b.symbolic) {
      b.dims = dims_.emplace_back(b.dims, b.dims + b.size).data();
    } else if (b.present && b.list) {
      b.integers = integers_.emplace_back(b.integers, b.integers + b.size).data();
    } else if (b.present && b.kind == Kind::string) {
      if (texts_.empty())
        texts_.reserve(Schema::max_parameters);  // boxed_ points into short strings
      b.text = texts_.emplace_back(b.text, b.size).data();
    }
  }
  if (types_.size() > 127)
    throw EagerError(here,
                     std::string(info.name) +
                         ": more than 127 tensors in one differentiable call; call it in parts");
  first_[info.argument_count] = static_cast<int8_t>(types_.size());
  for (int k = 0; k < info.schema.result_count; ++k) add_type(&results[k]);
}
void SavedCall::save_results(const Tensor* results, const std::shared_ptr<Node>& owner) {
  const uint32_t saves = info_->derivative->saves >> 16;
  if (saves == 0) return;
  history_ = owner;
  for (int k = 0; k < info_->schema.result_count; ++k) {
    if (!(saves >> k & 1)) continue;
    while (results_.size() < static_cast<size_t>(k)) results_.emplace_back();
    results[k].defined() ? results_.emplace_back(results[k], k) : results_.emplace_back();
  }
}

const SavedTensor& SavedCall::saved(int argument, int element) const {
  static const SavedTensor none;
  if (released_)
    throw EagerError(
        here_, "backward: the values that " + std::string(info_->name) +
                   " saved were freed by an earlier backward(); pass retain_graph = true to it");
  const size_t i = static_cast<size_t>(first_[argument] + element);
  return i < tensors_.size() ? tensors_[i] : none;
}
/// In the form that the derivative computes with.
Tensor SavedCall::unpacked(const SavedTensor& saved) const {
  Tensor tensor = saved.unpack(history_);
  if (saved.is_overwritten(tensor))
    throw overwritten(*tensor.impl()->storage, shown(*info_), here_);
  return widened(*info_, std::move(tensor), here_);
}
Tensor SavedCall::tensor(int argument) const { return unpacked(saved(argument, 0)); }
std::vector<Tensor> SavedCall::tensors(int argument) const {
  std::vector<Tensor> list;
  for (int k = 0; k < element_count(argument); ++k) list.push_back(unpacked(saved(argument, k)));
  return list;
}
Tensor SavedCall::result(int k) const {
  if (released_) saved(0, 0);
  return static_cast<size_t>(k) < results_.size() ? unpacked(results_[static_cast<size_t>(k)])
                                                  : Tensor();
}
bool SavedCall::needs(int argument) const {
  for (int i = first_[argument]; i < first_[argument + 1]; ++i)
    if (owner_->edges[static_cast<size_t>(i)].node) return true;
  return false;
}
void SavedCall::forget() const {
  for (const SavedTensor& t : tensors_) t.forget();
  for (const SavedTensor& t : results_) t.forget();
}
void SavedCall::release() {
  forget();
  tensors_.clear(), results_.clear();
  released_ = info_->derivative->saves != 0;
}

// ---- recording ----

namespace {

/// Adds gradients to the `grad` of a leaf. The edges that lead to it own it; the leaf holds it
/// weakly.
class Accumulator final : public Node {
 public:
  explicit Accumulator(const Tensor& leaf) : leaf_(leaf.shared()) {}
  Gradients backward(const Gradients& results) override {
    const Tensor leaf(leaf_);
    if (Recorder* r = recorder()) r->keep_grad(leaf);
    Autograd& a = autograd_of(leaf);
    Tensor gradient = results[0];
    for (const auto& hook : a.hooks)
      if (const Tensor replaced = hook(gradient); replaced.defined())
        gradient = checked_replacement(gradient, replaced, here());
    if (!a.grad.defined()) {
      // a gradient that is a view, or that somebody else holds, could change later
      const bool own = gradient.shared().use_count() <= 2 && !gradient.impl()->base.defined() &&
                       !gradient.is_traced() && gradient.is_dense();
      a.grad = own || grad_mode ? gradient : gradient.clone(Location{});
    } else if (grad_mode) {
      a.grad = call<ops::add_Tensor>(Location{}, a.grad, gradient, Scalar(1));
    } else {
      a.grad.add_(gradient, 1, Location{});
    }
    return {};
  }
  std::string name() const override {
    return "leaf " + (leaf_->name.empty() ? to_string(Tensor(leaf_).sizes()) : leaf_->name);
  }
  bool is_accumulator() const override { return true; }

 private:
  std::shared_ptr<TensorImpl> leaf_;
};

}  // namespace

Tensor checked_replacement(const Tensor& gradient, const Tensor& replaced, const Location& here) {
  if (!same_sizes(replaced.sizes(), gradient.sizes()) || replaced.dtype() != gradient.dtype())
    throw EagerError(here, "backward: a hook gave a gradient of " +
                               std::string(taper::name_of(replaced.dtype())) + " " +
                               to_string(replaced.sizes()) + " in place of " +
                               taper::name_of(gradient.dtype()) + " " +
                               to_string(gradient.sizes()));
  return replaced;
}

Edge gradient_edge(const Tensor& tensor) {
  TensorImpl& impl = *tensor.impl();
  if (impl.base.defined()) {  // a view follows the writes to its base
    if (const Autograd* base = impl.base.impl()->autograd.get();
        base && base->generation != impl.base_generation) {
      NoGrad on(true);
      const Tensor fresh = replay(impl.view.get(), impl.base, Location{});
      impl.base_generation = base->generation;
      take_history(tensor, fresh);
    }
  }
  Autograd* a = impl.autograd.get();
  if (a == nullptr) return {};
  if (a->grad_fn) return {a->grad_fn, a->result};
  if (!a->requires_grad) return {};
  std::shared_ptr<Node> accumulator = a->accumulator.lock();
  if (!accumulator) a->accumulator = accumulator = std::make_shared<Accumulator>(tensor);
  return {std::move(accumulator), 0};
}

void record_on_tape(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                    const Location& here) {
  bool any = false;
  for (int k = 0; k < info.schema.result_count; ++k)
    any = any || (results[k].defined() && is_inexact(results[k].dtype()));
  if (!any) return;
  SmallVector<Edge, 3> edges;
  for (int i = 0; i < info.argument_count; ++i) {
    if (info.arguments[i].kind != Kind::tensor) continue;
    const Boxed& b = arguments[i];
    const uint32_t elements = b.list ? b.size : 1;
    for (uint32_t k = 0; k < elements; ++k)
      edges.push_back(b.present && b.tensors[k].defined() ? gradient_edge(b.tensors[k]) : Edge{});
  }
  std::shared_ptr<Node> node;
  if (info.derivative) {
    auto call_node = std::make_shared<CallNode>(info, arguments, results, here);
    SavedCall& call = call_node->call();
    node = std::move(call_node);
    call.save_results(results, node);
  } else {
    node = std::make_shared<NoDerivativeNode>(info, here);
  }
  node->edges = std::move(edges);
  const int count = info.derivative && info.derivative->saves >> 31 ? 1 : info.schema.result_count;
  for (int k = 0; k < count; ++k) {
    if (!results[k].defined() || !is_inexact(results[k].dtype())) continue;
    Autograd& a = autograd_of(results[k]);
    a.grad_fn = k + 1 < count ? node : std::move(node);
    a.result = k;
  }
  end_complete_run();
}

void take_history(const Tensor& tensor, const Tensor& source) {
  const Autograd* from = source.impl()->autograd.get();
  if (from == nullptr && tensor.impl()->autograd == nullptr) return;
  Autograd& a = autograd_of(tensor);
  a.grad_fn = from ? from->grad_fn : nullptr;
  a.result = from ? from->result : 0;
  ++a.generation;
}

}  // namespace taper::eager
