#include "taper/exporter/passes/function_tables.h"

#include <numeric>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/pointwise.h"

namespace taper::passes {

using eager::Tensor;
using ir::Value;

namespace {
/// Equal sizes, whatever the dtypes.
bool has_sizes_of(const ir::Type& a, ir::Type b) {
  b.dtype = a.dtype;
  return ir::same_sizes(a, b);
}
}  // namespace

bool FunctionTable::is_number(const Value* value) {
  return constants_.find(value) && same(constants_.at(value).numel(), 1);
}

bool FunctionTable::collect(const Value* value, std::optional<Dequantized>& argument) {
  if (const auto [at, is_new] = collected_.try_emplace(value, true); !is_new) return at->second;
  const auto fits = [&] {
    if (const auto leaf = dequantized(value, constants_)) {
      if (!argument) argument = leaf;
      return leaf->integers == argument->integers && leaf->numbers == argument->numbers;
    }
    const ir::Node* node = value->node;
    constexpr size_t most_values = 100;
    if (node == nullptr || !ir::is_pointwise(*node->op) || node->results.size() != 1 ||
        collected_.size() > most_values)
      return false;
    bool is_function = true;
    for (const ir::Argument& a : node->arguments)
      ir::for_each_dim(a, [&](Dim d) { is_function = is_function && d.is_constant(); });
    ir::for_each_value(*node, [&](const Value* v) {
      is_function = is_function && (is_number(v) || collect(v, argument));
    });
    return is_function && argument && has_sizes_of(value->type, argument->integers->type);
  };
  return collected_[value] = fits();
}

std::optional<Dequantized> FunctionTable::argument_of(const Value* value) {
  collected_.clear();
  std::optional<Dequantized> argument;
  if (!collect(value, argument)) return {};
  return argument;
}

Tensor FunctionTable::evaluate(const Value* value, const Dequantized& argument) {
  if (const auto at = evaluated_.find(value); at != evaluated_.end()) return at->second;
  Tensor result;
  const ir::Node* node = value->node;
  if (constants_.knows(value)) {
    result = constants_.at(value);
    if (result.rank() > 0) result = result.reshape({1});
  } else if (dequantized(value, constants_)) {
    std::vector<int8_t> all(256);
    std::iota(all.begin(), all.end(), static_cast<int8_t>(-128));
    const Quantization& q = argument.numbers;
    result = eager::call<ops::quantized_decomposed_dequantize_per_tensor>(
        node->location, Tensor::from(all, {256}), q.scale, q.zero_point, q.low, q.high, DType::i8,
        std::nullopt);
  } else {
    const eager::OperatorInfo& info = eager::info_of(*node->op);
    ir::BoxedArguments arguments(info, node->arguments,
                                 [&](Value* v) { return evaluate(v, argument); });
    eager::dispatch(info, arguments.data(), &result, node->location);
  }
  return evaluated_[value] = result;
}

std::vector<int8_t> FunctionTable::table(const Value* value, const Dequantized& argument,
                                         const Quantization& result) {
  eager::NoGrad guard;
  evaluated_.clear();
  const Tensor y = evaluate(value, argument);
  return eager::call<ops::quantized_decomposed_quantize_per_tensor>(
             Location::current(), y, result.scale, result.zero_point, result.low, result.high,
             DType::i8)
      .to_vector<int8_t>();
}

}  // namespace taper::passes
