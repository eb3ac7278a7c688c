#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/embedding_model.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::cli {
namespace {

struct EmbedArguments {
  std::string model, texts, output, pooling, lora;
  bool no_cache = false;
};

/// A list of texts, or of objects with `text`.
std::vector<std::string> read_texts(const std::string& path) {
  const nlohmann::json file = nlohmann::json::parse(text_of_file(path), nullptr, false);
  std::vector<std::string> texts;
  if (file.is_array()) {
    for (const nlohmann::json& item : file) {
      const nlohmann::json& text = item.is_object() && item.contains("text") ? item["text"] : item;
      if (!text.is_string()) break;
      texts.push_back(text.get<std::string>());
    }
  }
  if (!file.is_array() || texts.size() != file.size())
    throw ExportError(path + ": it must be a JSON list of texts");
  return texts;
}

std::unique_ptr<llm::Embedder> load_embedder(const EmbedArguments& a) {
  ModelChoice choice;
  choice.lora = ModelChoice::one_lora(a.lora);
  if (is_encoder(a.model)) return load_encoder(a.model, a.pooling, a.lora);
  choice.model = a.model, choice.states = true, choice.no_cache = a.no_cache;
  std::unique_ptr<llm::Embedder> embedder = embedder_of(choice.load(), a.pooling);
  if (embedder == nullptr)
    throw ExportError(a.model + ": the program does not give states; export it with --states");
  return embedder;
}

void embed(const EmbedArguments& a, std::ostream& out) {
  const std::vector<std::string> texts = read_texts(a.texts);
  const std::unique_ptr<llm::Embedder> embedder = load_embedder(a);
  io::SafeTensors result;
  size_t width = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<llm::TokenId> ids = embedder->tokens(texts[i]);
    std::string why;
    const Result<std::vector<float>> embedding =
        embedder->embed({ids.data(), static_cast<index_t>(ids.size())}, &why);
    if (!embedding.ok())
      throw ExportError(a.model + ": text " + std::to_string(i) + " of " + a.texts + ": " + why);
    width = embedding.value().size();
    result.tensors.emplace("embedding" + std::to_string(i),
                           io::Array::of<float>({static_cast<int64_t>(width)}, embedding.value()));
  }
  io::write_safetensors(a.output, result);
  out << a.output << ": " << texts.size() << " embeddings of " << width << " elements\n";
}

}  // namespace

void add_embed_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<EmbedArguments>();
  Command command = line.add("embed", "Turns texts into vectors whose products compare them.");
  command
      .option("MODEL", arguments->model,
              "a folder with a text encoder such as BERT, or a language model")
      .required();
  command.option("--texts", arguments->texts, "a JSON list of texts").required();
  command
      .option("-o,--output FILE.safetensors", arguments->output,
              "gets the tensors embedding0, embedding1, …")
      .required()
      .checked_by(check_written);
  add_pooling(command, arguments->pooling);
  ModelChoice::add_one_lora(command, arguments->lora);
  ModelChoice::add_no_cache(command, arguments->no_cache);
  command.does([arguments, &out] { embed(*arguments, out); });
}

}  // namespace taper::cli
