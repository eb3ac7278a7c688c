// Models out of files.
#include <algorithm>
#include <filesystem>

#include "taper/exporter/base/error.h"
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

bool is_gguf(const std::filesystem::path& path) { return path.extension() == ".gguf"; }

Model build(Config config, Checkpoint checkpoint, const LoadOptions& options) {
  apply(options, config);
  auto decoder = std::make_unique<Decoder>(config, Weights(checkpoint));
  checkpoint.require_all_read();
  return {config, std::move(decoder), ""};
}

}  // namespace

void apply(const LoadOptions& options, Config& config) {
  if (options.capacity < 0 || options.batch < 1)
    throw ExportError("the context and the batch must be positive");
  if (options.capacity > 0) config.capacity = options.capacity;
  if (options.most_capacity > 0) config.capacity = std::min(config.capacity, options.most_capacity);
  config.batch = options.batch;
}

bool is_language_model(const std::string& path) {
  return is_gguf(path) || huggingface::is_model_folder(path);
}

Model load(const std::string& path, const LoadOptions& options) {
  return naming(path, [&] {
    if (is_gguf(path)) {
      const gguf::File file(path);
      Model model = build(read_config(file.content()), Checkpoint(file), options);
      model.stored_type = gguf::type_name(file.content().tensors.at("token_embd.weight").type);
      return model;
    }
    const huggingface::Folder folder(path, options.config);
    return build(read_config(folder.config()), Checkpoint(folder), options);
  });
}

}  // namespace taper::llm
