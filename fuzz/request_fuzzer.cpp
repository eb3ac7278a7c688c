// Any bytes are a request to `taper serve`, or an ApiError of status 400. The first byte chooses
// the endpoint: '/' asks for a completion, all others for a chat. What httplib reads before, lines
// and headers of HTTP, is not a part of it.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "taper/exporter/llm/text_model.h"
#include "taper/exporter/serve/api.h"

namespace {

using namespace taper;

/// A pair of GGUF's metadata, `bytes` long: a key and a text, which spaces fill up.
std::string pair_of(const std::string& key, std::string text, size_t bytes) {
  const auto number = [](uint64_t value, size_t width) {
    std::string little;
    for (size_t i = 0; i < width; ++i) little += static_cast<char>(value >> (8 * i) & 0xFF);
    return little;
  };
  text.resize(bytes - key.size() - 8 - 4 - 8, ' ');
  return number(key.size(), 8) + key + number(8, 4) + number(text.size(), 8) + text;
}

/// The model of the stories. Its file has no chat template, so a copy gets one. The pair's size is
/// a multiple of GGUF's alignment, so that the tensors behind it stay where they must lie.
llm::LanguageModel chat_model() {
  std::ifstream in(TAPER_STORIES, std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), {}};
  constexpr size_t pairs_at = 24, count_at = 16;  // behind magic, version and both counts
  if (file.size() < pairs_at) std::abort();
  ++file[count_at];
  file.insert(pairs_at, pair_of("tokenizer.chat_template",
                                "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                                "{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}"
                                "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
                                "{{ prefix }}",
                                512));
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("request_fuzzer." + std::to_string(getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary) << file;
  llm::LanguageModel model = llm::load_text_model(path.string());
  std::filesystem::remove(path);  // it stays mapped
  return model;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const llm::LanguageModel model = chat_model();
  static serve::Schemas schemas(model.tokenizer());
  constexpr size_t most = 4096;  // longer ones only take longer
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, std::min(size, most) - 1);
  const auto endpoint = data[0] == '/' ? serve::Endpoint::completions : serve::Endpoint::chat;
  serve::Limits limits;
  try {
    const serve::ApiRequest request =
        serve::read_request(endpoint, body, model, schemas, "stories", limits);
    if (request.texts.empty()) std::abort();
    for (const serve::TextRequest& text : request.texts)
      if (text.prompt.empty() || static_cast<int64_t>(text.prompt.size()) > model.context())
        std::abort();
  } catch (const serve::ApiError& error) {
    if (error.status < 400 || error.status > 499) std::abort();
  }
  return 0;
}
