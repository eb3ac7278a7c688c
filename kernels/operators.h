// The operator table as objects. To include this costs little, because a row is parsed only where
// it is named.
#pragma once
#include "taper/kernels/schema.h"

namespace taper {

/// What an operator is; see operators.def.
enum class Category : uint8_t { kernel, view, composite, symbolic, check };

/// An operator: its ATen schema. The table is open: users declare their own operators in the same
/// way, in their own namespace.
struct Operator {
  const char* identifier;  ///< "add_Tensor": what C++ calls it
  Category category;
  const char* text;  ///< the schema
};

/// FNV-1a, 64 bits.
constexpr uint64_t hash_of(std::string_view s) {
  uint64_t h = 14695981039346656037ull;
  for (char c : s) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  return h;
}
/// The hash of a row that a program stores beside the name. It shows whether the row has changed.
constexpr uint64_t schema_hash(const Operator& op) { return hash_of(op.text); }
/// PyTorch's name, which a program stores: "add.Tensor".
constexpr std::string_view name_of(const Operator& op) {
  const std::string_view text = op.text;
  return {op.text, text.find('(')};  // not substr: it may throw
}

namespace ops {
#define TAPER_OP(name, category, text) \
  inline constexpr Operator name{#name, Category::category, text};
#include "taper/kernels/operators.def"
#undef TAPER_OP
}  // namespace ops

/// The parsed row. It is instantiated only where it is named.
template <const Operator& op>
inline constexpr Schema schema = parse_schema(op.text);

}  // namespace taper
