// The tracer, as eager sees it: it records the calls that eager would otherwise run.
#pragma once
#include <string>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/control_flow.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// Gets the calls of its thread instead of the kernels. exporter/trace implements it.
class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Records a call. The shape rule has given the types of the results and assumed `checks`. The
  /// results are traced tensors already; views share the storage of their source. The recorder
  /// keeps its own value for each result in `TensorImpl::trace_value`.
  virtual void record(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                      const std::vector<Check>& checks, Location here) = 0;
  /// Records a write of `source` into `base`, which is not a view. Both have the same sizes and
  /// dtype.
  virtual void write(const Tensor& base, const Tensor& source, Location here) = 0;
  /// A new symbol in [minimum, maximum] for the integer in the only element of `tensor`. The
  /// program reads it when it runs. `name` is a wish for the symbol's name; empty: any name.
  virtual Dim element(const Tensor& tensor, int64_t minimum, int64_t maximum,
                      const std::string& name, Location here) = 0;
  /// Records a branch (see `cond`). `pred` is one boolean. Both bodies run at once and are
  /// recorded. Returns the results, which are on no tape, and the other tensors that the bodies
  /// used.
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
  /// Names the value of `tensor`, which otherwise has the name of its operator. The first name
  /// counts.
  virtual void name(const Tensor& tensor, const std::string& name) = 0;
  /// Records an assumption about symbols that no call made. It is checked when the symbols are
  /// bound.
  virtual void assume(const Check& check) = 0;
  /// Tells that the gradient of a leaf is about to change. A trace restores it when it ends.
  virtual void keep_grad(const Tensor& leaf) = 0;
  /// Refuses a request for a number that is known only at run time. The message says what to do
  /// instead.
  [[noreturn]] virtual void refuse_value(const Tensor& tensor, Location here) = 0;
};

/// The recorder of this thread; nullptr if nothing is traced.
Recorder* recorder();

/// While a Recording lives, its recorder gets the calls of this thread.
class Recording {
 public:
  explicit Recording(Recorder* recorder);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* before_;
};

/// Names the module that is running, for reports: "features.3.conv". Modules make one around
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
/// The path of the modules that are running on this thread.
const std::string& module_path();

/// While it lives, this is the module path: the body of a graph may run in another place than where
/// it was written.
class ModulePathScope {
 public:
  explicit ModulePathScope(std::string modules);
  ~ModulePathScope();
  ModulePathScope(const ModulePathScope&) = delete;
  ModulePathScope& operator=(const ModulePathScope&) = delete;

 private:
  std::string before_;
};

/// Bounds of sizes that calls read from tensors, such as the number of true elements of a mask.
/// They hold for the calls that follow while the object lives. A call that knows closer bounds uses
/// its own. In a trace each such size becomes a symbol; `name` is a wish for its name.
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

/// The reverse: a number, perhaps a symbol, as a 0-dim tensor.
Tensor dim_as_tensor(Dim number, DType dtype, Location here = Location::current());

/// A new tensor for a traced value: it has storage of its own, but no elements.
Tensor traced_tensor(const TensorType<Dim>& type);

}  // namespace taper::eager
