#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/llm/text_encoder.h"

namespace taper::cli {
namespace {

struct EmbedArguments {
  std::string model, texts, output;
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

void embed(const EmbedArguments& a, std::ostream& out) {
  const std::vector<std::string> texts = read_texts(a.texts);
  llm::TextEncoderOptions options;
  options.threads = eager::threads();
  std::unique_ptr<llm::TextEncoder> encoder;
  {
    Stages stages(5);
    options.stage = [&](const std::string& stage) { stages.begin(stage); };
    encoder = std::make_unique<llm::TextEncoder>(a.model, options);
  }
  io::SafeTensors result;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> embedding = encoder->embed(texts[i]);
    result.tensors.emplace("embedding" + std::to_string(i),
                           io::Array::of<float>({encoder->width()}, embedding));
  }
  io::write_safetensors(a.output, result);
  out << a.output << ": " << texts.size() << " embeddings of " << encoder->width() << " elements\n";
}

}  // namespace

void add_embed_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<EmbedArguments>();
  Command command = line.add("embed", "Turns texts into vectors whose products compare them.");
  command.option("MODEL", arguments->model, "a folder with a text encoder, such as BERT")
      .required();
  command.option("--texts", arguments->texts, "a JSON list of texts").required();
  command
      .option("-o,--output FILE.safetensors", arguments->output,
              "gets the tensors embedding0, embedding1, …")
      .required();
  command.does([arguments, &out] { embed(*arguments, out); });
}

}  // namespace taper::cli
