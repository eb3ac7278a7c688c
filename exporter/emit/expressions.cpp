#include "taper/exporter/emit/expressions.h"

namespace taper::emit {
namespace {

format::Operation operation_of(DimKind kind) {
  switch (kind) {
    case DimKind::constant:
      return format::Operation::literal;
    case DimKind::symbol:
      return format::Operation::symbol;
    case DimKind::add:
      return format::Operation::add;
    case DimKind::multiply:
      return format::Operation::multiply;
    case DimKind::floor_div:
      return format::Operation::floor_divide;
    case DimKind::modulo:
      return format::Operation::modulo;
    case DimKind::min:
      return format::Operation::minimum;
    case DimKind::max:
      return format::Operation::maximum;
  }
  return format::Operation::literal;
}

format::Operation operation_of(Comparison comparison) {
  switch (comparison) {
    case Comparison::equal:
      return format::Operation::equal;
    case Comparison::not_equal:
      return format::Operation::not_equal;
    case Comparison::less:
      return format::Operation::less;
    case Comparison::less_equal:
      return format::Operation::less_equal;
  }
  return format::Operation::equal;
}

}  // namespace

ExpressionTable::ExpressionTable(const std::vector<ir::SymbolBinding>& bindings) {
  for (size_t i = 0; i < bindings.size(); ++i)
    symbols_.emplace(bindings[i].symbol.as_symbol(), static_cast<uint32_t>(i));
}

uint32_t ExpressionTable::symbol_index(const Symbol* symbol) const {
  auto at = symbols_.find(symbol);
  if (at == symbols_.end())
    throw ExportError(
        "the symbol " + symbol->name +
        " has no source: it must be an extent of an input, an input, or an element of a tensor");
  return at->second;
}

uint32_t ExpressionTable::append(format::Operation operation, uint32_t a, uint32_t b,
                                 format::NumberType type) {
  list_.emplace_back(0, a, b, 0, operation, type);
  return static_cast<uint32_t>(list_.size() - 1);
}

uint32_t ExpressionTable::add(Dim dim) {
  if (auto at = index_.find(dim); at != index_.end()) return at->second;
  const Dim::Parts parts = dim.parts();
  uint32_t index;
  if (parts.kind == DimKind::constant) {
    list_.emplace_back(parts.value, 0, 0, 0, format::Operation::literal, format::NumberType::i64);
    index = static_cast<uint32_t>(list_.size() - 1);
  } else if (parts.kind == DimKind::symbol) {
    index =
        append(format::Operation::symbol, symbol_index(parts.symbol), 0, format::NumberType::i64);
  } else {
    index = add(parts.operands[0]);
    for (size_t i = 1; i < parts.operands.size(); ++i) {
      const uint32_t operand = add(parts.operands[i]);
      index = append(operation_of(parts.kind), index, operand, format::NumberType::i64);
    }
  }
  index_.emplace(dim, index);
  return index;
}

uint32_t ExpressionTable::add(const Check& check) {
  const uint32_t left = add(check.left), right = add(check.right);
  return append(operation_of(check.comparison), left, right, format::NumberType::boolean);
}

uint32_t ExpressionTable::add_boolean_symbol(uint32_t index) {
  return append(format::Operation::symbol, index, 0, format::NumberType::boolean);
}

}  // namespace taper::emit
