#include <algorithm>
#include <cstring>
#include <random>

#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/inspect/program_text.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/program/expressions.h"
#include "taper/runtime/program/tables.h"

namespace taper::cli {
namespace {

const format::Method& table_of(const RunningMethod& running) {
  return *running.program().table().methods()->Get(static_cast<uint32_t>(running.index()));
}

// The value of every symbol that is an extent of an input; 0 for other symbols.
std::vector<int64_t> symbol_values(const RunningMethod& running,
                                   const std::map<std::string, int64_t>& chosen) {
  const format::Method& m = table_of(running);
  const inspect::MethodText text(running.program(), running.index());
  std::vector<int64_t> values;
  std::vector<std::string> names, places;
  for (uint32_t i = 0; i < internal::count_of(m.symbols()); ++i) {
    const format::Symbol& s = *m.symbols()->Get(i);
    values.push_back(std::clamp<int64_t>(1, s.minimum(), s.maximum()));
    names.push_back(text.symbol(i)), places.push_back(text.symbol_place(s));
    const auto by_name = chosen.find(names.back());
    const auto at = by_name == chosen.end() ? chosen.find(places.back()) : by_name;
    if (at == chosen.end()) continue;
    if (at->second < s.minimum() || at->second > s.maximum())
      throw ExportError(names.back() + " = " + std::to_string(at->second) + " is outside " +
                        std::to_string(s.minimum()) + ".." + std::to_string(s.maximum()));
    values.back() = at->second;
  }
  for (const auto& [name, value] : chosen)
    if (std::ranges::find(names, name) == names.end() &&
        std::ranges::find(places, name) == places.end())
      throw ExportError("the method has no symbolic size " + name + "; " +
                        (names.empty() ? "all its sizes are fixed"
                                       : "its symbolic sizes are " + io::joined(names)));
  return values;
}

// The values of the method's expressions for these symbols. Expressions with symbols that are known
// only in a run stay 0.
std::vector<int64_t> expression_values(const format::Method& m,
                                       const std::vector<int64_t>& symbols) {
  const Span<const format::Expression> expressions = internal::span_of(m.expressions());
  std::vector<int64_t> values(static_cast<size_t>(expressions.size()), 0);
  for (size_t i = 0; i < values.size(); ++i)
    (void)internal::evaluate(expressions.data(), i, symbols.data(), values.data(), values[i]);
  return values;
}

// Uniform in [-1, 1). Zeros would not do, because a processor may multiply them faster, and large
// values would overflow in a deep model.
void fill_randomly(const TensorRef& tensor, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  const index_t n = tensor.shape->numel();
  const auto fill = [&](auto* elements) {
    for (index_t i = 0; i < n; ++i)
      elements[i] = static_cast<std::remove_reference_t<decltype(*elements)>>(uniform(random));
  };
  switch (tensor.dtype) {
    case DType::c64: {
      for (index_t i = 0; i < n; ++i) {
        Complex64& z = static_cast<Complex64*>(tensor.data)[i];
        z.real = uniform(random), z.imag = uniform(random);
      }
      return;
    }
    case DType::f16:
      return fill(static_cast<Half*>(tensor.data));
    case DType::bf16:
      return fill(static_cast<BFloat16*>(tensor.data));
    case DType::f32:
      return fill(static_cast<float*>(tensor.data));
    case DType::f64:
      return fill(static_cast<double*>(tensor.data));
    default:
      std::memset(tensor.data, 0, static_cast<size_t>(tensor.size_bytes()));
  }
}

}  // namespace

void set_random_inputs(RunningMethod& running, const std::vector<index_t>& indices,
                       const std::map<std::string, int64_t>& symbols) {
  const std::vector<int64_t> symbol_value = symbol_values(running, symbols);
  const std::vector<int64_t> values = expression_values(table_of(running), symbol_value);
  std::mt19937 random(0);
  Method& method = running.method();
  for (const index_t i : indices) {
    const format::Method& m = table_of(running);
    const format::Input& input = *m.inputs()->Get(static_cast<uint32_t>(i));
    if (input.value() == internal::none) {
      running.require(method.set_number(
          i, input.symbol() == internal::none ? int64_t{1} : symbol_value[input.symbol()]));
      continue;
    }
    const format::Shape& shape = *m.shapes()->Get(m.values()->Get(input.value())->shape());
    std::vector<index_t> sizes;
    for (uint32_t d = 0; d < shape.rank(); ++d)
      sizes.push_back(static_cast<index_t>(values[m.dims()->Get(shape.dims_first() + d)]));
    running.require(method.resize_input(i, sizes));
    fill_randomly(method.input(i), random);
  }
}

}  // namespace taper::cli
