#include <bit>
#include <cstring>
#include <utility>

#include "taper/exporter/serve/members.h"

namespace taper::serve {
namespace {

constexpr size_t most_texts = 2048;  // as OpenAI's servers

std::string base64(const std::vector<float>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace

EmbeddingRequest read_embedding_request(const std::string& body, llm::Embedder& embedder,
                                        const std::string& model_id) {
  const json object = parse_request(body);
  Members request(object);
  check_model(request, model_id);
  EmbeddingRequest read;
  const std::string format = request.text_or("encoding_format", "float");
  if (format != "float" && format != "base64")
    refuse("encoding_format", "it must be float or base64");
  read.is_base64 = format == "base64";
  read.texts = token_lists(request, "input", embedder.tokenizer());
  request.ignore({"user"});
  request.refuse_others();
  if (read.texts.size() > most_texts)
    refuse("input", "it has more than " + std::to_string(most_texts) + " texts");
  for (const std::vector<llm::TokenId>& text : read.texts) {
    if (text.empty()) refuse("input", "a text has no tokens");
    if (static_cast<int64_t>(text.size()) > embedder.longest())
      throw ApiError(400,
                     "a text has " + std::to_string(text.size()) + " tokens, but the model reads " +
                         std::to_string(embedder.longest()) + " at most",
                     "input", "context_length_exceeded");
  }
  return read;
}

json embedding_response(const EmbeddingRequest& request, const std::string& model_id,
                        const std::vector<std::vector<float>>& embeddings) {
  size_t tokens = 0;
  json data = json::array();
  for (size_t i = 0; i < embeddings.size(); ++i) {
    tokens += request.texts[i].size();
    data.push_back(
        {{"object", "embedding"},
         {"index", i},
         {"embedding", request.is_base64 ? json(base64(embeddings[i])) : json(embeddings[i])}});
  }
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", model_id},
          {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

}  // namespace taper::serve
