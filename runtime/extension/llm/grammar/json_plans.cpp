#include <algorithm>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/grammar/json_schema.h"

namespace taper::llm::json_text {
namespace {

constexpr size_t most_nodes_of_plan = 1000, most_nodes = size_t{1} << 20;

class Planner {
 public:
  Planner(const JsonSchema& schema, Plan& plan) : schema_(schema), plan_(plan) {}

  uint32_t add(SchemaId id) {
    const Schema& s = schema_.schemas[id];
    if (std::find(path_.begin(), path_.end(), id) != path_.end()) {
      refuse(s.path + ": the schema refers to itself for the same value");
    }
    if (plan_.nodes.size() >= most_nodes_of_plan) {
      refuse(s.path + ": more than " + std::to_string(most_nodes_of_plan) +
             " schemas apply to one value");
    }
    path_.push_back(id);
    const auto node = static_cast<uint32_t>(plan_.nodes.size());
    plan_.nodes.push_back({&s, {}});
    for (const Group& group : s.groups) {
      Plan::Branch branch{&group, {}};
      for (const SchemaId part : group.parts) branch.children.push_back(add(part));
      plan_.nodes[node].branches.push_back(std::move(branch));
    }
    path_.pop_back();
    return node;
  }

 private:
  const JsonSchema& schema_;
  Plan& plan_;
  std::vector<SchemaId> path_;
};

// The schemas of values inside of a value with this one.
std::vector<SchemaId> schemas_inside(const Schema& s) {
  std::vector<SchemaId> inside = s.prefix_items;
  inside.insert(inside.end(), {s.items, s.additional, s.property_names});
  if (s.contains) inside.push_back(*s.contains);
  for (const auto& [name, id] : s.properties) inside.push_back(id);
  for (const auto& [text, id] : s.pattern_properties) inside.push_back(id);
  return inside;
}

Verdict negated(Verdict v) {
  return v == Verdict::failed   ? Verdict::passed
         : v == Verdict::passed ? Verdict::failed
                                : Verdict::unknown;
}

Verdict one_of(const std::vector<Verdict>& parts) {
  const auto passed = std::count(parts.begin(), parts.end(), Verdict::passed);
  const auto unknown = std::count(parts.begin(), parts.end(), Verdict::unknown);
  if (passed > 1 || passed + unknown == 0) return Verdict::failed;
  return unknown == 0 ? Verdict::passed : Verdict::unknown;
}

Verdict if_then_else(Verdict condition, Verdict yes, Verdict no) {
  if (condition == Verdict::passed) return yes;
  if (condition == Verdict::failed) return no;
  return yes == no ? yes : Verdict::unknown;
}

Verdict verdict_of(const Group& group, const std::vector<Verdict>& parts,
                   const std::set<std::string>& keys, bool is_closed) {
  switch (group.op) {
    case Group::Op::all:
      return *std::min_element(parts.begin(), parts.end());
    case Group::Op::any:
      return *std::max_element(parts.begin(), parts.end());
    case Group::Op::one:
      return one_of(parts);
    case Group::Op::none:
      return negated(parts[0]);
    case Group::Op::if_then_else:
      return if_then_else(parts[0], parts[1], parts[2]);
    default:  // dependent
      if (keys.count(group.property) != 0) return parts[0];
      return is_closed ? Verdict::passed : Verdict::unknown;
  }
}

}  // namespace

void make_plans(JsonSchema& schema) {
  std::vector<bool> is_root(schema.schemas.size());
  is_root[schema.root] = true;
  for (const Schema& s : schema.schemas) {
    for (const SchemaId id : schemas_inside(s)) is_root[id] = true;
  }
  schema.plans.resize(schema.schemas.size());
  size_t nodes = 0;
  for (SchemaId id = 0; id < schema.schemas.size(); ++id) {
    if (!is_root[id]) continue;
    Planner(schema, schema.plans[id]).add(id);
    nodes += schema.plans[id].nodes.size();
    if (nodes > most_nodes) refuse("the schema combines too many schemas");
  }
}

std::vector<Verdict> verdicts(const Plan& plan, const Verdict* own,
                              const std::set<std::string>& keys, bool is_closed) {
  std::vector<Verdict> found(own, own + plan.nodes.size());
  std::vector<Verdict> parts;
  for (size_t i = plan.nodes.size(); i-- > 0;) {
    for (const Plan::Branch& branch : plan.nodes[i].branches) {
      parts.clear();
      for (const uint32_t child : branch.children) parts.push_back(found[child]);
      found[i] = std::min(found[i], verdict_of(*branch.group, parts, keys, is_closed));
    }
  }
  return found;
}

}  // namespace taper::llm::json_text
