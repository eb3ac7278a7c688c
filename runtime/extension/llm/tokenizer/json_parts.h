#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "taper/runtime/extension/llm/tokenizer/pipeline.h"

namespace taper::llm {

// The parts of tokenizer.json. All throw a Failure that names the part.

/// A member that must be a text.
std::string text_of(const nlohmann::json& object, const char* name, const std::string& where);
/// A member that may be absent or null: then empty.
std::string optional_text_of(const nlohmann::json& object, const char* name);
bool flag_of(const nlohmann::json& object, const char* name, bool otherwise);
int64_t number_of(const nlohmann::json& object, const char* name, int64_t otherwise);

void read_normalizer(const nlohmann::json& root, Pipeline& pipeline);
/// Returns true if words are bytes, which the model itself reads (`model_reads_bytes`).
bool read_pre_tokenizer(const nlohmann::json& root, bool model_reads_bytes, Pipeline& pipeline);
void read_post_processor(const nlohmann::json& root, Pipeline& pipeline);
void read_decoder(const nlohmann::json& root, Pipeline& pipeline);

}  // namespace taper::llm
