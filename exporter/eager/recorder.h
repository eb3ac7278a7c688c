// The tracer as eager sees it: another interpretation of the same calls.
#pragma once
#include <string>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/control_flow.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// Receives calls in place of the kernels, on the thread that installed it. exporter/trace
/// implements it.
class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Records a call. The shape rule gave the types of the results and assumed `checks`. The results
  /// are already traced tensors; views share the storage of their source. The recorder keeps its
  /// value for each result in `TensorImpl::trace_value`.
  virtual void record(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                      const std::vector<Check>& checks, Location here) = 0;
  /// `base`, which is not a view, has been given the value of `source` (same sizes and dtype) in
  /// place.
  virtual void write(const Tensor& base, const Tensor& source, Location here) = 0;
  /// The integer in the only element of `tensor` as a new symbol in [minimum, maximum], which the
  /// program reads when it runs. `name` is what the symbol should be called; empty: any name.
  virtual Dim element(const Tensor& tensor, int64_t minimum, int64_t maximum,
                      const std::string& name, Location here) = 0;
  /// Records a branch (see `cond`); `pred` is one boolean. Returns the results, which are on no
  /// tape, and the other tensors that the bodies used. Both bodies run at once and are recorded.
  virtual std::vector<Tensor> branch(const Tensor& pred, const std::vector<Tensor>& operands,
                                     const Body& then, const Body& otherwise,
                                     std::vector<Tensor>& captured, Location here) = 0;
  /// Records a loop, see `while_loop`; `condition` gives one boolean.
  virtual std::vector<Tensor> loop(const std::vector<Tensor>& carried, const Body& condition,
                                   const Body& body, std::vector<Tensor>& captured,
                                   Location here) = 0;
  /// The results of a body for inputs like these, as tensors without values. Records nothing.
  virtual std::vector<Tensor> types_of(const Body& body, const std::vector<Tensor>& inputs,
                                       std::vector<Tensor>& captured, Location here) = 0;
  /// A name for the value of `tensor`, in place of the name of its operator. The first name counts.
  virtual void name(const Tensor& tensor, const std::string& name) = 0;
  /// An assumption about symbols that comes from no call. It is checked when the symbols are bound.
  virtual void assume(const Check& check) = 0;
  /// The gradient of a leaf is about to change. A trace puts it back when it ends.
  virtual void keep_grad(const Tensor& leaf) = 0;
  /// Somebody asked for a number that is known only at run time. Throws, and says what to do
  /// instead.
  [[noreturn]] virtual void refuse_value(const Tensor& tensor, Location here) = 0;
};

/// The recorder of this thread, nullptr when nothing is traced.
Recorder* recorder();

/// Installs a recorder while it lives.
class Recording {
 public:
  explicit Recording(Recorder* recorder);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* before_;
};

/// Names the module that runs, for reports: "features.3.conv". Modules install one around
/// `forward`.
class ModuleScope {
 public:
  explicit ModuleScope(const std::string& name);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  size_t length_before_;
};
/// The path of the modules that run on this thread.
const std::string& module_path();

/// Replaces the module path while it lives: the body of a graph may run elsewhere than it was
/// written.
class ModulePathScope {
 public:
  explicit ModulePathScope(std::string modules);
  ~ModulePathScope();
  ModulePathScope(const ModulePathScope&) = delete;
  ModulePathScope& operator=(const ModulePathScope&) = delete;

 private:
  std::string before_;
};

/// Bounds of sizes that calls read from the elements of tensors, such as the number of true
/// elements of a mask. They hold for the calls that follow while it lives. A call that knows closer
/// bounds uses its own.
/// In a trace each number becomes a symbol; `name` is what the symbol should be called.
class CountBounds {
 public:
  CountBounds(int64_t minimum, int64_t maximum, std::string name = {});
  ~CountBounds();
  CountBounds(const CountBounds&) = delete;
  CountBounds& operator=(const CountBounds&) = delete;

 private:
  int64_t minimum_before_, maximum_before_;
  std::string name_before_;
};
/// The integer in the only element of `tensor`, for use as a size. In a trace it is a symbol that
/// lies in [minimum, maximum] and in the `CountBounds` of this thread.
Dim element_as_dim(const Tensor& tensor, int64_t minimum, int64_t maximum,
                   Location here = Location::current());

/// The other way: a number, perhaps a symbol, as a 0-dim tensor.
Tensor dim_as_tensor(Dim number, DType dtype, Location here = Location::current());

/// A new tensor of a traced value: its own storage, no elements.
Tensor traced_tensor(const TensorType<Dim>& type);

}  // namespace taper::eager
