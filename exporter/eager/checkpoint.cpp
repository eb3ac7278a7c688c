#include "taper/exporter/eager/checkpoint.h"

#include <optional>
#include <string>
#include <utility>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/kept_tensor.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Ends a second run that has given all tensors. Nobody else catches it.
struct HasAll {};

/// The tensor without its history.
Tensor off_tape(const Tensor& tensor) {
  Tensor copy = shallow(tensor);
  if (Tensor& base = copy.impl()->base; base.defined()) base = shallow(base);
  return copy;
}

/// The calls of the second run name the lines that they had in the first, not those of backward.
class PlaceOfFirstRun {
 public:
  explicit PlaceOfFirstRun(const Location& place)
      : before_(std::exchange(taper::internal::place, place.known() ? &place : nullptr)) {}
  ~PlaceOfFirstRun() { taper::internal::place = before_; }
  PlaceOfFirstRun(const PlaceOfFirstRun&) = delete;
  PlaceOfFirstRun& operator=(const PlaceOfFirstRun&) = delete;

 private:
  const Location* before_;
};

}  // namespace

/// The function, its inputs, and what its second run gave. Each tensor that the tape would have
/// kept in the first run has a slot, in the order of the calls.
class Checkpoint : public std::enable_shared_from_this<Checkpoint> {
 public:
  /// The state of a generator, and a copy from before the first draw.
  struct Draw {
    Tensor state, before;
  };

  Checkpoint(Function function, const std::vector<Tensor>& inputs, Location here)
      : function_(std::move(function)),
        inputs_(inputs.begin(), inputs.end()),
        here_(here),
        place_(place()),
        modules_(module_path()) {}

  std::vector<Tensor> run_first(const std::vector<Tensor>& inputs);

  /// In the first run: makes a slot.
  size_t add_slot(const Tensor& tensor);
  /// In the second run: fills the next slot, or keeps the reason why it cannot.
  void fill_slot(const Tensor& tensor);
  /// In the second run, between two calls: ends it if it has given all tensors, or cannot.
  void end_if_complete() const;
  void add_draw(const Tensor& state);

  const Tensor& value(size_t slot) {
    if (!slots_[slot].value.defined()) run_again();
    return slots_[slot].value;
  }
  uint64_t version(size_t slot) const { return slots_[slot].version; }
  void forget(size_t slot) { slots_[slot].value = {}; }

 private:
  struct Slot {
    // of the first run
    DType dtype;
    Dims sizes;
    const Storage* storage;  // only compared: it may be freed
    uint64_t first_version;
    // of the second run
    Tensor value = {};
    uint64_t version = 0;
  };
  void run_again();
  EagerError other_tensors(const std::string& what) const;

  Function function_;
  std::vector<SavedTensor> inputs_;  // a checkpoint around this one computes them again, too
  Location here_, place_;
  std::string modules_;
  std::vector<Slot> slots_;
  std::vector<Draw> draws_;
  // of the second run
  size_t next_ = 0;  // the slot to fill
  std::optional<EagerError> failure_;
};

namespace {

/// A run of a checkpoint's function. Runs may be nested; the innermost one gets the tensors.
struct Run {
  Checkpoint* checkpoint;
  bool again;
  Run* outer;
};
thread_local Run* innermost = nullptr;

class Running {
 public:
  Running(Checkpoint* checkpoint, bool again) : run_{checkpoint, again, innermost} {
    innermost = &run_;
  }
  ~Running() { innermost = run_.outer; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Run run_;
};

/// Sets generators back while it lives.
class DrawsAgain {
 public:
  explicit DrawsAgain(const std::vector<Checkpoint::Draw>& draws) {
    const NoGrad guard;
    for (const Checkpoint::Draw& draw : draws) {
      now_.push_back({draw.state, draw.state.clone(Location{})});
      now_.back().state.copy_(draw.before, Location{});
    }
  }
  ~DrawsAgain() {
    const NoGrad guard;
    for (Checkpoint::Draw& draw : now_) draw.state.copy_(draw.before, Location{});
  }
  DrawsAgain(const DrawsAgain&) = delete;
  DrawsAgain& operator=(const DrawsAgain&) = delete;

 private:
  std::vector<Checkpoint::Draw> now_;
};

bool is_trained(const Tensor& t) { return t.is_leaf() && t.requires_grad(); }

}  // namespace

// ---- kept tensors ----

KeptTensor::KeptTensor(const Tensor& tensor) : version_(tensor.impl()->storage->version()) {
  if (innermost == nullptr || is_trained(tensor)) {
    tensor_ = tensor;
  } else if (innermost->again) {
    tensor_ = tensor;  // the second run may call grad() itself
    innermost->checkpoint->fill_slot(tensor);
  } else {
    checkpoint_ = innermost->checkpoint->shared_from_this();
    slot_ = checkpoint_->add_slot(tensor);
  }
}
Tensor KeptTensor::get() const { return checkpoint_ ? checkpoint_->value(slot_) : tensor_; }
uint64_t KeptTensor::version() const {
  return checkpoint_ ? checkpoint_->version(slot_) : version_;
}
void KeptTensor::forget() const {
  if (checkpoint_) checkpoint_->forget(slot_);
}

void end_complete_run() {
  if (innermost != nullptr && innermost->again) innermost->checkpoint->end_if_complete();
}

// ---- runs ----

size_t Checkpoint::add_slot(const Tensor& tensor) {
  const Storage* storage = tensor.impl()->storage.get();
  slots_.push_back({tensor.dtype(), tensor.sizes(), storage, storage->version()});
  return slots_.size() - 1;
}

void Checkpoint::fill_slot(const Tensor& tensor) {
  if (failure_ || next_ == slots_.size()) return;
  Slot& slot = slots_[next_];
  if (tensor.dtype() != slot.dtype || !same_sizes(tensor.sizes(), slot.sizes)) {
    failure_ = other_tensors("kept " + std::string(taper::name_of(slot.dtype)) + " " +
                             to_string(slot.sizes) + " for backward, the second call " +
                             taper::name_of(tensor.dtype()) + " " + to_string(tensor.sizes()));
    return;
  }
  const Storage& storage = *tensor.impl()->storage;
  // A tensor of the function itself has the same version in both runs, wherever its storage lies.
  if (&storage == slot.storage && storage.version() != slot.first_version) {
    failure_ = overwritten(storage, "checkpoint", here_);
    return;
  }
  slot.value = off_tape(tensor);
  slot.version = storage.version();
  ++next_;
}

void Checkpoint::end_if_complete() const {
  if (failure_) throw EagerError(*failure_);
  if (next_ == slots_.size()) throw HasAll();
}

void Checkpoint::add_draw(const Tensor& state) {
  for (const Draw& draw : draws_)
    if (draw.state.is_same(state)) return;
  const NoGrad guard;
  draws_.push_back({state, state.clone(Location{})});
}

std::vector<Tensor> Checkpoint::run_first(const std::vector<Tensor>& inputs) {
  const Running running(this, false);
  return function_(inputs);
}

void Checkpoint::run_again() {
  const PlaceOfFirstRun place(place_);
  const ModulePathScope modules(modules_ + (modules_.empty() ? "" : ".") + std::string(again_mark));
  const NoGrad recorded(true);
  std::vector<Tensor> inputs;
  for (const SavedTensor& saved : inputs_) {
    inputs.push_back(saved.unpack({}));
    if (saved.is_overwritten(inputs.back()))
      throw overwritten(*inputs.back().impl()->storage, "checkpoint", here_);
  }
  next_ = 0, failure_.reset();
  try {
    const DrawsAgain draws(draws_);
    const Running running(this, true);
    function_(inputs);
  } catch (const HasAll&) {
    return;
  }
  throw other_tensors("kept " + std::to_string(slots_.size()) +
                      " tensors for backward, the second call " + std::to_string(next_));
}

EagerError Checkpoint::other_tensors(const std::string& what) const {
  return EagerError(
      here_, "checkpoint: the function must do the same in both calls; the first call " + what +
                 "; is something counted or drawn outside of a Generator?");
}

// ---- functions ----

std::vector<Tensor> checkpoint(const Function& function, const std::vector<Tensor>& inputs,
                               Location here) {
  if (!function) throw EagerError(here, "checkpoint: there is no function");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined())
      throw EagerError(here, "checkpoint: input " + std::to_string(i) + " is an undefined tensor");
  if (!grad_enabled()) return function(inputs);
  const auto made = std::make_shared<Checkpoint>(function, inputs, here);
  end_complete_run();  // the inputs of a nested checkpoint may be all that the outer one lacked
  return made->run_first(inputs);
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input,
                  Location here) {
  if (!function) throw EagerError(here, "checkpoint: there is no function");
  const Function list = [function](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    return {function(inputs[0])};
  };
  return checkpoint(list, {input}, here)[0];
}

bool computes_again() {
  for (const Run* run = innermost; run != nullptr; run = run->outer)
    if (run->again) return true;
  return false;
}

void before_draw(const Tensor& state) {
  for (const Run* run = innermost; run != nullptr && !run->again; run = run->outer)
    run->checkpoint->add_draw(state);
}

}  // namespace taper::eager
