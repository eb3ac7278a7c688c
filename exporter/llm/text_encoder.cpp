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

}  // namespace

struct TextEncoder::Parts {
  std::string path;
  std::optional<Tokenizer> tokenizer;
  std::vector<std::byte> program;  // at a multiple of 16, as operator new gives them
  std::optional<Module> module;
  size_t longest = 0;
  int64_t width = 0;
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
  const std::unique_ptr<Encoder> encoder = load_encoder(path);
  p.longest = longest_text(path, encoder->config.context);
  p.width = encoder->config.hidden;

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

int64_t TextEncoder::width() const { return parts_->width; }

std::vector<TokenId> TextEncoder::tokens(const std::string& text) const {
  std::vector<TokenId> ids = parts_->tokenizer->encode(text);
  if (ids.size() > parts_->longest) {
    const TokenId last = ids.back();  // the token that ends every text
    ids.resize(parts_->longest);
    ids.back() = last;
  }
  return ids;
}

std::vector<float> TextEncoder::embed(const std::string& text) {
  Parts& p = *parts_;
  const std::vector<TokenId> ids = tokens(text);
  if (ids.empty()) throw ExportError(p.path + ": a text without tokens has no embedding");
  const std::vector<int64_t> wide(ids.begin(), ids.end()), mask(ids.size(), 1);
  const auto count = static_cast<index_t>(ids.size());
  std::vector<float> embedding(static_cast<size_t>(p.width));
  const Error error = p.module->run(
      "embed", {Input(wide.data(), {1, count}), Input(mask.data(), {1, count})}, {embedding});
  if (error != Error::ok) throw ExportError(p.path + ": " + p.module->message());
  return embedding;
}

}  // namespace taper::llm
