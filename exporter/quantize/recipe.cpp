#include "taper/exporter/quantize/recipe.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/block_format.h"

namespace taper::quantize {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, std::string_view> shipped[] = {
    {"int8",
     R"([{"match": "*", "scheme": {"weights": "int8-channel", "activations": "int8-static"}}])"},
    {"int8-weights", R"([{"match": "*", "scheme": {"weights": "int8", "activations": "float"}}])"},
    {"int8-dynamic",
     R"([{"match": "*", "scheme": {"weights": "int8", "activations": "int8-dynamic"}}])"},
    {"fp8", R"([{"match": "embedding", "scheme": "int8"},
                {"match": "*", "scheme": "f8_e4m3fn"}])"},
    {"int4-g32", R"([{"match": "*", "scheme": "int4"}])"},
    {"int3-g32", R"([{"match": "embedding", "scheme": "int8"}, {"match": "*", "scheme": "int3"}])"},
    {"int2-g32", R"([{"match": "embedding", "scheme": "int8"}, {"match": "*", "scheme": "int2"}])"},
    {"8da4w", R"([{"match": "embedding", "scheme": "int8"},
                  {"match": "*", "scheme": {"weights": "q4_0", "activations": "int8-dynamic"}}])"},
    // embeddings, the first product and the head hurt most
    {"mixed", R"([{"match": "embedding", "scheme": "int8"},
                  {"match": "first", "scheme": "int8"},
                  {"match": "last", "scheme": "int8"},
                  {"match": "*", "scheme": {"weights": ["q4_k", "q4_1"]}}])"}};

template <class T>
using Word = std::pair<std::string_view, T>;

constexpr Word<Method> methods[] = {
    {"best", Method::best}, {"nearest", Method::nearest},
    {"mse", Method::mse},   {"hqq", Method::hqq},
    {"gptq", Method::gptq}, {"gptq-act-order", Method::gptq_act_order}};
constexpr Word<Activations> activation_words[] = {{"as-exported", Activations::as_exported},
                                                  {"float", Activations::floats},
                                                  {"int8-dynamic", Activations::int8_dynamic},
                                                  {"int8-static", Activations::int8_static}};

/// The names of weights that are not formats.
constexpr Word<Scheme::Weights> other_weights[] = {{"float", Scheme::Weights::floats},
                                                   {"f8_e4m3fn", Scheme::Weights::float8},
                                                   {"int8-channel", Scheme::Weights::int8_channel}};
constexpr Word<Layout> short_names[] = {
    {"int8", Layout::q8_0}, {"int4", Layout::q4_1}, {"int3", Layout::q3_z}, {"int2", Layout::q2_z}};

std::string weight_words() {
  std::vector<std::string> words;
  for (const auto& [word, kind] : other_weights) words.emplace_back(word);
  for (const auto& [word, layout] : short_names) words.emplace_back(word);
  for (const char* name : format_names()) words.emplace_back(name);
  return io::joined(words);
}

/// Reads one rule. Errors name it.
class RuleReader {
 public:
  RuleReader(const std::string& recipe, size_t index)
      : where_(recipe + ": rule " + std::to_string(index + 1)) {}

  Rule read(const json& rule) const {
    require_keys(rule, {"match", "scheme"}, "a rule");
    for (const char* key : {"match", "scheme"})
      if (!rule.contains(key)) fail("the key \"" + std::string(key) + "\" is missing");
    return {text(rule.at("match"), "match"), scheme_of(rule.at("scheme"))};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw ExportError(where_ + ": " + what); }

  void require_keys(const json& object, std::vector<std::string> known, const char* what) const {
    if (!object.is_object()) fail(std::string(what) + " must be an object in braces");
    for (const auto& [key, value] : object.items())
      if (std::ranges::find(known, key) == known.end())
        fail("unknown key \"" + io::printable(key) + "\"; " + what + " has " + io::joined(known));
  }

  std::string text(const json& value, const char* key) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      fail("\"" + std::string(key) + "\" must be a text");
    return value.get<std::string>();
  }

  template <class T, size_t count>
  T word(const json& value, const char* key, const Word<T> (&words)[count]) const {
    const std::string given = text(value, key);
    std::vector<std::string> known;
    for (const auto& [name, meaning] : words) {
      if (name == given) return meaning;
      known.emplace_back(name);
    }
    fail("\"" + std::string(key) + "\" is \"" + io::printable(given) + "\"; it can be " +
         io::joined(known));
  }

  Scheme scheme_of(const json& value) const {
    Scheme scheme;
    if (value.is_string()) return add_weights(scheme, value), scheme;
    require_keys(value,
                 {"weights", "method", "activations", "awq", "sequential", "widen", "observer",
                  "correct-bias", "weight-bits", "equalize", "smooth"},
                 "a scheme");
    if (!value.contains("weights")) fail("the scheme has no \"weights\"");
    const json& weights = value.at("weights");
    for (const json& w : weights.is_array() ? weights : json::array({weights}))
      add_weights(scheme, w);
    if (weights.empty()) fail("\"weights\" is an empty list");
    if (weights.size() > 1 && scheme.layouts.size() != weights.size())
      fail("a list of \"weights\" has formats of blocks only");
    if (value.contains("method")) scheme.method = word(value.at("method"), "method", methods);
    if (value.contains("activations"))
      scheme.activations = word(value.at("activations"), "activations", activation_words);
    if (value.contains("awq")) scheme.awq = flag(value, "awq");
    if (value.contains("sequential")) scheme.sequential = flag(value, "sequential");
    if (value.contains("widen")) scheme.widen = flag(value, "widen");
    add_static(scheme, value);
    require_fitting(scheme);
    return scheme;
  }

  void add_static(Scheme& scheme, const json& value) const {
    const bool is_static = scheme.activations == Activations::int8_static;
    for (const char* key : {"observer", "correct-bias", "weight-bits", "equalize", "smooth"})
      if (value.contains(key) && !is_static)
        fail("\"" + std::string(key) + "\" is for int8-static activations");
    if (value.contains("observer")) {
      const std::string name = text(value.at("observer"), "observer");
      if (std::ranges::count(observer_names(), name) == 0)
        fail("\"observer\" is \"" + io::printable(name) + "\"; it can be " +
             io::joined(observer_names()));
      scheme.observer.kind = observer_kind(name);
    }
    if (value.contains("correct-bias")) scheme.correct_bias = flag(value, "correct-bias");
    if (value.contains("equalize")) scheme.equalize = flag(value, "equalize");
    if (value.contains("weight-bits")) {
      const json& bits = value.at("weight-bits");
      if (!bits.is_number_integer() || bits.get<int64_t>() < 2 || bits.get<int64_t>() > 8)
        fail("\"weight-bits\" must be 2 to 8");
      scheme.weight_bits = bits.get<int>();
    }
    if (!value.contains("smooth")) return;
    const json& strength = value.at("smooth");
    if (!strength.is_number() || !(strength.get<double>() >= 0 && strength.get<double>() <= 1))
      fail("\"smooth\" must be a number in 0..1, such as 0.5");
    scheme.smooth = strength.get<double>();
  }

  bool flag(const json& scheme, const char* key) const {
    if (!scheme.at(key).is_boolean()) fail("\"" + std::string(key) + "\" must be true or false");
    return scheme.at(key).get<bool>();
  }

  void add_weights(Scheme& scheme, const json& value) const {
    const std::string name = text(value, "weights");
    for (const auto& [word, kind] : other_weights)
      if (word == name) {
        scheme.weights = kind;
        return;
      }
    scheme.weights = Scheme::Weights::blocks;
    for (const auto& [word, layout] : short_names)
      if (word == name) return scheme.layouts.push_back(layout);
    const BlockFormat* format = find_format(name);
    if (format == nullptr)
      fail("unknown scheme \"" + io::printable(name) + "\"; weights can be " + weight_words());
    scheme.layouts.push_back(format->layout);
  }

  void require_fitting(const Scheme& scheme) const {
    const bool is_static = scheme.activations == Activations::int8_static;
    if (is_static != (scheme.weights == Scheme::Weights::int8_channel))
      fail(is_static ? "int8-static activations need int8-channel weights"
                     : "int8-channel weights need int8-static activations");
    if (scheme.awq && scheme.weights != Scheme::Weights::blocks)
      fail("\"awq\" is for weights in blocks");
    if (scheme.sequential && scheme.weights != Scheme::Weights::blocks)
      fail("\"sequential\" is for weights in blocks");
    if (scheme.widen && scheme.weights != Scheme::Weights::blocks)
      fail("\"widen\" is for weights in blocks");
    for (const Layout layout : scheme.layouts)
      if (scheme.activations == Activations::int8_dynamic && !holds_integers(layout))
        fail("int8-dynamic activations are multiplied with integers, and " +
             name_of(*find_format(layout)) + " has none; take q4_0 or q8_0, or \"float\"");
    for (const Layout layout : scheme.layouts)
      if (scheme.method == Method::hqq && !find_format(layout)->has_offset)
        fail("hqq needs a format with offsets, and " + name_of(*find_format(layout)) +
             " has none; take q4_1 or q5_1");
  }

  std::string where_;
};

}  // namespace

Recipe parse_recipe(std::string_view text, const std::string& name) {
  json rules;
  constexpr int deepest = 8;  // a list, a rule, a scheme, a list of weights; copies recurse
  const auto require_shallow = [&](int depth, json::parse_event_t, const json&) {
    if (depth > deepest) throw ExportError(name + ": it is nested more deeply than a recipe is");
    return true;
  };
  try {
    rules = json::parse(text, require_shallow);
  } catch (const json::exception& e) {
    throw ExportError(name + ": it is no JSON: " + io::printable(e.what()));
  }
  if (!rules.is_array()) throw ExportError(name + ": a recipe is a list of rules in brackets");
  if (rules.empty()) throw ExportError(name + ": the recipe has no rules");
  Recipe recipe{name, {}, false};
  for (size_t i = 0; i < rules.size(); ++i)
    recipe.rules.push_back(RuleReader(name, i).read(rules[i]));
  return recipe;
}

std::string_view shipped_recipe(std::string_view name) {
  for (const auto& [known, text] : shipped)
    if (known == name) return text;
  return {};
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : shipped) names.emplace_back(name);
  return names;
}

Recipe find_recipe(const std::string& name) {
  if (const std::string_view text = shipped_recipe(name); !text.empty()) {
    Recipe recipe = parse_recipe(text, name);
    recipe.is_shipped = true;
    return recipe;
  }
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored))
    throw ExportError("there is no recipe " + name + ": it is no file, and none of " +
                      io::joined(recipe_names()));
  const io::Bytes bytes = io::read_file(name);
  return parse_recipe({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
}

}  // namespace taper::quantize
