#include "taper/exporter/llm/tokenizer_file.h"

#include <filesystem>

#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/llm/text_assets.h"

namespace taper::llm {
namespace {

namespace fs = std::filesystem;

Tokenizer checked(const std::string& path, Result<Tokenizer> tokenizer, const std::string& why) {
  if (!tokenizer.ok()) throw ExportError(path + ": its tokenizer cannot be read: " + why);
  return std::move(tokenizer.value());
}

}  // namespace

Tokenizer read_tokenizer(const std::string& path) {
  std::string why;
  if (!fs::is_directory(path)) {
    const GgufVocabulary vocabulary = gguf_vocabulary(gguf::File(path));
    if (vocabulary.tokens.empty()) throw ExportError(path + ": it has no tokenizer");
    return checked(path, Tokenizer::from_gguf(vocabulary, &why), why);
  }
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (const fs::path file = fs::path(path) / name; fs::exists(file))
      return checked(path, Tokenizer::load(file.string(), &why), why);
  throw ExportError(path + ": it has no tokenizer; put a tokenizer.json beside its weights");
}

}  // namespace taper::llm
