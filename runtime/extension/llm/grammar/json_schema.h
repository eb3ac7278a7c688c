#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/grammar/rules.h"

namespace taper::llm::json_text {

using SchemaId = uint32_t;
constexpr SchemaId any = 0, never = 1;  ///< the schemas `true` and `false`
constexpr uint32_t unbounded = ~uint32_t{0};

/// Kinds of values, as bits.
enum Type : uint8_t {
  null_type = 1,
  true_type = 2,
  false_type = 4,
  integer_type = 8,
  number_type = 16,
  string_type = 32,
  array_type = 64,
  object_type = 128,
};

/// Schemas that apply to the same value, and how their results combine.
struct Group {
  enum class Op : uint8_t { all, any, one, none, if_then_else, dependent };
  Op op;
  std::vector<SchemaId> parts;
  std::string property;  ///< dependent: the part counts if the object has this property
};

/// One schema, without those that its groups name. Defaults allow everything.
struct Schema {
  std::string path;  ///< in the document: "#/properties/name"
  uint8_t types = 0xFF;
  std::vector<Group> groups;

  uint32_t min_length = 0, max_length = unbounded;
  std::vector<uint32_t> texts;  ///< which of `JsonSchema::texts` describe a string

  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool excludes_minimum = false, excludes_maximum = false;
  double multiple_of = 0;  ///< 0: of anything

  std::vector<SchemaId> prefix_items;
  SchemaId items = any;
  std::optional<SchemaId> contains;
  uint32_t min_contains = 1, max_contains = unbounded;
  uint32_t min_items = 0, max_items = unbounded;
  bool unique_items = false;

  std::map<std::string, SchemaId> properties;
  std::vector<std::pair<uint32_t, SchemaId>> pattern_properties;  ///< `JsonSchema::texts` first
  SchemaId additional = any, property_names = any;
  std::vector<std::string> required;
  std::map<std::string, std::vector<std::string>> dependent_required;
  uint32_t min_properties = 0, max_properties = unbounded;

  bool is_integral() const { return (types & number_type) == 0 && (types & integer_type) != 0; }
  bool is_bounded() const;
  bool is_closed() const { return additional == never; }
};

/// A schema and all that apply to the same value: those of its groups, and of theirs. A node stands
/// before its children.
struct Plan {
  struct Branch {
    const Group* group;
    std::vector<uint32_t> children;
  };
  struct Node {
    const Schema* schema;
    std::vector<Branch> branches;
  };
  std::vector<Node> nodes;
};

struct JsonSchema {
  std::vector<Schema> schemas;
  std::vector<Plan> plans;  ///< of each schema that a value can have
  std::vector<std::shared_ptr<const Rules>> texts;
  std::vector<std::string> names;  ///< of all properties, sorted
  SchemaId root = any;
};

/// Reads a schema (draft 2020-12). Refuses what is wrong or not supported with its path.
std::shared_ptr<const JsonSchema> read_json_schema(std::string_view text);

/// Fills `plans`. Refuses schemas that apply to their own value, or too many.
void make_plans(JsonSchema& schema);

// ---- results

/// What is known about a schema and a value, of which a part may be unknown yet.
enum class Verdict : uint8_t { failed, unknown, passed };

/// The verdicts of all nodes of a plan, in Kleene's logic. `own` are those of each schema without
/// its groups. `keys` are the properties of the object; more may come unless it is closed.
std::vector<Verdict> verdicts(const Plan& plan, const Verdict* own,
                              const std::set<std::string>& keys, bool is_closed);

// ---- numbers

/// Whether some longer number could satisfy the schema, if it had no exponent.
bool may_become_valid(const Schema& schema, const std::string& digits);
bool is_valid_number(const Schema& schema, const std::string& digits);

}  // namespace taper::llm::json_text
