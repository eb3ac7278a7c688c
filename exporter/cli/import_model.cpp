#include "taper/exporter/cli/import_model.h"

#include <cctype>
#include <memory>
#include <optional>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::cli {
namespace {

/// "1..512", or "8" for one number.
std::optional<pt2::LoadOptions::Bounds> parse_bounds(const std::string& text) {
  const size_t dots = text.find("..");
  const auto low = number_of<int64_t>(text.substr(0, dots)),
             high = dots == text.npos ? low : number_of<int64_t>(text.substr(dots + 2));
  if (!low || !high || *low < 0) return std::nullopt;
  if (*low > *high)
    throw UsageError("--dim", text + ": the lower bound must stand first: " +
                                  std::to_string(*high) + ".." + std::to_string(*low));
  return pt2::LoadOptions::Bounds{*low, *high};
}

/// "x.0=1..512", "x.0=batch:1..512", "x.0=batch", "u0*u1=1..16"
std::pair<std::string, pt2::LoadOptions::DimOption> parse_dim(const std::string& text) {
  const size_t sign = text.find('='), colon = text.find(':', sign);
  pt2::LoadOptions::DimOption option;
  bool complete = sign != text.npos && sign > 0 && sign + 1 < text.size();
  if (complete && colon != text.npos) {
    option.name = text.substr(sign + 1, colon - sign - 1);
    option.bounds = parse_bounds(text.substr(colon + 1));
    complete = !option.name.empty() && option.bounds;
  } else if (complete) {
    const std::string value = text.substr(sign + 1);
    option.bounds = parse_bounds(value);
    if (!option.bounds) option.name = value;
    // a name begins with a letter, so text that looks like bounds is not a name
    complete =
        option.bounds || std::isalpha(static_cast<unsigned char>(value[0])) != 0 || value[0] == '_';
  }
  if (!complete)
    throw UsageError("--dim", text +
                                  " is none of NAME=NUMBER, NAME=LOW..HIGH and "
                                  "INPUT.DIMENSION=NEWNAME:LOW..HIGH");
  return {text.substr(0, sign), option};
}

pt2::LoadOptions load_options(const ImportChoice& choice) {
  pt2::LoadOptions options;
  options.model = choice.model;
  for (const std::string& text : choice.dims) {
    const auto dim = parse_dim(text);
    if (!options.dims.insert(dim).second) throw UsageError("--dim", dim.first + " is given twice");
  }
  return options;
}

pt2::Model import_with(const pt2::LoadOptions& options, const std::filesystem::path& path,
                       const ImportChoice& choice) {
  if (!choice.read) return pt2::Model::load(path, options);
  const auto file = std::make_shared<MappedFile>();
  std::string why;
  if (!file->open(path.string(), why, MappedFile::Access::in_memory)) throw io::FileError(why);
  const Span<const std::byte> bytes = file->bytes();
  return pt2::Model::parse(
      {const_cast<std::byte*>(bytes.data()), static_cast<size_t>(bytes.size())}, file,
      path.string(), options);
}

}  // namespace

pt2::Model import_model(const std::filesystem::path& path, const ImportChoice& choice) {
  return import_with(load_options(choice), path, choice);
}

pt2::Model import_to_trace(const std::filesystem::path& path, const ImportChoice& choice) {
  pt2::LoadOptions options = load_options(choice);
  options.refuses_in_trace = true;
  try {
    return import_with(options, path, choice);
  } catch (const ExportError&) {
    // an input or a weight may have a type that Taper lacks: then the list says more
    return import_model(path, choice);
  }
}

void UnknownDims::add(const pt2::Model& model) {
  ++models_;
  for (const std::string& key : model.unknown_dims()) ++unknown_[key];
  for (const pt2::Dimension& d : model.dimensions()) known_.push_back(d.to_string());
}

void UnknownDims::require_none() const {
  for (const auto& [key, models] : unknown_)
    if (models == models_)
      throw ExportError(
          "--dim " + key + ": there is no such size; " +
          (known_.empty() ? "all sizes are fixed" : "there are " + io::joined(known_)));
}

}  // namespace taper::cli
