// All cases of `sampling`: what the logits processors of transformers make of logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "../../support/data.h"
#include "json.h"
#include "taper/runtime/extension/llm/sampling/filters.h"
#include "taper/runtime/extension/llm/sampling/penalties.h"

namespace taper::llm {
namespace {

using tests::Json;
using Logits = std::vector<float>;
using Ids = std::vector<TokenId>;

// The tensors of a file, which are all f32.
std::map<std::string, Logits> read_safetensors(const std::filesystem::path& path) {
  const std::string bytes = tests::read_text(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::map<std::string, Logits> tensors;
  const Json header = Json::parse(bytes.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    Logits& values = tensors[name];
    values.resize((end - begin) / 4);
    std::memcpy(values.data(), bytes.data() + 8 + length + begin, end - begin);
  }
  return tensors;
}

int least_of(const Json& p) { return p.value("min_tokens_to_keep", 1); }

void apply(const Json& p, Logits& logits, const Ids& context) {
  const std::string name = p["name"];
  const auto length = static_cast<int>(context.size());
  if (name == "temperature") return apply_temperature(logits, p[name]);
  if (name == "top_k") return keep_top_k(logits, p[name], least_of(p));
  if (name == "top_p") return keep_top_p(logits, p[name], least_of(p));
  if (name == "min_p") return keep_min_p(logits, p[name], least_of(p));
  if (name == "typical_p") return keep_typical(logits, p["mass"], least_of(p));
  if (name == "top_h") return keep_top_h(logits, p[name]);
  if (name == "epsilon_cutoff") return keep_epsilon(logits, p["epsilon"], least_of(p));
  if (name == "eta_cutoff") return keep_eta(logits, p["epsilon"], least_of(p));
  if (name == "log_softmax") return log_softmax(logits);
  if (name == "repetition_penalty") return penalize_repetition(logits, context, p["penalty"]);
  if (name == "no_repeat_ngram") return forbid_repeated_ngrams(logits, context, p["ngram_size"]);
  if (name == "suppress_tokens") {
    for (const TokenId token : p[name]) suppress(logits, token);
    return;
  }
  if (name == "min_length") {
    if (length < p[name]) suppress(logits, p["eos_token_id"]);
    return;
  }
  if (name == "forced_eos") {
    if (length == p["max_length"].get<int>() - 1) force(logits, p["eos_token_id"]);
    return;
  }
  if (name == "exponential_decay_length_penalty") {
    const int start = p["start"].get<int>() + p["input_ids_seq_length"].get<int>();
    return favor(logits, p["eos_token_id"], p["factor"], length - start);
  }
  std::vector<SequenceBias> biases;
  if (name == "sequence_bias") {
    for (const Json& entry : p[name]) biases.push_back({entry[0].get<Ids>(), entry[1]});
  } else if (name == "bad_words") {
    for (const Json& ids : p["bad_words_ids"]) biases.push_back({ids.get<Ids>(), -INFINITY});
  } else {
    FAIL() << "no such processor: " << name;
  }
  add_bias(logits, context, biases);
}

// Equal logits: which of them a filter keeps is not defined, but how many it keeps.
bool order_is_open(const Json& test) {
  const std::string logits = test["logits"];
  if (logits != "ties" && logits != "all_equal") return false;
  for (const Json& p : test["processors"]) {
    const std::string name = p["name"];
    if (name == "top_p" || name == "typical_p" || name == "top_h") return true;
  }
  return false;
}

// A token with so little probability may lie on either side of the limit of a sum.
std::vector<bool> undecided(const Json& test, Logits logits) {
  std::vector<bool> result(logits.size(), false);
  for (const Json& p : test["processors"]) {
    if (p["name"] != "top_h" && p["name"] != "top_p" && p["name"] != "typical_p") continue;
    log_softmax(logits);
    for (size_t i = 0; i < logits.size(); ++i) result[i] = std::exp(logits[i]) < 1e-7f;
  }
  return result;
}

void expect_equal(const Logits& logits, const Logits& expected, const std::vector<bool>& open,
                  bool only_count) {
  size_t kept = 0, expected_kept = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (open[i] && (logits[i] == -INFINITY) != (expected[i] == -INFINITY)) continue;
    kept += logits[i] != -INFINITY;
    expected_kept += expected[i] != -INFINITY;
    if (only_count) continue;
    if (expected[i] == -INFINITY) {
      EXPECT_EQ(logits[i], -INFINITY) << "token " << i;
    } else {
      EXPECT_NEAR(logits[i], expected[i], 1e-5 * std::max(1.0f, std::abs(expected[i])))
          << "token " << i;
    }
  }
  EXPECT_EQ(kept, expected_kept);
}

TEST(sampling, processes_logits_as_transformers_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "sampling");
  const std::map<std::string, Logits> tensors = read_safetensors(folder / "sampling.safetensors");
  const Json golden = tests::read_json(folder / "cases.json");
  ASSERT_GT(golden["cases"].size(), 200u);
  for (const Json& test : golden["cases"]) {
    SCOPED_TRACE(test.dump());
    Logits logits = tensors.at("logits." + test["logits"].get<std::string>());
    const Ids context = golden["context"][test["context"].get<std::string>()];
    for (const Json& processor : test["processors"]) apply(processor, logits, context);
    expect_equal(logits, tensors.at(test["id"].get<std::string>() + ".processed"),
                 undecided(test, tensors.at("logits." + test["logits"].get<std::string>())),
                 order_is_open(test));
  }
}

// How far a token repeats, by trying every place and every length.
float dry_by_definition(const Ids& context, TokenId token, const DryPenalty& dry) {
  int longest = 0;
  const auto n = static_cast<int>(context.size());
  for (int place = 1; place < n; ++place) {
    if (context[static_cast<size_t>(place)] != token) continue;
    int length = 0;
    while (length < place) {
      const TokenId a = context[static_cast<size_t>(place - 1 - length)];
      const TokenId b = context[static_cast<size_t>(n - 1 - length)];
      if (a != b || testing::Matches(testing::Contains(b))(dry.breakers)) break;
      ++length;
    }
    longest = std::max(longest, length);
  }
  return longest < dry.allowed_length
             ? 0
             : dry.multiplier *
                   std::pow(dry.base, static_cast<float>(longest - dry.allowed_length));
}

TEST(sampling, penalizes_repeated_sequences_by_their_length) {
  DryPenalty dry;
  dry.multiplier = 0.8f;
  uint32_t random = 1;
  for (int round = 0; round < 200; ++round) {
    Ids context;
    for (int i = 0; i < 40; ++i) {
      random = random * 1664525 + 1013904223;
      context.push_back(static_cast<TokenId>(random >> 30));
    }
    dry.breakers = round % 2 == 0 ? Ids{} : Ids{3};
    Logits logits(5, 1.0f);
    penalize_repeated_sequences(logits, context, dry);
    for (TokenId token = 0; token < 5; ++token) {
      EXPECT_NEAR(logits[static_cast<size_t>(token)], 1 - dry_by_definition(context, token, dry),
                  1e-3)
          << "round " << round << " token " << token;
    }
  }
}

TEST(sampling, subtracts_presence_once_and_frequency_each_time) {
  Logits logits = {1, 1, 1};
  penalize_presence(logits, Ids{0, 0, 2, 7}, 0.5f, 0.25f);
  EXPECT_THAT(logits, testing::ElementsAre(0, 1, 0.25f));
}

}  // namespace
}  // namespace taper::llm
