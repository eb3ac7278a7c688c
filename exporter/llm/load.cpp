// Models out of files.
#include <algorithm>
#include <filesystem>

#include "taper/exporter/base/error.h"
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/new_adapter.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

bool is_gguf(const std::filesystem::path& path) { return path.extension() == ".gguf"; }

Model build(Config config, Checkpoint checkpoint, const LoadOptions& options,
            const std::string& tower = "") {
  apply(options, config);
  for (const NamedAdapter& adapter : options.adapters) config.adapters.push_back(adapter.name);
  const std::shared_ptr<Tensor> chosen = checkpoint.add_adapters(options.adapters);
  checkpoint.add_new_adapter(options.trained), checkpoint.store_matrices(options.stored);
  const Weights all(checkpoint);
  auto decoder = std::make_unique<Decoder>(config, tower.empty() ? all : all[tower]);
  checkpoint.require_all_read();
  if (options.trained != nullptr) options.trained->require_all_used();
  decoder->chosen_adapters = chosen;
  return {config, std::move(decoder), "", {}};
}

/// The text of a model that also sees images.
Model build_text_part(const huggingface::Folder& folder, const LoadOptions& options) {
  Checkpoint checkpoint(folder, options.lora);
  for (const std::string prefix : {"", "model."})
    for (const char* part : {"vision_tower.", "vision_model.", "multi_modal_projector."})
      checkpoint.ignore(prefix + part);
  return build(read_text_part_config(folder.config()), std::move(checkpoint), options, "language");
}

}  // namespace

void apply(const LoadOptions& options, Config& config) {
  if (options.capacity < 0 || options.batch < 1)
    throw ExportError("the context and the batch must be positive");
  if (options.capacity > 0) config.capacity = options.capacity;
  if (options.most_capacity > 0) config.capacity = std::min(config.capacity, options.most_capacity);
  config.batch = options.batch;
  config.cache = options.cache;
  const bool jumps = config.window_jumps && config.window > 0 && config.capacity > config.window;
  if (config.cache == CacheType::f32 || (config.distance_buckets == 0 && !jumps)) return;
  throw ExportError(
      jumps ? "caches must be f32 where windows jump; or ask for a context of at most " +
                  std::to_string(config.window)
            : "caches must be f32 in a model with a bias for each distance");
}

void refuse_named_adapters(const LoadOptions& options) {
  if (!options.adapters.empty())
    throw ExportError(
        "it takes one adapter; give --lora without a name. Names are for models that only write");
  if (options.trained != nullptr || options.stored)
    throw ExportError("adapters are trained of models that only write");
}

bool is_language_model(const std::string& path) {
  return is_gguf(path) || huggingface::is_model_folder(path);
}

Model load(const std::string& path, const LoadOptions& options) {
  return naming(path, [&] {
    if (is_gguf(path)) {
      const gguf::File file(path);
      Model model = build(read_config(file.content()), Checkpoint(file, options.lora), options);
      if (options.trained != nullptr)
        options.trained->set_architecture(
            std::string(file.content().text("general.architecture").value_or("")));
      model.stored_type = gguf::type_name(file.content().tensors.at("token_embd.weight").type);
      model.files = {{std::filesystem::path(path).filename().string(), file.mapping()}};
      return model;
    }
    const huggingface::Folder folder(path, options.config);
    Model model = has_text_part(folder.config()) ? build_text_part(folder, options)
                                                 : build(read_config(folder.config()),
                                                         Checkpoint(folder, options.lora), options);
    model.files = folder.files();
    return model;
  });
}

}  // namespace taper::llm
