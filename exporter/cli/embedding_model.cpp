#include "taper/exporter/cli/embedding_model.h"

#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/llm/encoder.h"
#include "taper/exporter/llm/text_encoder.h"

namespace taper::cli {

bool is_encoder(const std::string& path) { return llm::is_encoder(path); }

std::unique_ptr<llm::Embedder> load_encoder(const std::string& path, const std::string& pooling,
                                            const std::string& lora) {
  llm::TextEncoderOptions options;
  options.lora = lora;
  options.threads = eager::threads(), options.pooling = pooling_named(pooling);
  Stages stages(5);
  options.stage = [&](const std::string& stage) { stages.begin(stage); };
  return std::make_unique<llm::TextEncoder>(path, options);
}

std::unique_ptr<llm::Embedder> embedder_of(const llm::LanguageModel& model,
                                           const std::string& pooling) {
  if (!model.has_states()) return nullptr;
  return std::make_unique<llm::LanguageModelEmbedder>(
      model, pooling_named(pooling).value_or(llm::Pooling::last));
}

void add_pooling(Command& command, std::string& pooling) {
  command
      .option("--pooling", pooling,
              "which states of a text's tokens are its embedding: their mean, the first or the "
              "last; by default what the model's files say, or the mean for an encoder and the "
              "last for a model that writes")
      .one_of({"mean", "first", "last"});
}

std::optional<llm::Pooling> pooling_named(const std::string& pooling) {
  if (pooling == "mean") return llm::Pooling::mean;
  if (pooling == "first") return llm::Pooling::first;
  if (pooling == "last") return llm::Pooling::last;
  return std::nullopt;
}

}  // namespace taper::cli
