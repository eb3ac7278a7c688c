// Converts symbolic numbers to the expression table of the file. Internal to the writer.
#pragma once
#include <unordered_map>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/schema/program_generated.h"

namespace taper::emit {

class ExpressionTable {
 public:
  /// Symbol i of the method is `bindings[i].symbol`.
  explicit ExpressionTable(const std::vector<ir::SymbolBinding>& bindings);

  /// The index of an i64 expression. Throws ExportError for a symbol without a source.
  uint32_t add(Dim dim);
  /// The index of a boolean expression.
  uint32_t add(const Check& check);
  /// An expression that is symbol `index` of the method, a boolean.
  uint32_t add_boolean_symbol(uint32_t index);
  uint32_t symbol_index(const Symbol* symbol) const;

  const std::vector<format::Expression>& list() const { return list_; }

 private:
  struct Hash {
    size_t operator()(Dim d) const { return d.hash(); }
  };
  struct Same {
    bool operator()(Dim a, Dim b) const { return same(a, b); }
  };
  uint32_t append(format::Operation operation, uint32_t a, uint32_t b, format::NumberType type);

  std::unordered_map<const Symbol*, uint32_t> symbols_;
  std::unordered_map<Dim, uint32_t, Hash, Same> index_;
  std::vector<format::Expression> list_;
};

}  // namespace taper::emit
