// Stands in for quantization.cpp where exporter/quantize is not built.
#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/quantization.h"

namespace taper::cli {

struct Quantization::Parts {};

void add_quantize_options(Command& command, QuantizeChoice& choice) {
  command.option("--recipe RECIPE", choice.recipe, "This build of taper cannot quantize");
}
Quantization::Quantization(const QuantizeChoice& choice, std::string) {
  if (!choice.recipe.empty()) throw ExportError("--recipe: this build of taper cannot quantize");
}
Quantization::~Quantization() = default;
int Quantization::stages() const { return 0; }
void Quantization::add_to(ExportOptions&, Stages&) {}
void Quantization::print(std::ostream&, bool, const std::string&) const {}

}  // namespace taper::cli
