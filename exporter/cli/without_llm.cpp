// Stands in for language_model.cpp where language models are not built.
#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/language_model.h"

namespace taper::cli {

bool is_language_model(const std::string&) { return false; }
void check_language_model(const std::string& path, const std::string&, std::ostream&) {
  throw ExportError(path + ": this build of Taper has no language models");
}
void export_language_model(const std::string& path, const std::string&, const LanguageModelExport&,
                           const ExportOptions&, std::ostream&) {
  throw ExportError(path + ": this build of Taper has no language models");
}

}  // namespace taper::cli
