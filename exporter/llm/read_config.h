// Configurations out of files.
#pragma once
#include <nlohmann/json.hpp>

#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/llm/config.h"

namespace taper::llm {

struct Seq2SeqConfig;
struct ImageConfig;
struct ImageModelConfig;
struct VisionLanguageConfig;

/// Of a config.json, in the present spelling (`rope_parameters`, `dtype`) or the older one
/// (`rope_theta`, `rope_scaling`, `torch_dtype`). Throws ExportError for families that are unknown,
/// keys that are missing or of a wrong type, and values that change results and are not supported.
Config read_config(const nlohmann::json& json);

/// Of an encoder's config.json: BERT. The same errors.
Config read_encoder_config(const nlohmann::json& json);

/// Of the config.json of a model that reads a source: T5, Whisper. The same errors.
Seq2SeqConfig read_seq2seq_config(const nlohmann::json& json);

/// Of the config.json of a model of images: CLIP's vision model, SigLIP. The same errors.
ImageModelConfig read_image_config(const nlohmann::json& json);

/// Of the `vision_config` in it, or the same as a file of its own.
ImageConfig read_image_tower_config(const nlohmann::json& json);
/// The object of this name; it must be there.
const nlohmann::json& json_part(const nlohmann::json& file, const char* name);

/// Of the config.json of a model that sees images and writes a text: LLaVA, SmolVLM. The same
/// errors.
VisionLanguageConfig read_vision_language_config(const nlohmann::json& json);

/// Whether a config.json is that of a model with images of which Taper runs the text alone.
bool has_text_part(const nlohmann::json& json);
/// Of its text; the same errors.
Config read_text_part_config(const nlohmann::json& json);

/// Of a GGUF file's metadata; the same errors.
Config read_config(const gguf::Content& gguf);

/// Throws ExportError if sizes do not fit each other, or are not positive.
void check(const Config& config);

/// "silu" and the like for any of the names that files use. Throws ExportError for others.
std::string activation_named(const std::string& name);

}  // namespace taper::llm
