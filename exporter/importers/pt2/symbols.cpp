#include "taper/exporter/importers/pt2/symbols.h"

#include <algorithm>
#include <limits>
#include <set>

#include "taper/exporter/importers/pt2/expression.h"
#include "taper/exporter/ir/parser.h"

namespace taper::pt2 {
namespace {

constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();

int64_t image(const Linear& form, int64_t s) {
  int64_t value = 0;
  if (s == unbounded || __builtin_mul_overflow(form.factor, s, &value) ||
      __builtin_add_overflow(value, form.summand, &value))
    return unbounded;
  return value;
}

}  // namespace

Range Symbols::range_of(const std::string& name) const {
  const auto chosen = choices_.symbols.find(name);
  if (chosen != choices_.symbols.end() && chosen->second.bounds)
    return {chosen->second.bounds->minimum, chosen->second.bounds->maximum};
  const auto found = program_.ranges.find(name);
  return found == program_.ranges.end() ? Range{} : found->second;
}

const std::string& Symbols::name_of(const std::string& symbol) const {
  const auto name = choices_.names.find(symbol);
  return name == choices_.names.end() ? symbol : name->second;
}

// The program also bounds expressions. Their keys are texts such as "8*s16".
Range Symbols::range_of_expression(Dim whole) {
  for (const auto& [text, range] : program_.ranges) {
    if (text.find_first_of("*+ ") == text.npos) continue;
    try {
      const Dim d = ir::parse_dim(text, [this](std::string_view name) {
        const auto known = symbols_.find(name);
        if (known == symbols_.end()) throw ExportError("another symbol");
        return known->second;
      });
      if (same(d, whole)) return range;
    } catch (const ExportError&) {  // an expression that is not in the inputs' sizes
    }
  }
  return {};
}

Dim Symbols::symbol(const std::string& name) {
  const auto known = symbols_.find(name);
  if (known != symbols_.end()) return known->second;
  const Range range = range_of(name);
  const int64_t minimum = std::max<int64_t>(range.minimum.value_or(0), 0),
                maximum = range.maximum.value_or(unbounded);
  return symbols_[name] =
             minimum == maximum ? Dim(minimum) : Dim::symbol(name_of(name), minimum, maximum);
}

std::map<std::string, ElementSymbol> Symbols::elements() const {
  std::map<std::string, ElementSymbol> elements;
  for (const auto& [name, range] : program_.ranges)
    if (name.starts_with('u')) elements[name] = {name_of(name), range_of(name)};
  return elements;
}

Dim Symbols::expression(const std::string& text) {
  return parse_expression(text, [this](const std::string& name) { return symbol(name); });
}

Dim Symbols::size(const SymInt& size) {
  if (const auto* number = std::get_if<int64_t>(&size)) return *number;
  return expression(std::get<std::string>(size));
}

void Symbols::solve(std::vector<Input>& inputs) {
  std::set<const Symbol*> alone, all;
  for (const Input& input : inputs)
    for (const Dim d : input.sizes) {
      for (const Symbol* s : d.symbols()) all.insert(s);
      if (d.as_symbol() != nullptr) alone.insert(d.as_symbol());
    }
  for (auto& [name, s] : symbols_) {
    if (!all.contains(s.as_symbol()) || alone.contains(s.as_symbol())) continue;
    std::optional<Linear> form;
    std::string place;
    for (const Input& input : inputs)
      for (size_t d = 0; d < input.sizes.size(); ++d)
        if (!form && (form = linear_in(input.sizes[d], s)))
          place = place_text(input.name, static_cast<int>(d));
    if (!form)
      throw ExportError("symbol " + name_of(name) +
                        " occurs in the inputs' sizes only inside expressions that cannot be "
                        "solved for it");
    const Dim whole = s * form->factor + form->summand;
    // the caller's bounds of the symbol have priority over the file's bounds of the expression
    const auto chosen = choices_.symbols.find(name);
    if (chosen != choices_.symbols.end() && !chosen->second.name.empty())
      throw ExportError(name + " cannot be called " + chosen->second.name +
                        ": no input has this size alone, so reports show " + place +
                        ". Give its bounds without a name");
    const bool is_chosen = chosen != choices_.symbols.end() && chosen->second.bounds.has_value();
    const Range range = is_chosen ? Range{} : range_of_expression(whole);
    const int64_t least = image(*form, s.lower()), most = image(*form, s.upper());
    const Dim extent =
        Dim::symbol(place, range.minimum.value_or(least), range.maximum.value_or(most));
    const Dim::Substitution replaced{{s.as_symbol(), (extent - form->summand) / form->factor}};
    for (Input& input : inputs)
      for (Dim& d : input.sizes) d = same(d, whole) ? extent : d.substitute(replaced);
    s = s.substitute(replaced);
  }
}

}  // namespace taper::pt2
