// What the sizes and the elements of values say about the symbols of the file.
#include <algorithm>

#include "taper/exporter/dim/check.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/expression.h"
#include "taper/exporter/ir/parser.h"

namespace taper::pt2 {

using eager::Tensor;

// The symbol in an expression such as "Symbol('u0', integer=True)".
ElementSymbol Executor::element_in(std::string_view expression) const {
  const std::optional<std::string> symbol = symbol_in(expression);
  const auto found = symbol ? assumptions_.elements.find(*symbol) : assumptions_.elements.end();
  return found == assumptions_.elements.end() ? ElementSymbol{} : found->second;
}

// The symbol for the size of a result that an operator counts.
ElementSymbol Executor::element_in_results(const Node& node) const {
  for (const Argument& output : node.outputs) {
    const auto* tensor = std::get_if<TensorName>(&output);
    const auto at =
        tensor == nullptr ? graph_.tensor_values.end() : graph_.tensor_values.find(tensor->name);
    if (at == graph_.tensor_values.end()) continue;
    for (const SymInt& size : at->second.sizes)
      if (const auto* text = std::get_if<std::string>(&size);
          text != nullptr && text->starts_with("Symbol('u"))
        return element_in(*text);
  }
  return {};
}

void require(const Promise& promise, const std::map<std::string, Dim>& symbols) {
  for (const auto& [name, symbol] : promise.symbols)
    if (!symbols.contains(symbol)) return;
  const Dim value = ir::parse_dim(promise.text, [&](std::string_view name) {
    return symbols.at(promise.symbols.at(std::string(name)));
  });
  const auto& [low, high] = promise.bounds;
  const std::string message = promise.text + " must lie in " + std::to_string(low) + ".." +
                              std::to_string(high) + ", because --dim said so at export";
  for (const Check& check : {Check{Comparison::less_equal, low, value, message},
                             Check{Comparison::less_equal, value, high, message}}) {
    if (refutes(check)) throw ExportError(message + ", but is " + value.to_string());
    if (eager::Recorder* recorder = eager::recorder(); recorder != nullptr && !proves(check))
      recorder->assume(check);
  }
}

void Executor::learn(const SymInt& expression, Dim value) {
  const auto* text = std::get_if<std::string>(&expression);
  const std::optional<std::string> symbol = text != nullptr ? symbol_in(*text) : std::nullopt;
  if (!symbol || !symbols_.emplace(*symbol, value).second) return;
  for (const Promise& promise : assumptions_.promises)
    if (std::ranges::any_of(promise.symbols,
                            [&](const auto& name) { return name.second == *symbol; }))
      require(promise, symbols_);
}

void Executor::learn_sizes(const std::string& name, const Tensor& tensor) {
  const auto at = graph_.tensor_values.find(name);
  if (at == graph_.tensor_values.end()) return;
  const std::vector<SymInt>& sizes = at->second.sizes;
  const size_t outer = levels_of(name).size();  // the file records the sizes behind the levels
  for (size_t d = 0; d < sizes.size() && static_cast<int>(d + outer) < tensor.rank(); ++d)
    learn(sizes[d], tensor.size(static_cast<int64_t>(d + outer)));
}

}  // namespace taper::pt2
