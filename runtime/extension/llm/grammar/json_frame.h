#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/grammar/json_schema.h"

namespace taper::llm::json_text {

/// A schema that applies to a value, and what its verdict means to the value outside.
struct Root {
  enum class Role : uint8_t { needed, contained };
  SchemaId schema;
  Role role;
  uint32_t outer;  ///< needed or contained by this node of the value outside
};

/// Schemas that apply to one value. Their plans stand one behind the other; a node is a place in
/// all of them together.
struct Applied {
  std::vector<Root> roots;
  std::vector<uint32_t> firsts;  ///< the first node of each root
  std::vector<const Schema*> nodes;
};

/// A string must be a text of these rules, or `node` fails.
struct Condition {
  uint32_t node;
  uint32_t text;  ///< of `JsonSchema::texts`
};

/// A value, or the key of a property, that has begun and has not ended. Frames never change once
/// they are shared; the texts that go on from one place share their frames.
struct Frame {
  enum class Kind : uint8_t { expected, scalar, string, key, array, object, region };
  using Pointer = std::shared_ptr<const Frame>;
  using Keys = std::set<std::string>;

  Kind kind = Kind::expected;
  Pointer outer;  ///< the object or array; null around the whole text
  int depth = 0;
  std::shared_ptr<const Applied> applied;
  std::vector<Verdict> own;  ///< of each node without its groups: failed, or unknown
  std::vector<bool> doubts;  ///< nodes that can only be judged with the real text

  // strings and keys
  std::vector<Condition> conditions;
  uint32_t counted = 0;  ///< characters are counted up to this number
  uint32_t max_length = unbounded;
  Pointer region;         ///< what this string shares with others; may be null
  bool is_tight = false;  ///< conditions that each can be met may not be met together

  // numbers
  bool needs_digits = false;

  // arrays and objects
  uint32_t count = 0;  ///< of items or properties that have begun
  std::shared_ptr<const Keys> keys;
  std::vector<uint32_t> contained, perhaps_contained;  ///< items, for each node
  std::vector<std::shared_ptr<const nlohmann::json>> items;

  bool failed(uint32_t node) const { return own[node] == Verdict::failed; }
  const Schema& schema(uint32_t node) const { return *applied->nodes[node]; }
  uint32_t size() const { return static_cast<uint32_t>(own.size()); }
};

}  // namespace taper::llm::json_text
