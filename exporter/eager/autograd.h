// The tape. An operator that runs on tensors that want gradients records a Node. `backward` visits
// the nodes from the newest to the oldest and gives each node its gradient.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/kept_tensor.h"
#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/eager/small_vector.h"

namespace taper::eager {

/// One gradient for each tensor argument, in the row's order. Each element of a list counts as one
/// argument; so does an absent optional argument. An undefined tensor means: no gradient. If the
/// operator broadcast an argument, the engine sums its gradient down to the argument's shape. It
/// also casts the gradient to the argument's dtype.
using Gradients = std::vector<Tensor>;

class SavedCall;

/// Where a gradient goes: input `index` of `node`.
struct Edge {
  std::shared_ptr<Node> node;
  int index = 0;
};

/// One differentiable call on the tape.
class Node {
 public:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Takes the gradients of the results and returns the gradients of the inputs, one for each edge.
  /// An undefined tensor means: no gradient.
  virtual Gradients backward(const Gradients& results) = 0;
  /// "add.Tensor", for people.
  virtual std::string name() const = 0;
  virtual Location here() const { return {}; }
  /// Frees what was saved for backward.
  virtual void release() {}
  /// Frees what a checkpoint computed again; another backward computes it once more.
  virtual void forget() {}
  /// The gradient of input `i`, in that input's own shape and dtype: undoes the broadcast and the
  /// promotion.
  virtual Tensor fit(size_t, const Tensor& gradient) const { return gradient; }
  /// Whether this node adds up the gradient of a leaf. Such a node runs last, and `grad` finds the
  /// leaf's gradient there.
  virtual bool is_accumulator() const { return false; }

  uint64_t sequence() const { return sequence_; }  ///< later nodes have greater numbers
  SmallVector<Edge, 3> edges;  ///< of each input, an empty one if nobody wants its gradient
  int result_count = 1;
  std::vector<std::function<Tensor(const Tensor&)>> hooks;  ///< of result `hook_results[i]`
  std::vector<int> hook_results;
  std::vector<std::weak_ptr<TensorImpl>> retains;  ///< tensors whose gradient is kept
  std::vector<int> retain_results;

 private:
  uint64_t sequence_;
};

/// A tensor's part in autograd.
struct Autograd {
  bool requires_grad = false;  ///< of a leaf
  bool retains_grad = false;
  std::shared_ptr<Node> grad_fn;    ///< nullptr: a leaf
  int result = 0;                   ///< which result of `grad_fn` this is
  std::weak_ptr<Node> accumulator;  ///< of a leaf: the node that adds to `grad`
  std::vector<std::function<Tensor(const Tensor&)>> hooks;  ///< of a leaf
  Tensor grad;
  uint64_t generation =
      0;  ///< of a base: counts the writes that changed its `grad_fn`; its views follow
};

/// The tensor's part. It is made if the tensor has none.
inline Autograd& autograd_of(const Tensor& t) {
  auto& a = t.impl()->autograd;
  if (!a) a = std::make_unique<Autograd>();
  return *a;
}

/// A tensor that is kept for backward, with its place on the tape.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// An argument of the call.
  explicit SavedTensor(const Tensor& tensor);
  /// Result `result` of the node that keeps it. The link to the node is left out; otherwise the
  /// node would keep itself alive.
  SavedTensor(const Tensor& tensor, int result);
  /// The tensor as it was, on the tape. A result needs `owner`, the node that keeps it.
  Tensor unpack(const std::weak_ptr<Node>& owner) const;
  /// Whether somebody wrote the elements of the tensor that `unpack` gave since it was kept.
  bool is_overwritten(const Tensor& unpacked) const;
  void forget() const { kept_.forget(); }

 private:
  KeptTensor kept_;
  std::shared_ptr<Node> grad_fn_;
  int result_ = 0;
  bool is_result_ = false;
};

/// The arguments of a call, kept for backward. It keeps the sizes and dtypes of all tensors, and
/// the tensors that the derivative asks for.
class SavedCall {
 public:
  SavedCall(const OperatorInfo& info, const Boxed* arguments, const Tensor* results,
            const Location& here, Node* owner);
  /// Keeps the results that the derivative asks for. `owner` is the node of this call.
  void save_results(const Tensor* results, const std::shared_ptr<Node>& owner);

  const OperatorInfo& info() const { return *info_; }
  Location here() const { return here_; }
  /// The arguments, but their tensors are empty.
  const Boxed* arguments() const { return boxed_.data(); }
  /// What was saved of an argument or a result; undefined if it was absent.
  Tensor tensor(int argument) const;
  std::vector<Tensor> tensors(int argument) const;
  Tensor result(int k) const;
  /// Whether anybody wants the gradient of an argument; of a list, the gradient of any element.
  bool needs(int argument) const;

  /// Sizes and dtype of a tensor argument, or of an element of a list.
  Dims sizes(int argument, int element = 0) const { return sizes_of(first_[argument] + element); }
  DType dtype(int argument) const { return types_[static_cast<size_t>(first_[argument])].dtype; }
  /// The type of a view's source as it was, with strides and offset.
  TensorType<Dim> source_type() const;
  int element_count(int argument) const { return first_[argument + 1] - first_[argument]; }
  /// The sizes of tensor i. It counts all tensors, those in lists one by one.
  std::span<const Dim> input_sizes(size_t i) const {
    return {extents_.data() + types_[i].first, static_cast<size_t>(types_[i].rank)};
  }
  DType input_dtype(size_t i) const { return types_[i].dtype; }
  /// The sizes of result k, for the gradient of a result that nobody used.
  Dims result_sizes(int k) const { return sizes_of(first_[info_->argument_count] + k); }
  DType result_dtype(int k) const {
    return types_[static_cast<size_t>(first_[info_->argument_count] + k)].dtype;
  }
  void release();
  void forget() const;

 private:
  struct Type {
    DType dtype = DType::f32;
    int8_t rank = 0;
    uint32_t first = 0;  // in extents_: the sizes; of a view's source then strides and offset
  };
  void add_type(const Tensor* tensor);
  void add_layout(const Tensor& tensor);
  Dims sizes_of(int i) const {
    const auto s = input_sizes(static_cast<size_t>(i));
    return {s.begin(), s.end()};
  }
  const SavedTensor& saved(int argument, int element) const;
  Tensor unpacked(const SavedTensor& saved) const;
  const OperatorInfo* info_;
  Location here_;
  Node* owner_;
  bool released_ = false;
  int8_t first_[Schema::max_parameters + 1];  // of each argument: the index of its first tensor
  SmallVector<Boxed, 4> boxed_;
  std::vector<Dims> dims_;  // what the lists in boxed_ point to
  std::vector<Ints> integers_;
  std::vector<std::vector<double>> reals_;
  std::vector<std::string> texts_;
  SmallVector<Type, 4> types_;  // of the tensors of all arguments, then of the results
  SmallVector<Dim, 8> extents_;
  SmallVector<SavedTensor, 2> tensors_;  // of the first arguments, as far as some are saved
  SmallVector<SavedTensor, 1> results_;
  std::weak_ptr<Node> history_;  // of results_: the owner; counted only where some are saved
};

// ---- modes ----

/// Whether this thread records operators on the tape.
bool grad_enabled();

/// While a NoGrad lives, this thread records nothing on the tape: `NoGrad guard;`
class NoGrad {
 public:
  explicit NoGrad(bool enabled = false);
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
/// Calls a function without the tape: `no_grad([&] { … })`
template <class F>
auto no_grad(F&& f) {
  NoGrad guard;
  return f();
}

/// While it lives, `backward` checks every gradient for NaN. The error names the forward line whose
/// derivative made the first NaN.
class DetectAnomaly {
 public:
  DetectAnomaly();
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool before_;
};

// ---- functions ----

/// d(sum of outputs · grad_outputs) / d(inputs). Does not change any `grad()`. An undefined element
/// of `grad_outputs` stands for 1; its output must have one element. If the outputs do not depend
/// on an input, `grad` throws; with `allow_unused`, the gradient of that input is undefined.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs = {}, bool create_graph = false,
                         bool retain_graph = false, bool allow_unused = false,
                         Location here = Location::current());

/// The graph that computed a tensor: one line for each node, the newest first.
std::string graph_of(const Tensor& tensor);

/// A user's differentiable function. The tape does not record `forward`. `backward` gets the
/// gradient of each result and returns a gradient for each input.
struct CustomFunction {
  std::string name;
  std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> forward;
  std::function<Gradients(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                          const Gradients& result_gradients)>
      backward;
};
std::vector<Tensor> apply(const CustomFunction& function, const std::vector<Tensor>& inputs,
                          Location here = Location::current());

/// Compares gradients with central differences, in f64. Returns what differs and where; an empty
/// string if nothing differs.
std::string gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                      const std::vector<Tensor>& inputs, double eps = 1e-6, double atol = 1e-5,
                      double rtol = 1e-3);
/// The same for second derivatives.
std::string gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, double eps = 1e-6, double atol = 1e-5,
                          double rtol = 1e-3);

// ---- for dispatch ----

/// The edge that a gradient of this tensor takes; an empty one if it wants none.
Edge gradient_edge(const Tensor& tensor);
/// Records a call on the tape: gives `results` their `grad_fn`.
void record_on_tape(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                    const Location& here);
/// Gives `tensor` the history of `source`, which has the same values.
void take_history(const Tensor& tensor, const Tensor& source);
/// The gradient of an argument that was broadcast or promoted, in the argument's own sizes and
/// dtype.
Tensor fit_gradient(const Tensor& gradient, std::span<const Dim> sizes, DType dtype);
/// The tensor that a hook returned in place of a gradient. Throws EagerError if its sizes or dtype
/// differ from those of the gradient.
Tensor checked_replacement(const Tensor& gradient, const Tensor& replaced, const Location& here);
/// The error for a kept value that was overwritten. The message names the write, and the call of
/// `user` that needs the value.
EagerError overwritten(const Storage& storage, const std::string& user, const Location& here);
/// A new handle on the same elements, off the tape.
Tensor shallow(const Tensor& tensor);

}  // namespace taper::eager
