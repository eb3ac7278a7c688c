// Models that the commands `embed` and `serve` make vectors with.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "taper/exporter/cli/command_line.h"
#include "taper/runtime/extension/llm/embedder.h"

namespace taper::cli {

/// Whether a path is a folder with an encoder, such as BERT.
bool is_encoder(const std::string& path);
/// `lora`: an adapter; empty: none. Shows the steps if the error stream is a terminal. Throws
/// ExportError.
std::unique_ptr<llm::Embedder> load_encoder(const std::string& path, const std::string& pooling,
                                            const std::string& lora);

/// Of a model that writes; nullptr: its program has no states.
std::unique_ptr<llm::Embedder> embedder_of(const llm::LanguageModel& model,
                                           const std::string& pooling);

/// The option `--pooling`.
void add_pooling(Command& command, std::string& pooling);
/// None: it was not given.
std::optional<llm::Pooling> pooling_named(const std::string& pooling);

}  // namespace taper::cli
