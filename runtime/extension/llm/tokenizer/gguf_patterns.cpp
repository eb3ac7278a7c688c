#include "taper/runtime/extension/llm/tokenizer/gguf_patterns.h"

#include <algorithm>

#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm {
namespace {

// The patterns are those of the models' own tokenizer.json files.
#define CONTRACTIONS R"('s|'t|'re|'ve|'m|'ll|'d)"
constexpr const char* gpt2 = CONTRACTIONS R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* llama3 =
    "(?i:" CONTRACTIONS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2 =
    "(?i:" CONTRACTIONS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define BEFORE_WORD R"([^\r\n\p{L}\p{N}]?)"
#define AFTER_WORDS R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr const char* tekken =
    BEFORE_WORD UPPER "*" LOWER "+|" BEFORE_WORD UPPER "+" LOWER R"(*|\p{N})" AFTER_WORDS;
constexpr const char* o200k =
    BEFORE_WORD UPPER "*" LOWER "+(?i:" CONTRACTIONS ")?|" BEFORE_WORD UPPER "+" LOWER
                      "*(?i:" CONTRACTIONS R"()?|\p{N}{1,3})" AFTER_WORDS;
#undef CONTRACTIONS
#undef UPPER
#undef LOWER
#undef BEFORE_WORD
#undef AFTER_WORDS

struct Row {
  std::vector<std::string> names;
  GgufPattern pattern;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {{"gpt-2", "phi-2", "mpt", "olmo", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es",
        "jina-v2-de", "roberta-bpe"},
       {{gpt2}}},
      {{"default"}, {{R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"}, {{llama3}, true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "granite-4"}, {{llama3}}},
      {{"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan"}, {{qwen2}}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"},
       {{R"(\p{N})", gpt2}}},
      {{"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, "[0-9][0-9][0-9]"}}},
      {{"deepseek-coder"},
       {{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\uD7FF]+", R"(\p{N})"}}},
      {{"deepseek-v3", "deepseek-r1"}, {{R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", deepseek3}}},
      {{"tekken"}, {{tekken}, true}},
      {{"gpt-4o", "llama4"}, {{o200k}}},
      {{"bloom", "poro-chat"}, {{" ?[^(\\s|.,!?…。，、।۔،)]+"}}},
      {{"viking"}, {{" ?[^(\\s|.,!?…。，、।۔،)]+", R"(\p{N})"}}},
  };
  return table;
}

}  // namespace

const GgufPattern& gguf_pattern(const std::string& name) {
  std::string known;
  for (const Row& row : rows()) {
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return row.pattern;
    for (const std::string& other : row.names) known += (known.empty() ? "" : ", ") + other;
  }
  leave_out("tokenizer.ggml.pre = \"" + name + "\" is not among those supported: " + known);
}

}  // namespace taper::llm
