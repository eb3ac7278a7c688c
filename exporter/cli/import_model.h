// Models of PyTorch as the options of a command choose them. Only where the importer is built.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::cli {

/// Throws ExportError, and UsageError for a --dim that is none.
pt2::Model import_model(const std::filesystem::path& path, const ImportChoice& choice);

/// Which --dim named nothing, over all models that a command imports.
class UnknownDims {
 public:
  void add(const pt2::Model& model);
  /// Throws ExportError for a --dim that names nothing in any of the models.
  void require_none() const;

 private:
  int models_ = 0;
  std::map<std::string, int> unknown_;  ///< in how many models
  std::vector<std::string> known_;      ///< sizes that there are
};

}  // namespace taper::cli
