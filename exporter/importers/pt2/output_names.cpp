#include "taper/exporter/importers/pt2/output_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "taper/exporter/importers/pt2/json.h"
#include "taper/exporter/io/array.h"

namespace taper::pt2 {
namespace {

using Value = nlohmann::json;

constexpr size_t longest_key = 200;

/// A key as a part of a name. Every character that is not a letter, a digit, '_' or '-' becomes
/// '_'.
std::string part_of(const Value& key) {
  std::string part = key.is_string() ? key.get<std::string>() : key.dump();
  part.resize(std::min(part.size(), longest_key));
  for (char& c : part) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    if (!plain) c = '_';
  }
  return part.empty() ? "_" : part;
}

class Names {
 public:
  explicit Names(const ExportedProgram& program) : program_(program) {}

  std::vector<std::string> run() {
    const Value spec = parse_json(program_.out_spec, "out_spec");
    if (spec.is_array() && spec.size() == 2) visit(spec[1], "", false);
    return std::move(names_);
  }

 private:
  void visit(const Value& spec, const std::string& path, bool has_key) {
    const Value &type = spec.at("type"), &children = spec.at("children_spec");
    if (type.is_null()) {
      names_.push_back(has_key ? path : "");
      return;
    }
    const std::optional<Value> keys =
        keys_of(type.is_string() ? type.get<std::string>() : "", spec.at("context"));
    const bool named = keys && keys->size() == children.size();
    for (size_t i = 0; i < children.size(); ++i)
      visit(children[i], (path.empty() ? "" : path + ".") + part_of(named ? (*keys)[i] : Value(i)),
            has_key || named);
  }

  /// The keys of a container, from the context that torch's pytree stores: for a dict, a list of
  /// keys; for a named tuple, its name; for a dataclass, its fields with a value and those without.
  std::optional<Value> keys_of(const std::string& type, Value context) const {
    if (context.is_string()) {
      if (type == "collections.namedtuple") {
        const auto fields = program_.namedtuple_fields.find(context.get<std::string>());
        if (fields == program_.namedtuple_fields.end()) return std::nullopt;
        return Value(fields->second);
      }
      context = parse_json(context.get<std::string>(), "out_spec");
    }
    if (context.is_object() && context.contains("dict_context"))
      context = Value(context.at("dict_context"));
    if (context.is_array() && context.size() == 2 && context[0].is_array())
      context = Value(context[0]);
    const auto is_key = [](const Value& key) { return key.is_string() || key.is_number_integer(); };
    if (!context.is_array() || !std::ranges::all_of(context, is_key)) return std::nullopt;
    return context;
  }

  const ExportedProgram& program_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> output_names(const ExportedProgram& program) {
  if (program.out_spec.empty()) return {};
  try {
    return Names(program).run();
  } catch (const io::FileError&) {  // only the names depend on it
  } catch (const nlohmann::json::exception&) {
  }
  return {};
}

}  // namespace taper::pt2
