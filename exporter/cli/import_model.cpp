#include "taper/exporter/cli/import_model.h"

#include <optional>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

/// "s77=1..512", or "s77=8" for one number.
std::pair<std::string, pt2::LoadOptions::Bounds> parse_bounds(const std::string& text) {
  const size_t sign = text.find('='), dots = text.find("..", sign);
  const auto number = [&](size_t from, size_t to) {
    return from > to ? std::nullopt : number_of<int64_t>(text.substr(from, to - from));
  };
  std::optional<int64_t> low, high;
  if (sign != text.npos && sign > 0) {
    low = number(sign + 1, dots == text.npos ? text.size() : dots);
    high = dots == text.npos ? low : number(dots + 2, text.size());
  }
  if (!low || !high || *low < 0 || *low > *high)
    throw UsageError("--dim", text + " is not NAME=NUMBER or NAME=LOW..HIGH");
  return {text.substr(0, sign), {*low, *high}};
}

pt2::LoadOptions load_options(const ImportChoice& choice) {
  pt2::LoadOptions options;
  options.model = choice.model;
  for (const std::string& text : choice.dims) {
    const auto bounds = parse_bounds(text);
    if (!options.dims.insert(bounds).second)
      throw UsageError("--dim", bounds.first + " is given twice");
  }
  return options;
}

}  // namespace

pt2::Model import_model(const std::filesystem::path& path, const ImportChoice& choice) {
  return pt2::Model::load(path, load_options(choice));
}

void require_symbols(const ImportChoice& choice, const std::set<std::string>& symbols) {
  for (const auto& [name, bounds] : load_options(choice).dims)
    if (!symbols.contains(name))
      throw ExportError("--dim " + name + ": there is no such symbol; " +
                        (symbols.empty()
                             ? "all sizes are fixed"
                             : "there are " + io::joined({symbols.begin(), symbols.end()})));
}

}  // namespace taper::cli
