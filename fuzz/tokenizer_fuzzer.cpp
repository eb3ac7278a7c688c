// Any bytes are a tokenizer.json, a SentencePiece model, or an error. A tokenizer that was read
// encodes and decodes any text, and decodes the same text token by token.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "taper/runtime/extension/llm/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace taper::llm;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool json = !bytes.empty() && bytes[0] == '{';
  const taper::Result<Tokenizer> tokenizer =
      json ? Tokenizer::from_json(bytes) : Tokenizer::from_sentencepiece(bytes);
  if (!tokenizer.ok()) return 0;
  EncodeOptions options;
  options.offsets = true;
  for (const std::string_view text : {std::string_view("Hello  w\u00f6rld 123 \u4e16\u754c!"),
                                      bytes.substr(bytes.size() - bytes.size() / 8)}) {
    const Encoding encoding = tokenizer.value().encode_with_details(text, options);
    if (encoding.offsets.size() != encoding.ids.size()) std::abort();
    StreamDecoder decoder(tokenizer.value(), false);
    std::string pieces;
    for (const TokenId id : encoding.ids) pieces += decoder.push(id);
    pieces += decoder.finish();
    if (pieces != tokenizer.value().decode(encoding.ids)) std::abort();
  }
  return 0;
}
