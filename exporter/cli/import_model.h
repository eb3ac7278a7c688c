// Imports PyTorch models as the options of a command ask for it. Only if the importer is built.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::cli {

/// Throws ExportError; throws UsageError for a malformed --dim.
pt2::Model import_model(const std::filesystem::path& path, const ImportChoice& choice);
/// The same for a model that is traced next. If Taper lacks parts of it, the trace fails, with one
/// list of these parts and of the calls that cannot be traced.
pt2::Model import_to_trace(const std::filesystem::path& path, const ImportChoice& choice);

/// Collects the --dim options that name nothing, over all models that a command imports.
class UnknownDims {
 public:
  void add(const pt2::Model& model);
  /// Throws ExportError for a --dim that names nothing in any of the models.
  void require_none() const;

 private:
  int models_ = 0;
  std::map<std::string, int> unknown_;  ///< number of models that do not know the key
  std::vector<std::string> known_;      ///< the sizes that exist
};

}  // namespace taper::cli
