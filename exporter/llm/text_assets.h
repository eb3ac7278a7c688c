// What stands beside the weights of a language model, as assets of its program: the tokenizer, the
// chat template, and which tokens end an answer. docs/format.md lists them, and
// runtime/extension/llm/text_parts.h reads them.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/io/asset.h"
#include "taper/exporter/llm/config.h"
#include "taper/runtime/extension/llm/gguf_vocabulary.h"

namespace taper::gguf {
class File;
}

namespace taper::llm {

/// Reads them from a Hugging Face folder or a .gguf file. Empty if it has no tokenizer. Throws
/// ExportError, which names the file, for one that is damaged.
std::vector<io::Asset> text_assets(const std::string& path, const Config& config);

/// The vocabulary of a .gguf file; without tokens if the file has no tokenizer.
GgufVocabulary gguf_vocabulary(const gguf::File& file);

}  // namespace taper::llm
