// Models of PyTorch as the options of a command choose them. Only where the importer is built.
#pragma once
#include <filesystem>
#include <set>
#include <string>

#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::cli {

/// Throws ExportError, and UsageError for a --dim that is none.
pt2::Model import_model(const std::filesystem::path& path, const ImportChoice& choice);

/// Each --dim must name one of the symbols. Throws ExportError.
void require_symbols(const ImportChoice& choice, const std::set<std::string>& symbols);

}  // namespace taper::cli
