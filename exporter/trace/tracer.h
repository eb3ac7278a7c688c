// The recorder behind `trace`.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/ir/graph.h"

namespace taper {

/// Functionalizes while it records: a storage has one current value, a write gives it a new one,
/// and a view that was taken before the write follows its chain again from the new value
/// (eager/alias.h).
class Tracer final : public eager::Recorder {
 public:
  explicit Tracer(ir::Graph& graph);
  ~Tracer() override;

  /// A tensor that stands for an input.
  eager::Tensor add_input(const std::string& name, const eager::Dims& sizes, DType dtype);
  /// The graph's value of a tensor at this moment.
  ir::Value* value_of(const eager::Tensor& tensor, Location here);
  /// Records the writes to states. Call it once, at the end.
  void finish();
  /// The last operator that was recorded: where errors without a place of their own happened.
  Location last() const { return last_; }

  void record(const eager::OperatorInfo& info, const eager::Boxed* arguments,
              eager::Tensor* results, const std::vector<Check>& checks, Location here) override;
  void write(const eager::Tensor& base, const eager::Tensor& source, Location here) override;
  Dim element(const eager::Tensor& tensor, int64_t minimum, int64_t maximum,
              Location here) override;
  void assume(const Check& check) override;
  void keep_grad(const eager::Tensor& leaf) override;
  [[noreturn]] void refuse_value(const eager::Tensor& tensor, Location here) override;

 private:
  struct Track {
    std::shared_ptr<eager::Storage> storage;  // kept alive: its address is the key
    eager::Tensor base;
    ir::Value* current = nullptr;
    ir::State* state = nullptr;  // of a tensor from before the trace
    uint64_t generation = 0;     // counts writes
    bool written = false;
  };
  /// What `TensorImpl::trace_value` points to.
  struct Seen {
    uint64_t tracer;  ///< its number: a later tracer may have its address
    ir::Value* value;
    uint64_t generation;
  };
  Track& track_of(const eager::Tensor& tensor, Location here);
  Track& capture(const eager::Tensor& base, Location here);
  void remember(const eager::Tensor& tensor, ir::Value* value, uint64_t generation);
  ir::Argument argument(const Parameter& parameter, const eager::Boxed& boxed, Location here);

  ir::Graph& graph_;
  const uint64_t id_;
  int elements_ = 0;  ///< symbols made of elements
  std::unordered_map<const eager::Storage*, Track> tracks_;
  std::vector<Track*> captured_;  // in the order of capture
  std::vector<std::pair<eager::Tensor, eager::Tensor>> gradients_before_;
  std::unordered_map<const eager::TensorImpl*, size_t> kept_;
  Location last_;
};

}  // namespace taper
