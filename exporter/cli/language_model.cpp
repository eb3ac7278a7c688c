#include "taper/exporter/cli/language_model.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "taper/exporter/cli/quantization.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/llm/new_adapter.h"
#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/text_assets.h"

namespace taper::cli {
namespace {

/// Golden results have no longer texts.
constexpr int64_t longest_golden_text = 1024;
constexpr int64_t most_parallel = 256;

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

/// Whether a model gives the golden results.
bool check_encoder(const std::string& path, const io::SafeTensors& want, std::ostream& out) {
  const std::unique_ptr<llm::Encoder> encoder = llm::load_encoder(path);
  return print(out, "eager", compare_with_golden(*encoder, want));
}

llm::LoadOptions options_of_check() {
  llm::LoadOptions options;
  options.most_capacity = longest_golden_text;
  return options;
}

template <class Model>
std::vector<std::byte> program_of(Model& model) {
  Exporter exporter;
  add_methods(exporter, model, {.chunk = longest_golden_text, .all_logits = true});
  return exporter.write(ExportOptions{.exact = true});
}

bool check_seq2seq(const std::string& path, const io::SafeTensors& want, std::ostream& out) {
  const std::unique_ptr<llm::Seq2Seq> model = llm::load_seq2seq(path, options_of_check());
  llm::EagerSeq2SeqRunner eager_runner(*model);
  const bool passed = print(out, "eager", compare_with_golden(eager_runner, want));
  llm::ProgramSeq2SeqRunner program(program_of(*model), eager::threads());
  return print(out, "program", compare_with_golden(program, want)) && passed;
}

bool check_vision(const std::string& path, const io::SafeTensors& want, std::ostream& out) {
  const auto model = llm::load_vision_language(path, options_of_check());
  llm::EagerVisionRunner eager_runner(*model);
  const bool passed = print(out, "eager", compare_with_golden(eager_runner, want));
  llm::ProgramVisionRunner program(program_of(*model), model->config.text.image_token,
                                   eager::threads());
  return print(out, "program", compare_with_golden(program, want)) && passed;
}

bool check_image_model(const std::string& path, const io::SafeTensors& want, std::ostream& out) {
  const std::unique_ptr<llm::ImageModel> model = llm::load_image_model(path);
  llm::EagerImageRunner eager_runner(*model);
  const bool passed = print(out, "eager", compare_with_golden(eager_runner, want));
  Exporter exporter;
  add_methods(exporter, *model);
  llm::ProgramImageRunner program(exporter.write(ExportOptions{.exact = true}), eager::threads());
  return print(out, "program", compare_with_golden(program, want)) && passed;
}

bool check_decoder(const llm::Model& model, const io::SafeTensors& want, std::ostream& out) {
  const std::string prefix = prefix_of(model, want);
  llm::EagerRunner eager_runner(*model.decoder);
  const bool passed = print(out, "eager", compare_with_golden(eager_runner, want, prefix));
  llm::ProgramRunner program(program_of(*model.decoder), eager::threads());
  return print(out, "program", compare_with_golden(program, want, prefix)) && passed;
}

/// With LongRoPE, long texts and others belong to different contexts.
bool check_decoder(const std::string& path, const io::SafeTensors& want, std::ostream& out) {
  llm::LoadOptions options = options_of_check();
  const llm::Model model = llm::load(path, options);
  const io::SafeTensors results = results_of_context(model.config, want);
  if (!model.config.rotary.is_long(model.config.capacity))
    return check_decoder(model, results, out);
  const bool passed = results.tensors.empty() || check_decoder(model, results, out);
  options.capacity = model.config.rotary.original_context;
  const llm::Model shorter = llm::load(path, options);
  return check_decoder(shorter, results_of_context(shorter.config, want), out) && passed;
}

/// An encoder, or a model of images: they have no options of their own.
template <class Model>
emit::Report export_plain(Model& model, const std::string& output, const ExportOptions& options) {
  Exporter exporter;
  add_methods(exporter, model);
  return exporter.write(output, options);
}

template <class Model>
emit::Report export_writer(Model& model, const std::string& output,
                           const LanguageModelExport& choice, const ExportOptions& options,
                           const std::vector<io::Asset>& assets = {}) {
  Exporter exporter;
  for (const io::Asset& asset : assets) exporter.asset(asset);
  add_methods(exporter, model,
              {.chunk = choice.chunk,
               .all_logits = choice.all_logits,
               .states = choice.states,
               .by_row = choice.parallel.has_value()});
  return exporter.write(output, options);
}

/// Of models with a state space, 0: their states have the same size whatever the context.
int64_t cache_bytes_of_token(const llm::Config& c) {
  if (c.inner > 0) return 0;
  int64_t caches = 0;
  for (int64_t i = 0; i < c.layers; ++i)
    caches += c.heads > 0 && !c.convolutional[static_cast<size_t>(i)] ? 1 : 0;
  return caches * c.kv_heads * llm::bytes_of_token(c.cache, c.head_dim);
}

void print(std::ostream& out, const emit::Report& report, const llm::Seq2SeqConfig& config) {
  const llm::Config& c = config.decoder;
  const auto bytes = [&](llm::CacheType type, int64_t positions) {
    return c.layers * c.heads * positions * llm::bytes_of_token(type, c.head_dim);
  };
  const int64_t source = bytes(c.source_cache, c.source_capacity),
                text = bytes(c.cache, c.capacity);
  out << report << "a source takes " << io::bytes_text(source * c.batch)
      << " of caches, and a text of " << c.capacity << " tokens " << io::bytes_text(text * c.batch)
      << '\n';
}

void print(std::ostream& out, const emit::Report& report, const llm::Config& config) {
  const int64_t token = cache_bytes_of_token(config), positions = config.capacity;
  out << report;
  if (token == 0) {
    out << "each text takes the same memory, however long it is\n";
    return;
  }
  out << "a context of " << positions << " tokens takes " << io::bytes_text(token * positions)
      << ": " << io::bytes_text(token) << " for each token\n";
  if (config.batch > 1)
    out << "the caches hold " << config.batch
        << " texts: " << io::bytes_text(token * positions * config.batch)
        << " if all are that long\n";
}

}  // namespace

bool is_language_model(const std::string& path) { return llm::is_language_model(path); }

void check_language_model(const std::string& path, const std::string& golden, std::ostream& out) {
  if (golden.empty())
    throw ExportError(path +
                      " is a language model; give golden results to compare with: "
                      "`taper check MODEL GOLDEN.safetensors`");
  const io::SafeTensors want = io::read_safetensors(golden);
  const bool passed = llm::is_encoder(path)           ? check_encoder(path, want, out)
                      : llm::is_seq2seq(path)         ? check_seq2seq(path, want, out)
                      : llm::is_image_model(path)     ? check_image_model(path, want, out)
                      : llm::is_vision_language(path) ? check_vision(path, want, out)
                                                      : check_decoder(path, want, out);
  if (!passed) throw ExportError("the results of " + path + " differ from " + golden);
}

void export_language_model(const std::string& path, const std::string& output,
                           const LanguageModelExport& choice, const ExportOptions& options,
                           std::ostream& out) {
  if (choice.context.value_or(1) < 1) throw ExportError("--context: it must be positive");
  if (const int64_t texts = choice.parallel.value_or(1); texts < 1 || texts > most_parallel)
    throw ExportError("--parallel: it must be from 1 to " + std::to_string(most_parallel));
  Stages stages(5 + (choice.quantization != nullptr ? choice.quantization->stages() : 0));
  ExportOptions written = options;
  written.stage = [&](const std::string& stage) { stages.begin(stage); };
  if (choice.quantization != nullptr) choice.quantization->add_to(written, stages);
  stages.begin("loading");
  const bool encodes = llm::is_encoder(path);
  if (choice.cache_dtype != "f32" && (encodes || llm::is_image_model(path)))
    throw ExportError(path +
                      ": --cache-dtype is for models that write; this one has no caches, so leave "
                      "the option out");
  if (choice.lora_slots && (encodes || llm::is_image_model(path) || llm::is_seq2seq(path) ||
                            llm::is_vision_language(path)))
    throw ExportError(path + ": --lora-slots is for models that only write");
  const llm::AdapterFiles adapters = llm::adapter_files(choice.lora);
  if (encodes || llm::is_image_model(path)) {
    if (choice.context || choice.all_logits || choice.states || choice.parallel)
      throw ExportError(path +
                        ": an encoder has neither a context nor logits, and gives all states");
    if (!adapters.by_name.empty())
      throw ExportError(path + ": it takes one adapter; give --lora without a name");
    out << (encodes ? export_plain(*llm::load_encoder(path, adapters.always), output, written)
                    : export_plain(*llm::load_image_model(path, adapters.always), output, written));
    return;
  }
  llm::LoadOptions load;
  load.capacity = choice.context.value_or(0);
  load.lora = adapters.always, load.adapters = adapters.by_name;
  load.cache = llm::cache_type_named(choice.cache_dtype);
  if (choice.parallel) load.batch = *choice.parallel + (choice.states ? 1 : 0);
  if (llm::is_seq2seq(path)) {
    if (choice.states) throw ExportError(path + ": --states is for models that only write");
    const auto model = llm::load_seq2seq(path, load);
    const emit::Report report = export_writer(*model, output, choice, written);
    print(out, report, model->config);
    return;
  }
  if (llm::is_vision_language(path)) {
    const auto model = llm::load_vision_language(path, load);
    const emit::Report report = export_writer(*model, output, choice, written);
    print(out, report, model->config.text);
    return;
  }
  if (choice.lora_slots) {
    if (!choice.lora.empty())
      throw ExportError(
          "--lora-slots leaves room for an adapter that is given later; without it, "
          "--lora puts adapters into the program");
    const auto rank = static_cast<double>(*choice.lora_slots);
    load.trained = std::make_shared<llm::NewAdapter>(
        llm::NewAdapterOptions{.rank = *choice.lora_slots, .alpha = rank});
  }
  const llm::Model model = llm::load(path, load);
  if (choice.lora_slots)
    for (const Tensor& p : load.trained->parameters()) written.slots.push_back(p.name());
  stages.begin("tracing");
  const std::vector<io::Asset> assets = llm::text_assets(path, model.config);
  print(out, export_writer(*model.decoder, output, choice, written, assets), model.config);
  if (assets.empty())
    out << "without a tokenizer, which " << io::printable(path)
        << " lacks: programs must give it tokens, not text\n";
}

}  // namespace taper::cli
