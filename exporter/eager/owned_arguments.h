// Calls that are put together at run time, by the name of an overload. OwnedArguments keeps their
// arguments.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// An overload in PyTorch's sense: a row, or its in-place twin, which writes argument 0.
struct Overload {
  const OperatorInfo* info = nullptr;  ///< nullptr: there is no such row
  bool in_place = false;
};
/// Finds "add.Tensor", "add_.Tensor" or "relu_".
Overload find_overload(std::string_view name);

/// Boxes arguments and keeps them alive. Lists and texts stay at their addresses.
class OwnedArguments {
 public:
  OwnedArguments() = default;
  OwnedArguments(OwnedArguments&&) = default;
  OwnedArguments& operator=(OwnedArguments&&) = default;

  Boxed hold(Tensor tensor) { return Boxed::of(tensors_.emplace_back(std::move(tensor))); }
  Boxed hold(std::vector<Tensor> list) {
    return Boxed::of(tensor_lists_.emplace_back(std::move(list)));
  }
  Boxed hold(std::string text) {
    return Boxed::of(std::string_view(texts_.emplace_back(std::move(text))));
  }
  Boxed hold(std::vector<double> list) { return Boxed::of(reals_.emplace_back(std::move(list))); }
  /// A list of integers as the parameter takes it: symbolic or not. For `int[n]`, one integer
  /// stands for n.
  Boxed hold(const Parameter& parameter, Dims list);
  /// The parameter's default; absent if it has none.
  Boxed fallback(const Parameter& parameter);

 private:
  std::deque<Tensor> tensors_;
  std::deque<std::vector<Tensor>> tensor_lists_;
  std::deque<Dims> dims_;
  std::deque<Ints> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::string> texts_;
};

}  // namespace taper::eager
