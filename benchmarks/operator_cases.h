// The calls of operators.json, ready to be made.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "taper/tests/golden/run_case.h"

namespace taper {

/// One line of the file, and its arguments filled with random numbers.
struct OperatorCase {
  std::string op;         ///< "add.Tensor"
  std::string arguments;  ///< as they stand in the file
  golden::Target target;
  std::unique_ptr<golden::Call> call;
  std::vector<eager::Boxed> given;  ///< the call's arguments, which a call may replace by casts

  std::vector<eager::Tensor> run() const {
    std::copy(given.begin(), given.end(), call->boxed());
    return golden::call(*call, target);
  }
  /// The tensor argument 0, or its first element; undefined if there is none.
  eager::Tensor first() const;
  /// What an ideal machine reads and writes: every tensor argument once, every result once. Of a
  /// table that is looked up only as much counts as the result takes.
  double bytes(const std::vector<eager::Tensor>& results) const;
  /// Multiply-adds of products and convolutions, twice; 0 for other operators.
  double flops(const std::vector<eager::Tensor>& results) const;
  /// Of the result, or of the argument where that is larger (a reduction).
  double elements(const eager::Tensor& result) const;
};

/// The file's calls in its order, named "op(arguments)"; then one of each pointwise row of tensors
/// that the file lacks.
class OperatorCases {
 public:
  explicit OperatorCases(const std::string& path);
  size_t count() const { return cases_.size(); }
  std::string name(size_t i) const;
  OperatorCase make(size_t i) const;
  /// Whether an operator has a call.
  bool has(const std::string& op) const;
  /// The operators that have none, and why.
  const std::map<std::string, std::string>& without() const { return without_; }

 private:
  std::vector<golden::Json> cases_;
  std::map<std::string, std::string> without_;
};

}  // namespace taper
