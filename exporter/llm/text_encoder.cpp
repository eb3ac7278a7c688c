#include "taper/exporter/llm/text_encoder.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/tokenizer_file.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::llm {
namespace {

/// What sentence-transformers reads from its own file beside the model; otherwise all positions.
size_t longest_text(const std::filesystem::path& folder, int64_t positions) {
  const auto file = folder / "sentence_bert_config.json";
  if (!std::filesystem::exists(file)) return static_cast<size_t>(positions);
  const nlohmann::json config = huggingface::read_json_object(file);
  const auto length = config.find("max_seq_length");
  if (length == config.end() || !length->is_number_integer()) return static_cast<size_t>(positions);
  return static_cast<size_t>(std::clamp<int64_t>(length->get<int64_t>(), 2, positions));
}

/// What sentence-transformers reads from the folder of its pooling; otherwise the mean.
Pooling pooling_of(const std::filesystem::path& folder) {
  const auto file = folder / "1_Pooling" / "config.json";
  if (!std::filesystem::exists(file)) return Pooling::mean;
  const nlohmann::json config = huggingface::read_json_object(file);
  std::optional<Pooling> pooling;
  for (const auto& [key, value] : config.items()) {
    if (!key.starts_with("pooling_mode_") || value != nlohmann::json(true)) continue;
    const bool is_known = key == "pooling_mode_mean_tokens" || key == "pooling_mode_cls_token" ||
                          key == "pooling_mode_lasttoken";
    if (!is_known || pooling)
      throw ExportError(file.string() +
                        ": only one of the poolings mean, cls and lasttoken is "
                        "supported; choose one with --pooling");
    pooling = key == "pooling_mode_mean_tokens" ? Pooling::mean
              : key == "pooling_mode_cls_token" ? Pooling::first
                                                : Pooling::last;
  }
  return pooling.value_or(Pooling::mean);
}

}  // namespace

struct TextEncoder::Parts {
  std::string path;
  std::optional<Tokenizer> tokenizer;
  std::vector<std::byte> program;  // at a multiple of 16, as operator new gives them
  std::optional<Module> module;
  size_t longest = 0;
  int64_t width = 0;
  Pooling pooling = Pooling::mean;
};

TextEncoder::TextEncoder(const std::string& path, const TextEncoderOptions& options)
    : parts_(std::make_unique<Parts>()) {
  const auto stage = [&](const char* what) {
    if (options.stage) options.stage(what);
  };
  Parts& p = *parts_;
  p.path = path;
  if (!is_encoder(path))
    throw ExportError(path + ": it is no folder with a text encoder, such as BERT");
  stage("loading");
  p.tokenizer = read_tokenizer(path);
  const std::unique_ptr<Encoder> encoder = load_encoder(path, options.lora);
  p.longest = longest_text(path, encoder->config.context);
  p.width = encoder->config.hidden;
  p.pooling = options.pooling ? *options.pooling : pooling_of(path);

  stage("tracing");
  Exporter exporter;
  add_methods(exporter, *encoder, 1);
  ExportOptions written;
  written.quiet = true, written.debug = false, written.stage = options.stage;
  p.program = exporter.write(written);
  std::string why;
  ModuleOptions loaded;
  loaded.threads = options.threads, loaded.message = &why;
  Result<Module> module = Module::load(
      Span<const std::byte>(p.program.data(), static_cast<index_t>(p.program.size())), loaded);
  if (!module.ok()) throw ExportError(path + ": " + why);
  p.module.emplace(std::move(*module));
}
TextEncoder::~TextEncoder() = default;

const Tokenizer& TextEncoder::tokenizer() const { return *parts_->tokenizer; }
int64_t TextEncoder::longest() const { return static_cast<int64_t>(parts_->longest); }
Result<std::vector<float>> TextEncoder::embed(Span<const TokenId> ids, std::string* message) {
  Parts& p = *parts_;
  const auto fail = [&](Error error, const std::string& why) {
    if (message != nullptr) *message = why;
    return error;
  };
  const index_t count = ids.size();
  if (count == 0 || count > longest())
    return fail(Error::invalid_argument, "a text must have 1 to " + std::to_string(longest()) +
                                             " tokens, not " + std::to_string(count));
  const std::vector<int64_t> wide(ids.begin(), ids.end()), mask(wide.size(), 1),
      types(wide.size(), 0);
  std::vector<float> states(wide.size() * static_cast<size_t>(p.width));
  const Error error = p.module->run("forward",
                                    {Input(wide.data(), {1, count}), Input(mask.data(), {1, count}),
                                     Input(types.data(), {1, count})},
                                    {states});
  if (error != Error::ok) return fail(error, p.module->message());
  StatePool pool(p.pooling, p.width);
  pool.add({states.data(), static_cast<index_t>(states.size())});
  return pool.result();
}

}  // namespace taper::llm
