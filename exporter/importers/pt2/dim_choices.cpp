#include "taper/exporter/importers/pt2/dim_choices.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "taper/exporter/importers/pt2/expression.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/parser.h"

namespace taper::pt2 {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max();
/// The number that PyTorch writes if there is no bound.
constexpr int64_t infinity = largest - 1;

/// The smallest size with which PyTorch traces a dynamic dimension, unless a Dim has another
/// minimum.
constexpr int64_t traced_minimum = 2;

std::string text_of(int64_t low, int64_t high) {
  return std::to_string(low) + ".." + (high >= infinity ? "" : std::to_string(high));
}

const SymInt* size_of_number(const ExportedProgram& program, const std::string& name, SymInt& at) {
  const auto found = program.graph.numbers.find(name);
  if (found == program.graph.numbers.end()) return nullptr;
  const auto* text = std::get_if<std::string>(&found->second);
  if (text == nullptr) return nullptr;
  at = *text;
  return &at;
}

/// Calls f(input, dimension, size) for every size of the user's tensors, and f(input, -1, number)
/// for every number of the user.
template <class F>
void for_each_size(const ExportedProgram& program, const F& f) {
  for (const InputSpec& spec : program.inputs) {
    if (spec.kind != InputSpec::Kind::user_input) continue;
    const std::string name = name_of(spec.value);
    if (std::holds_alternative<TensorName>(spec.value)) {
      const std::vector<SymInt>& sizes = program.graph.tensor_values.at(name).sizes;
      for (size_t d = 0; d < sizes.size(); ++d) f(name, static_cast<int>(d), sizes[d]);
    } else if (SymInt number; size_of_number(program, name, number) != nullptr) {
      f(name, -1, number);
    }
  }
}

bool is_expression(std::string_view key) { return key.find_first_of("*+-/%() ") != key.npos; }

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// The place "x.0": dimension 0 of input x, by PyTorch's name of the input. Parts of a nested input
/// are joined by '_': "d.a.0" is dimension 0 of input d_a. nullopt if the key is not a place.
struct Place {
  std::string input;
  int dim;
};
std::optional<Place> place_of(std::string_view key) {
  const size_t dot = key.rfind('.');
  if (dot == key.npos || dot == 0) return std::nullopt;
  int dim = 0;
  const auto [stop, error] = std::from_chars(key.data() + dot + 1, key.data() + key.size(), dim);
  if (error != std::errc() || stop != key.data() + key.size() || dim < 0) return std::nullopt;
  std::string input(key.substr(0, dot));
  std::ranges::replace(input, '.', '_');
  return Place{input, dim};
}

/// The size of a place that is more than a symbol: 8*s16.
struct ComputedSize {
  Dim size;
  std::map<std::string, Dim> symbols;  ///< by PyTorch's name
};
ComputedSize parse_size(const std::string& text) {
  ComputedSize c;
  c.size = parse_expression(text, [&](const std::string& name) {
    return c.symbols.try_emplace(name, Dim::symbol(name)).first->second;
  });
  return c;
}

class Chooser {
 public:
  explicit Chooser(const ExportedProgram& program) : program_(program) {
    const std::vector<Dimension> dimensions = dimensions_of(program);
    for (const Dimension& d : dimensions) choices_.names[d.symbol] = d.symbol;
    for (const Dimension& d : dimensions)
      if (!d.place.empty() && !is_symbol(d.place)) choices_.names[d.symbol] = d.place;
  }

  DimChoices run(const std::map<std::string, LoadOptions::DimOption>& dims) {
    for (const auto& [key, dimension] : dims) {
      if (is_expression(key)) continue;
      if (const std::optional<ComputedSize> size = computed_at(key))
        choose_computed(key, *size, dimension);
      else if (const std::optional<std::string> symbol = symbol_of(key))
        choose(key, *symbol, dimension);
      else
        choices_.unknown.push_back(key);
    }
    for (const auto& [symbol, chosen] : choices_.symbols)
      if (!chosen.name.empty()) choices_.names[symbol] = chosen.name;
    require_different_names();
    for (const auto& [key, dimension] : dims)
      if (is_expression(key)) promise(key, dimension);
    return std::move(choices_);
  }

 private:
  bool is_symbol(const std::string& name) const { return choices_.names.contains(name); }
  const std::string& shown(const std::string& symbol) const { return choices_.names.at(symbol); }

  /// The size at the place that a key names, as PyTorch writes it. nullopt if it names none.
  std::optional<std::string> size_at(const std::string& key) const {
    if (is_symbol(key)) return std::nullopt;
    const std::optional<Place> place = place_of(key);
    std::optional<std::string> text;
    for_each_size(program_, [&](const std::string& input, int dim, const SymInt& size) {
      const bool is_this =
          dim < 0 ? input == key : place && place->input == input && place->dim == dim;
      if (!is_this) return;
      if (const auto* number = std::get_if<int64_t>(&size))
        refuse_fixed(key, std::to_string(*number));
      text = std::get<std::string>(size);
    });
    return text;
  }

  /// The same, if the size is more than a symbol.
  std::optional<ComputedSize> computed_at(const std::string& key) const {
    const std::optional<std::string> text = size_at(key);
    if (!text || symbol_in(*text)) return std::nullopt;
    ComputedSize size = parse_size(*text);
    if (size.symbols.empty()) refuse_fixed(key, size.size.to_string());
    return size;
  }

  [[noreturn]] static void refuse_fixed(const std::string& key, const std::string& size) {
    throw ExportError("dimension " + key + " is " + size +
                      " and cannot change: it was fixed when the model was exported; export it "
                      "again with dynamic_shapes");
  }

  /// The symbol that a key names, directly or by its place.
  std::optional<std::string> symbol_of(const std::string& key) const {
    if (is_symbol(key)) return key;
    if (const std::optional<ComputedSize> size = computed_at(key)) refuse_computed(key, *size);
    const std::optional<std::string> text = size_at(key);
    return text ? symbol_in(*text) : std::nullopt;
  }

  /// Names the symbol to use instead, and the places where it stands.
  [[noreturn]] void refuse_computed(const std::string& key, const ComputedSize& computed) const {
    const std::string& symbol = computed.symbols.begin()->first;
    std::vector<std::string> places;
    for_each_size(program_, [&](const std::string& input, int dim, const SymInt& size) {
      const auto* text = std::get_if<std::string>(&size);
      if (text != nullptr && parse_size(*text).symbols.contains(symbol))
        places.push_back(place_text(input, dim));
    });
    const std::string& name = is_symbol(symbol) ? shown(symbol) : symbol;
    throw ExportError(key + " is " + computed.size.to_string() + "; give bounds of " + name +
                      " instead: --dim " + name + "=LOW..HIGH. It stands in " + io::joined(places));
  }

  /// A place of size factor * s + summand: bounds of the place become bounds of s.
  void choose_computed(const std::string& key, const ComputedSize& computed,
                       const LoadOptions::DimOption& given) {
    const auto& [symbol, s] = *computed.symbols.begin();
    const std::optional<Linear> form = linear_in(computed.size, s);
    if (!form) refuse_computed(key, computed);
    const std::string what = key + " is " + computed.size.to_string();
    if (!given.name.empty())
      throw ExportError(what + ", which cannot be called " + given.name +
                        ": only a size that is no expression can have a name");
    const auto [low, high] = *given.bounds;
    // rounded inwards; floor(-x) is -ceil(x)
    const int64_t most = ((Dim(high) - form->summand) / form->factor).value(),
                  least = -((Dim(form->summand) - low) / form->factor).value(),
                  minimum = std::max<int64_t>(least, 0);
    if (most < minimum)
      throw ExportError(what + ", and no such size lies in " + text_of(low, high) +
                        "; give other bounds");
    choose(symbol + " (" + what + ")", symbol, {LoadOptions::Bounds{minimum, most}, ""},
           file_allows(computed, low));
  }

  /// Whether the file itself bounds this expression ("8*s16"), and has `size` in its bounds.
  bool file_allows(const ComputedSize& computed, int64_t size) const {
    return std::ranges::any_of(program_.ranges, [&](const auto& range) {
      if (!is_expression(range.first) || range.second.minimum.value_or(0) > size) return false;
      try {
        return same(computed.size, ir::parse_dim(range.first, [&](std::string_view name) {
                      return computed.symbols.at(std::string(name));
                    }));
      } catch (const std::exception&) {  // over other symbols, or no expression
        return false;
      }
    });
  }

  /// `is_known_as_one`: PyTorch knows that the size may be 1.
  void choose(const std::string& key, const std::string& symbol,
              const LoadOptions::DimOption& given, bool is_known_as_one = false) {
    if (!given.name.empty() && !is_identifier(given.name))
      throw ExportError("\"" + given.name + "\" cannot be the name of " + key +
                        "; a name consists of letters, digits and _");
    LoadOptions::DimOption& chosen = choices_.symbols[symbol];
    const bool same_bounds = !chosen.bounds || !given.bounds || *chosen.bounds == *given.bounds;
    const bool same_name = chosen.name.empty() || given.name.empty() || chosen.name == given.name;
    const std::string& other = keys_.try_emplace(symbol, key).first->second;
    if (!same_bounds || !same_name)
      throw ExportError(other + " and " + key +
                        " are one size, which --dim sets in two ways; give it once");
    if (given.bounds) chosen.bounds = checked(key, symbol, *given.bounds, is_known_as_one);
    if (!given.name.empty()) chosen.name = given.name;
  }

  LoadOptions::Bounds checked(const std::string& key, const std::string& symbol,
                              LoadOptions::Bounds given, bool is_known_as_one) {
    const auto found = program_.ranges.find(symbol);
    const Range range = found == program_.ranges.end() ? Range{} : found->second;
    const int64_t low = range.minimum.value_or(0), high = range.maximum.value_or(largest);
    // PyTorch asserts the range of other symbols, which are counted or read
    const bool is_size = symbol.starts_with('s');
    const bool may_be_one = is_size && low == traced_minimum && given.minimum == 1;
    if (given.maximum > high || given.maximum < (may_be_one ? 1 : low) ||
        (given.minimum < low && !may_be_one))
      throw ExportError("the bounds " + text_of(given.minimum, given.maximum) + " of " + key +
                        " do not lie inside those of the .pt2, " + text_of(low, high) +
                        "; export the model again with other bounds" +
                        (is_size && given.minimum < low && low == traced_minimum
                             ? ", or begin with 1: PyTorch traces automatic sizes as 2 or more"
                             : ""));
    if (may_be_one && !is_known_as_one)
      choices_.notes.push_back(
          "the size " + key +
          " may be 1, as you say. PyTorch traced it as 2 or more: a model that treats size 1 in "
          "another way (squeeze, an if) does not do so here; compare a call of size 1 with "
          "PyTorch");
    return given;
  }

  /// The symbol that a name in an expression means. It may also be a name that another --dim gave.
  std::optional<std::string> symbol_in_expression(const std::string& name) const {
    if (const std::optional<std::string> symbol = symbol_of(name)) return symbol;
    for (const auto& [symbol, shown] : choices_.names)
      if (shown == name) return symbol;
    return std::nullopt;
  }

  void promise(const std::string& key, const LoadOptions::DimOption& given) {
    if (!given.bounds || !given.name.empty())
      throw ExportError("\"" + key + "\" is an expression: give its bounds, \"" + key +
                        "=LOW..HIGH\"");
    Promise promise{key, {}, *given.bounds};
    bool all_known = true;
    Dim expression = 0;
    try {
      expression = ir::parse_dim(key, [&](std::string_view part) {
        const std::string name(part);
        const std::optional<std::string> symbol = symbol_in_expression(name);
        all_known = all_known && symbol.has_value();
        promise.symbols[name] = symbol.value_or(name);
        return symbols_.try_emplace(symbol.value_or(name), Dim::symbol(name, 1)).first->second;
      });
    } catch (const ExportError& e) {
      throw ExportError("\"" + key + "\" is no expression over sizes: " + e.what());
    }
    if (promise.symbols.empty())
      throw ExportError("\"" + key + "\" names no size; an example is \"u0*u1=1..16\"");
    for (const auto& [other, bounds] : promised_)
      if (same(other, expression) && bounds != *given.bounds)
        throw ExportError("\"" + key + "\" is " + expression.to_string() +
                          ", which another --dim sets differently; give it once");
    promised_.emplace_back(expression, *given.bounds);
    if (all_known)
      choices_.promises.push_back(std::move(promise));
    else
      choices_.unknown.push_back(key);
  }

  void require_different_names() const {
    std::map<std::string, std::string> symbols;  // the symbol of each name
    for (const auto& [symbol, name] : choices_.names)
      if (const auto [other, is_new] = symbols.emplace(name, symbol); !is_new)
        throw ExportError(key_of(other->second) + " and " + key_of(symbol) +
                          " are different sizes for PyTorch; they cannot both be called " + name);
  }
  /// The key that the caller used for the symbol, or the name that is shown otherwise.
  const std::string& key_of(const std::string& symbol) const {
    const auto key = keys_.find(symbol);
    return key == keys_.end() ? shown(symbol) : key->second;
  }

  const ExportedProgram& program_;
  /// For each symbol, the key by which the caller set something of it.
  std::map<std::string, std::string> keys_;
  std::map<std::string, Dim> symbols_;  ///< those in expressions
  std::vector<std::pair<Dim, LoadOptions::Bounds>> promised_;
  DimChoices choices_;
};

}  // namespace

std::optional<std::string> symbol_in(std::string_view expression) {
  constexpr std::string_view begin = "Symbol('";
  const size_t end = expression.find('\'', begin.size());
  if (!expression.starts_with(begin) || end == expression.npos) return std::nullopt;
  return std::string(expression.substr(begin.size(), end - begin.size()));
}

std::string Dimension::to_string() const {
  return (place.empty() ? symbol : place) + " (" + text_of(minimum, maximum) +
         (inside.empty() ? "" : ", " + inside) + ")";
}

std::string place_text(const std::string& input, int dim) {
  return dim < 0 ? input : input + "." + std::to_string(dim);
}

std::vector<Dimension> dimensions_of(const ExportedProgram& program) {
  std::vector<Dimension> dimensions;
  const auto add = [&](const std::string& symbol, const std::string& place) {
    if (std::ranges::find(dimensions, symbol, &Dimension::symbol) != dimensions.end()) return;
    const auto range = program.ranges.find(symbol);
    Dimension& d = dimensions.emplace_back(Dimension{symbol, place});
    if (range == program.ranges.end()) return;
    d.minimum = range->second.minimum.value_or(d.minimum);
    d.maximum = range->second.maximum.value_or(d.maximum);
  };
  for_each_size(program, [&](const std::string& input, int dim, const SymInt& size) {
    if (const auto* text = std::get_if<std::string>(&size))
      if (const std::optional<std::string> symbol = symbol_in(*text))
        add(*symbol, place_text(input, dim));
  });
  for (const auto& [text, range] : program.ranges)
    if (!is_expression(text)) add(text, "");
  for_each_size(program, [&](const std::string& input, int dim, const SymInt& size) {
    const auto* text = std::get_if<std::string>(&size);
    if (text == nullptr || symbol_in(*text)) return;
    const ComputedSize c = parse_size(*text);
    for (Dimension& d : dimensions)
      if (d.place.empty() && d.inside.empty() && c.symbols.contains(d.symbol))
        d.inside = place_text(input, dim) + " is " + c.size.to_string();
  });
  return dimensions;
}

DimChoices choose_dims(const ExportedProgram& program,
                       const std::map<std::string, LoadOptions::DimOption>& dims) {
  return Chooser(program).run(dims);
}

}  // namespace taper::pt2
