#include "taper/exporter/cli/answer.h"

#include <filesystem>
#include <iostream>

#include "taper/exporter/cli/language_model.h"
#include "taper/exporter/cli/quantization.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/llm/named_adapter.h"
#include "taper/exporter/llm/program_cache.h"
#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

namespace taper::cli {
namespace {

std::string recipe_of(const std::string& quantize) {
  if (quantize == "int8") return "int8-dynamic";
  if (quantize == "int4") return "int4-g32";
  return quantize;
}

/// A recipe in a file is known by its text.
std::string content_of_recipe(const std::string& recipe) {
  return std::filesystem::is_regular_file(recipe) ? text_of_file(recipe) : recipe;
}

using ReadGrammar = Result<llm::Grammar> (*)(std::string_view, std::string*);
llm::Grammar read_with(ReadGrammar read, const std::string& text, const std::string& name) {
  std::string why;
  Result<llm::Grammar> grammar = read(text, &why);
  if (!grammar.ok()) throw ExportError(name + ": " + why);
  return std::move(grammar).value();
}

}  // namespace

std::string text_of_file(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ModelChoice::add_to(Command& command) {
  command
      .option("MODEL", model,
              "a folder as Hugging Face writes it, a .gguf file, or a program that export wrote")
      .required();
  command.option("--context", context, "the most tokens of a conversation; 0: up to 4096");
  command.option("--quantize RECIPE", quantize,
                 "store weights in a few bits: int8, int4, or a recipe of `taper quantize`");
  add_cache_dtype(command, cache_dtype);
  command
      .option("--lora ADAPTER", lora,
              "a LoRA adapter for the model: a folder of PEFT, or a .gguf file; NAME=ADAPTER for "
              "each of several, among which texts choose")
      .one_value();
  command.flag("--exact", exact, "compute in f32 on de-quantized weights");
  command.option("--threads", threads, "the threads that compute; 0: one for each core")
      .in_range(0, max_threads);
  add_no_cache(command, no_cache);
}

void ModelChoice::add_no_cache(Command& command, bool& given) {
  command.flag("--no-cache", given,
               "make the model's program anew, and keep none for the next start (`taper cache`)");
}

void ModelChoice::add_one_lora(Command& command, std::string& given) {
  command.option("--lora ADAPTER", given,
                 "a LoRA adapter for the model: a folder of PEFT, or a .gguf file");
}

std::vector<std::string> ModelChoice::one_lora(const std::string& given) {
  if (given.empty()) return {};
  if (!llm::adapter_files({given}).by_name.empty())
    throw ExportError("--lora " + given +
                      ": this command uses one adapter; give it without a name");
  return {given};
}

llm::LanguageModel ModelChoice::load() const {
  if (context < 0) throw UsageError("--context", "it must not be negative");
  // before the wait for the model
  if (!draft.empty() && draft != "lookup" && !std::filesystem::exists(draft))
    throw ExportError("--draft " + draft + ": there is no such file; give a model, or lookup");
  if (threads > 0) eager::set_threads(threads);
  QuantizeChoice choice;
  choice.recipe = recipe_of(quantize);
  llm::TextModelOptions options;
  std::string caches = cache_dtype;
  take_cache_recipe(choice.recipe, caches);
  options.cache_type = llm::cache_type_named(caches);
  options.edit = content_of_recipe(choice.recipe);
  Quantization quantization(choice, model);
  Stages stages(6 + quantization.stages());
  ExportOptions written;
  quantization.add_to(written, stages);
  options.exact = exact, options.context = context, options.threads = eager::threads();
  options.before_passes = written.before_passes, options.draft = !draft.empty();
  options.states = states, options.rows = rows, options.lora = lora;
  if (!no_cache) options.cache = llm::ProgramCache::default_folder();
  options.note = [](const std::string& text) { std::cerr << "taper: " << text << '\n'; };
  options.stage = [&](const std::string& stage) { stages.begin(stage); };
  llm::LanguageModel loaded = llm::load_text_model(model, options);
  if (!draft.empty() && !loaded.text().rewinds)
    throw ExportError(model + ": --draft needs a model that can forget its last tokens");
  if (!draft.empty() && !loaded.has_all_logits())
    throw ExportError(model +
                      ": --draft needs a program with the logits of all tokens; export it "
                      "with --all-logits");
  return loaded;
}

std::shared_ptr<llm::Draft> ModelChoice::draft_for(const llm::LanguageModel& loaded) const {
  if (draft.empty()) return nullptr;
  if (draft == "lookup") return llm::lookup_draft();
  ModelChoice small;
  small.model = draft, small.threads = threads;
  if (is_language_model(draft)) small.context = context;  // a program has its own
  small.no_cache = no_cache;
  std::string why;
  Result<std::shared_ptr<llm::Draft>> made = llm::model_draft(small.load(), loaded, &why);
  if (!made.ok()) throw ExportError("--draft " + draft + ": " + why);
  return std::move(made.value());
}

void AnswerOptions::add_to(Command& command) {
  model.add_to(command);
  command.option("--adapter NAME", adapter, "which of the adapters with names answers");
  command.option("--max-tokens", max_tokens, "the most tokens of an answer").shows_default();
  command.flag("--greedy", greedy, "always take the most likely token");
  command.option(
      "--temperature", temperature,
      "0: the most likely token. Without it and the next three: as the model recommends, "
      "or 0.7, 40, 0.95 and 0");
  command.option("--top-k", top_k, "only so many likely tokens; 0: all");
  command.option("--top-p", top_p, "only likely tokens, of this probability together");
  command.option("--min-p", min_p, "only tokens of this part of the largest probability");
  command.option("--repetition-penalty", repetition_penalty, "above 1: avoid tokens of the text");
  command.option("--seed", seed, "equal seeds give equal answers");
  command.option("--stop", stop, "a text that ends the answer; may be given several times")
      .one_value();
  command.option("--draft lookup|MODEL", model.draft,
                 "guess tokens from the text so far, or with a smaller model, and read them at "
                 "once; equal answers");
  command.option("--grammar", grammar, "a file in GBNF: answers are texts of this grammar");
  command.option("--json-schema", json_schema,
                 "a file, or the schema itself: answers are JSON that it accepts");
}

void AnswerOptions::check() const {
  if (max_tokens < 1) throw UsageError("--max-tokens", "it must be positive");
  const auto require = [](const char* option, const std::optional<double>& value, double least,
                          double most, const char* range) {
    // the comparisons are false for NaN
    if (value && !(*value >= least && *value <= most)) throw UsageError(option, range);
  };
  require("--temperature", temperature, 0, 100, "it must be from 0 to 100");
  require("--top-p", top_p, 0, 1, "it must be from 0 to 1");
  require("--min-p", min_p, 0, 1, "it must be from 0 to 1");
  require("--repetition-penalty", repetition_penalty, 0.01, 100, "it must be from 0.01 to 100");
  if (top_k && (*top_k < 0 || *top_k > (1 << 30)))
    throw UsageError("--top-k", "it must be from 0 to 2^30");
  static_cast<void>(language());  // its errors come before the wait for the model
}

std::optional<llm::Grammar> AnswerOptions::language() const {
  if (!grammar.empty() && !json_schema.empty())
    throw UsageError("give either --grammar or --json-schema");
  if (!grammar.empty()) return read_with(llm::Grammar::from_gbnf, text_of_file(grammar), grammar);
  if (json_schema.empty()) return std::nullopt;
  if (json_schema.starts_with('{'))
    return read_with(llm::Grammar::from_json_schema, json_schema, "--json-schema");
  return read_with(llm::Grammar::from_json_schema, text_of_file(json_schema), json_schema);
}

std::shared_ptr<llm::GrammarMatcher> AnswerOptions::matcher(const llm::LanguageModel& of) const {
  const std::optional<llm::Grammar> read = language();
  if (!read) return nullptr;
  return std::make_shared<llm::GrammarMatcher>(*read, llm::TokenTexts(of.tokenizer()));
}

llm::SamplingOptions AnswerOptions::sampling(const llm::LanguageModel& from) const {
  llm::SamplingOptions s = from.text().sampling;
  const auto set = [](float& to, const std::optional<double>& value) {
    if (value) to = static_cast<float>(*value);
  };
  set(s.temperature, temperature), set(s.top_p, top_p), set(s.min_p, min_p);
  set(s.repetition_penalty, repetition_penalty);
  if (top_k) s.top_k = static_cast<int>(*top_k);
  if (greedy) s.temperature = 0;
  s.seed = static_cast<uint64_t>(seed);
  return s;
}

}  // namespace taper::cli
