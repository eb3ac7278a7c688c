// The recorder behind `trace`.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/ir/graph.h"

namespace taper {

/// Turns writes in place into new values while it records. A storage has one current value, and a
/// write gives it a new one. A view that was taken before the write follows its chain again from
/// the new value (eager/alias.h).
///
/// A tracer of its own records each body of a branch or loop. A tensor from outside that the body
/// uses becomes an input of the body.
class Tracer final : public eager::Recorder {
 public:
  explicit Tracer(ir::Graph& graph);
  /// A tracer for a body inside the graph that `outside` traces.
  Tracer(ir::Graph& graph, Tracer& outside);
  ~Tracer() override;

  /// A tensor that stands for an input.
  eager::Tensor add_input(const std::string& name, const eager::Dims& sizes, DType dtype);
  /// A tensor that stands for a value of the graph.
  eager::Tensor stand_for(ir::Value* value);
  /// The value that a tensor has in the graph at this moment.
  ir::Value* value_of(const eager::Tensor& tensor, Location here);
  /// Records the writes to states. Call it once, at the end.
  void finish();
  /// The place of the last operator that was recorded. Errors without a place of their own name it.
  Location last() const { return last_; }

  std::vector<eager::Tensor> branch(const eager::Tensor& pred,
                                    const std::vector<eager::Tensor>& operands,
                                    const eager::Body& then, const eager::Body& otherwise,
                                    std::vector<eager::Tensor>& captured, Location here) override;
  std::vector<eager::Tensor> loop(const std::vector<eager::Tensor>& carried,
                                  const eager::Body& condition, const eager::Body& body,
                                  std::vector<eager::Tensor>& captured, Location here) override;
  std::vector<eager::Tensor> types_of(const eager::Body& body,
                                      const std::vector<eager::Tensor>& inputs,
                                      std::vector<eager::Tensor>& captured, Location here) override;
  void name(const eager::Tensor& tensor, const std::string& name) override;

  void record(const eager::OperatorInfo& info, const eager::Boxed* arguments,
              eager::Tensor* results, const std::vector<Check>& checks, Location here) override;
  void write(const eager::Tensor& base, const eager::Tensor& source, Location here) override;
  Dim element(const eager::Tensor& tensor, int64_t minimum, int64_t maximum,
              const std::string& name, Location here) override;
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
    bool untouched = false;  ///< lazy zeros, when they were captured
  };
  /// The object that `TensorImpl::trace_value` points to.
  struct Seen {
    uint64_t tracer;  ///< its number: a later tracer may have its address
    ir::Value* value;
    uint64_t generation;
  };
  /// The recorded body.
  struct Recorded {
    std::unique_ptr<ir::Graph> graph;
    std::vector<eager::Tensor> results;   ///< traced in the body
    std::vector<eager::Tensor> captured;  ///< beside the inputs that follow those given
  };
  Recorded record_body(const char* name, const eager::Body& body,
                       const std::vector<eager::Tensor>& inputs,
                       const std::vector<eager::Tensor>& captured_before, Location here);
  /// Adds the inputs that later bodies captured to a body that was recorded before them.
  static void add_missing_inputs(Recorded& body, const std::vector<eager::Tensor>& captured);
  std::vector<eager::Tensor> finish_control(const Operator& op, std::vector<ir::Argument> arguments,
                                            Recorded first, Recorded second, Location here);
  std::vector<ir::Value*> operand_values(const std::vector<eager::Tensor>& tensors, Location here);
  eager::Tensor track_result(ir::Value* value);
  Track& capture_from_outside(const eager::Tensor& base, Location here);
  Track& track_of(const eager::Tensor& tensor, Location here);
  Track& capture(const eager::Tensor& base, Location here);
  void remember(const eager::Tensor& tensor, ir::Value* value, uint64_t generation);
  void add_check(const Check& check, Location here);
  bool is_declared(const Symbol* symbol) const;
  std::string name_of_element(const std::string& wanted);
  ir::Argument argument(const Parameter& parameter, const eager::Boxed& boxed, Location here);

  ir::Graph& graph_;
  Tracer* const outside_ = nullptr;          ///< of a body
  std::vector<eager::Tensor> from_outside_;  ///< of a body: what became inputs, in order
  const uint64_t id_;
  using Names = std::set<std::string>;
  Names own_names_;
  Names& names_;  ///< of symbols made of elements: unique in the whole method
  std::unordered_map<const eager::Storage*, Track> tracks_;
  std::vector<Track*> captured_;  // in the order of capture
  std::vector<std::pair<eager::Tensor, eager::Tensor>> gradients_before_;
  std::unordered_map<const eager::TensorImpl*, size_t> kept_;
  Location last_;
};

}  // namespace taper
