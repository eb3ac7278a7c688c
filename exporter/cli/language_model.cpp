#include "taper/exporter/cli/language_model.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "taper/exporter/cli/quantization.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/text_assets.h"

namespace taper::cli {
namespace {

/// Golden results have no longer texts.
constexpr int64_t longest_golden_text = 1024;

bool print(std::ostream& out, const std::string& way, const std::vector<llm::Compared>& results) {
  bool passed = true;
  for (const llm::Compared& r : results) {
    out << (r.passed() ? "ok    " : "WRONG ") << std::left << std::setw(8) << way << std::setw(32)
        << io::printable(r.name) << "largest difference " << std::setprecision(2) << r.difference
        << " of " << r.tolerance << '\n';
    passed = passed && r.passed();
  }
  return passed;
}

/// "Q4_0." if the golden results are those of several types of weights.
std::string prefix_of(const llm::Model& model, const io::SafeTensors& golden) {
  return golden.tensors.contains(model.stored_type + ".logits") ? model.stored_type + "." : "";
}

void check_encoder(const std::string& path, const io::SafeTensors& want, const std::string& golden,
                   std::ostream& out) {
  const std::unique_ptr<llm::Encoder> encoder = llm::load_encoder(path);
  if (!print(out, "eager", compare_with_golden(*encoder, want)))
    throw ExportError("the results of " + path + " differ from " + golden);
}

emit::Report export_encoder(const std::string& path, const std::string& output,
                            const ExportOptions& options) {
  const std::unique_ptr<llm::Encoder> encoder = llm::load_encoder(path);
  Exporter exporter;
  add_methods(exporter, *encoder);
  return exporter.write(output, options);
}

int64_t cache_bytes_of_token(const llm::Config& c) {
  int64_t caches = 0;
  for (int64_t i = 0; i < c.layers; ++i)
    caches += c.heads > 0 && !c.convolutional[static_cast<size_t>(i)] ? 2 : 0;
  return caches * c.kv_heads * c.head_dim * static_cast<int64_t>(sizeof(float));
}

}  // namespace

bool is_language_model(const std::string& path) { return llm::is_language_model(path); }

void check_language_model(const std::string& path, const std::string& golden, std::ostream& out) {
  if (golden.empty())
    throw ExportError(path +
                      " is a language model; give golden results to compare with: "
                      "`taper check MODEL GOLDEN.safetensors`");
  const io::SafeTensors want = io::read_safetensors(golden);
  if (llm::is_encoder(path)) return check_encoder(path, want, golden, out);
  llm::LoadOptions load;
  load.most_capacity = longest_golden_text;
  const llm::Model model = llm::load(path, load);
  const std::string prefix = prefix_of(model, want);
  llm::EagerRunner eager_runner(*model.decoder);
  bool passed = print(out, "eager", compare_with_golden(eager_runner, want, prefix));
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = longest_golden_text, .all_logits = true});
  llm::ProgramRunner program(exporter.write(ExportOptions{.exact = true}), eager::threads());
  passed = print(out, "program", compare_with_golden(program, want, prefix)) && passed;
  if (!passed) throw ExportError("the results of " + path + " differ from " + golden);
}

void export_language_model(const std::string& path, const std::string& output,
                           const LanguageModelExport& choice, const ExportOptions& options,
                           std::ostream& out) {
  if (choice.context.value_or(1) < 1) throw ExportError("--context: it must be positive");
  Stages stages(5 + (choice.quantization != nullptr ? choice.quantization->stages() : 0));
  ExportOptions written = options;
  written.stage = [&](const std::string& stage) { stages.begin(stage); };
  if (choice.quantization != nullptr) choice.quantization->add_to(written, stages);
  stages.begin("loading");
  if (llm::is_encoder(path)) {
    if (choice.context || choice.all_logits)
      throw ExportError(path + ": an encoder has neither a context nor logits");
    out << export_encoder(path, output, written);
    return;
  }
  llm::LoadOptions load;
  load.capacity = choice.context.value_or(0);
  const llm::Model model = llm::load(path, load);
  stages.begin("tracing");
  Exporter exporter;
  const std::vector<io::Asset> assets = llm::text_assets(path, model.config);
  for (const io::Asset& asset : assets) exporter.asset(asset);
  add_methods(exporter, *model.decoder, {.chunk = choice.chunk, .all_logits = choice.all_logits});
  const emit::Report report = exporter.write(output, written);
  const int64_t token = cache_bytes_of_token(model.config), positions = model.config.capacity;
  out << report << "a context of " << positions << " tokens takes "
      << io::bytes_text(token * positions) << ": " << io::bytes_text(token) << " for each token\n";
  if (assets.empty())
    out << "without a tokenizer, which " << io::printable(path)
        << " lacks: programs must give it tokens, not text\n";
}

}  // namespace taper::cli
