// Bytes of text a second, from the folder of golden data that TAPER_DATA names:
//   TAPER_DATA=… build/release/bin/tokenizers
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "taper/runtime/extension/llm/tokenizer.h"

namespace {

using taper::llm::Tokenizer;

std::filesystem::path data() {
  const char* folder = std::getenv("TAPER_DATA");
  return folder == nullptr ? "" : folder;
}

std::string book() {
  std::ifstream file(data() / "tokenizers/sentencepiece/botchan.txt", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void encode(benchmark::State& state, const char* path) {
  std::string why;
  const taper::Result<Tokenizer> tokenizer = Tokenizer::load((data() / path).string(), &why);
  const std::string text = book();
  if (!tokenizer.ok()) return state.SkipWithError(why.c_str());
  if (text.empty()) return state.SkipWithError("there is no text: set TAPER_DATA");
  size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer.value().encode(text).size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["tokens"] = static_cast<double>(tokens);
}

void load(benchmark::State& state, const char* path) {
  for (auto _ : state) {
    std::string why;
    if (!Tokenizer::load((data() / path).string(), &why).ok()) {
      return state.SkipWithError(why.c_str());
    }
  }
}

BENCHMARK_CAPTURE(load, llama2, "tokenizers/llama2/tokenizer.json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, byte_level, "tokenizer_json/bpe_llama3/tokenizer.json");
BENCHMARK_CAPTURE(encode, byte_level_nfc, "tokenizer_json/bpe_qwen2/tokenizer.json");
BENCHMARK_CAPTURE(encode, llama2_json, "tokenizers/llama2/tokenizer.json");
BENCHMARK_CAPTURE(encode, llama2_model, "tokenizers/llama2/tokenizer.model");
BENCHMARK_CAPTURE(encode, unigram, "tokenizers/sentencepiece/test_model.model");
BENCHMARK_CAPTURE(encode, word_piece, "tokenizer_json/wordpiece_uncased/tokenizer.json");

}  // namespace

BENCHMARK_MAIN();
