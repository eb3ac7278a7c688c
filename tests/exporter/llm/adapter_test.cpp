// LoRA adapters. A model from which an adapter's change was taken away, and that adapter, are the
// model as it was.
#include "taper/exporter/llm/adapter.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/exporter/llm/formula_model.h"

namespace taper::llm {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::formula_golden, tests::formula_model, tests::scratch_file;

constexpr int64_t rank = 3;

/// (out, rank) or (rank, in)
io::Array random_matrix(const std::string& name, int64_t rows, int64_t columns) {
  return tests::values_of({name, {rows, columns}, {0}, 0.3}, 5);
}

/// weight -= scale up down
void take_away(std::span<float> weight, const io::Array& up, const io::Array& down, double scale) {
  const int64_t rows = up.sizes[0], columns = down.sizes[1];
  const std::span<float> u = up.values<float>(), d = down.values<float>();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < rank; ++r)
        sum += static_cast<double>(u[static_cast<size_t>(i * rank + r)]) *
               static_cast<double>(d[static_cast<size_t>(r * columns + j)]);
      weight[static_cast<size_t>(i * columns + j)] -= static_cast<float>(scale * sum);
    }
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// What loading says.
std::string refusal_of(const std::string& model, const std::string& adapter) {
  try {
    load(model, {.lora = adapter});
  } catch (const ExportError& e) {
    return e.what();
  }
  return "";
}

// ---- of PEFT ----

/// A model of a family without the change, and the adapter beside it.
class PeftModel {
 public:
  explicit PeftModel(const std::string& family, const json& config = {{"lora_alpha", 6}})
      : model(formula_model(family)), adapter(scratch_file("adapter")) {
    io::SafeTensors weights = io::read_safetensors(model / "model.safetensors");
    const double alpha = config["lora_alpha"],
                 scale = config.value("use_rslora", false) ? alpha / std::sqrt(3.0) : alpha / 3;
    for (auto& [name, array] : weights.tensors) {
      if (!name.ends_with("_proj.weight") || array.sizes.size() != 2) continue;
      const std::string module = "base_model.model." + name.substr(0, name.size() - 7);
      const io::Array down = random_matrix(name + "A", rank, array.sizes[1]),
                      up = random_matrix(name + "B", array.sizes[0], rank);
      take_away(array.values<float>(), up, down, scale);
      file.tensors[module + ".lora_A.weight"] = down;
      file.tensors[module + ".lora_B.weight"] = up;
    }
    io::write_safetensors(model / "model.safetensors", weights);
    save(config);
  }
  void save(const json& config) const {
    write(adapter / "adapter_config.json", config.dump());
    io::write_safetensors(adapter / "adapter_model.safetensors", file);
  }
  Model load() const { return llm::load(model.string(), {.lora = adapter.string()}); }
  std::string refusal() const { return refusal_of(model.string(), adapter.string()); }

  std::filesystem::path model, adapter;
  io::SafeTensors file;
};

void expect_golden(const std::string& family, const PeftModel& changed) {
  const Model model = changed.load();
  const io::SafeTensors golden = formula_golden(family);
  EagerRunner eager_runner(*model.decoder);
  for (const Compared& r : compare_with_golden(eager_runner, golden))
    EXPECT_LE(r.difference, 2 * r.tolerance) << r.name;
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 64, .all_logits = true});
  ProgramRunner program(exporter.write(ExportOptions{.exact = true}));
  for (const Compared& r : compare_with_golden(program, golden))
    EXPECT_LE(r.difference, 2 * r.tolerance) << r.name;
}

TEST(adapter, of_peft_gives_back_what_was_taken_away) {
  for (const char* family : {"smollm3", "olmo3", "cohere2"}) {
    SCOPED_TRACE(family);
    expect_golden(family, PeftModel(family));
  }
  expect_golden("smollm3", PeftModel("smollm3", {{"lora_alpha", 2}, {"use_rslora", true}}));
}

TEST(adapter, changes_the_results) {
  const PeftModel changed("smollm3");
  const Model without = llm::load(changed.model.string());
  EagerRunner runner(*without.decoder);
  bool differs = false;
  for (const Compared& r : compare_with_golden(runner, formula_golden("smollm3")))
    differs = differs || r.difference > 10 * r.tolerance;
  EXPECT_TRUE(differs);
}

TEST(adapter, says_what_it_does_not_support) {
  PeftModel m("smollm3");
  const auto with = [&](json config) {
    m.save(config);
    return m.refusal();
  };
  EXPECT_THAT(with({{"peft_type", "IA3"}}), HasSubstr("its peft_type is IA3; LORA is supported"));
  EXPECT_THAT(with({{"bias", "all"}}), HasSubstr("it trains biases; merge the adapter"));
  EXPECT_THAT(with({{"use_dora", true}}), HasSubstr("it is one of DoRA"));
  EXPECT_THAT(with({{"alpha_pattern", {{"q_proj", 3}}}}), HasSubstr("it has alpha_pattern"));
  EXPECT_THAT(with({{"init_lora_weights", "pissa_niter_16"}}),
              HasSubstr("changed the model's own weights (init_lora_weights: pissa_niter_16)"));
  EXPECT_EQ(with({{"init_lora_weights", "gaussian"}}), "");
  EXPECT_THAT(with({{"lora_alpha", "much"}}), HasSubstr("lora_alpha must be a number"));

  const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";
  const io::Array up = m.file.tensors.at(name);
  m.file.tensors[name] = random_matrix("x", 32, rank + 1);
  EXPECT_THAT(with(json::object()), HasSubstr("lora_A has the sizes (3, 32) and lora_B (32, 4)"));
  m.file.tensors[name] = random_matrix("x", 48, rank);
  EXPECT_THAT(with(json::object()),
              HasSubstr("the model's is (32, 32); it belongs to another model"));
  m.file.tensors.erase(name);
  EXPECT_THAT(with(json::object()), HasSubstr("q_proj.weight has only one of lora_A and lora_B"));
  m.file.tensors[name] = up;
  io::Array bad = random_matrix("x", 32, rank);
  bad.values<float>()[7] = std::nanf("");
  m.file.tensors[name] = bad;
  EXPECT_THAT(with(json::object()),
              HasSubstr("q_proj.weight lora_B has elements that are not finite"));
  m.file.tensors[name] = io::Array::zeros(DType::i8, {32, rank});
  EXPECT_THAT(with(json::object()), HasSubstr("q_proj.lora_B.weight is of i8"));
  m.file.tensors[name] = up;
  EXPECT_THAT(with({{"lora_alpha", 1e300}}), HasSubstr("lora_B, times the scale, has elements"));
  EXPECT_THAT(with({{"layer_replication", {{0, 1}}}}), HasSubstr("it has layer_replication"));
  m.file.tensors["base_model.model.model.norm.weight"] = random_matrix("n", 1, 32);
  EXPECT_THAT(with(json::object()), HasSubstr("norm.weight is no matrix lora_A or lora_B"));
  m.file.tensors.clear();
  EXPECT_THAT(with(json::object()), HasSubstr("it has no matrices"));
  std::filesystem::remove(m.adapter / "adapter_config.json");
  EXPECT_THAT(m.refusal(), HasSubstr("adapter_config.json"));
}

TEST(adapter, belongs_to_products_that_the_model_has) {
  PeftModel m("smollm3");
  for (const char* part : {"lora_A", "lora_B"})
    m.file.tensors[std::string("base_model.model.lm_head.") + part + ".weight"] =
        part[5] == 'A' ? random_matrix("a", rank, 32) : random_matrix("b", 48, rank);
  m.save({{"lora_alpha", 6}});
  EXPECT_THAT(m.refusal(), HasSubstr("the model has no product with lm_head.weight"));
}

// ---- in GGUF files ----

/// Writes an adapter as llama.cpp's convert_lora_to_gguf.py does.
class GgufWriter {
 public:
  void text(const std::string& t) { number(uint64_t{t.size()}), out_ += t; }
  template <class T>
  void number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void pad() { out_.resize((out_.size() + 31) / 32 * 32); }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

std::string gguf_adapter(const std::map<std::string, io::Array>& tensors, float alpha,
                         const std::string& type = "lora") {
  GgufWriter out;
  out.number('G'), out.number('G'), out.number('U'), out.number('F');
  out.number(uint32_t{3}), out.number(uint64_t{tensors.size()}), out.number(uint64_t{4});
  const std::pair<const char*, std::string> texts[] = {
      {"general.architecture", "llama"}, {"general.type", "adapter"}, {"adapter.type", type}};
  for (const auto& [key, value] : texts) out.text(key), out.number(uint32_t{8}), out.text(value);
  out.text("adapter.lora.alpha"), out.number(uint32_t{6}), out.number(alpha);
  uint64_t offset = 0;
  for (const auto& [name, array] : tensors) {
    out.text(name), out.number(uint32_t{2});
    out.number(static_cast<uint64_t>(array.sizes[1]));
    out.number(static_cast<uint64_t>(array.sizes[0]));
    out.number(uint32_t{0}), out.number(offset);
    offset += (array.size_bytes() + 31) / 32 * 32;
  }
  out.pad();
  for (const auto& [name, array] : tensors) {
    for (const float x : array.values<float>()) out.number(x);
    out.pad();
  }
  return out.bytes();
}

const std::string stories = tests::test_data("../../examples/stories/stories260K.gguf").string();

TEST(adapter, of_gguf_gives_back_what_was_taken_away) {
  io::Bytes bytes = io::read_file(stories);
  const gguf::Content content = gguf::parse(bytes, "stories");
  constexpr float alpha = 2;
  std::map<std::string, io::Array> file;
  for (const auto& [name, info] : content.tensors) {
    if (info.sizes.size() != 2 || !name.starts_with("blk.")) continue;
    const io::Array down = random_matrix(name + "A", rank, info.sizes[1]),
                    up = random_matrix(name + "B", info.sizes[0], rank);
    // the bytes of `content` are those of `bytes`
    auto* weight = reinterpret_cast<float*>(const_cast<std::byte*>(info.bytes.data()));
    take_away({weight, info.bytes.size() / sizeof(float)}, up, down, alpha / 3.0);
    file[name + ".lora_a"] = down, file[name + ".lora_b"] = up;
  }
  EXPECT_EQ(file.size(), 5u * 7 * 2);
  const std::string model = scratch_file("base.gguf").string(),
                    adapter = scratch_file("adapter.gguf").string();
  write(model, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  write(adapter, gguf_adapter(file, alpha));

  const std::vector<int64_t> ids = {1, 403, 407, 261, 378};
  const auto logits = [&](const std::string& path, const LoadOptions& options) {
    const Model loaded = load(path, options);
    return EagerRunner(*loaded.decoder).logits(ids, 0, true).to_vector<float>();
  };
  const std::vector<float> want = logits(stories, {}), have = logits(model, {.lora = adapter});
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(have[i], want[i], 2e-3) << i;

  write(adapter, gguf_adapter(file, std::nanf("")));
  EXPECT_THAT(refusal_of(model, adapter), HasSubstr("its alpha is nan"));
  write(adapter, gguf_adapter(file, alpha, "dora"));
  EXPECT_THAT(refusal_of(model, adapter), HasSubstr("it is no adapter of LoRA"));
  EXPECT_THAT(refusal_of(model, PeftModel("smollm3").adapter.string()),
              HasSubstr("a .gguf model needs an adapter in a .gguf file"));
  EXPECT_THAT(refusal_of(model, stories), HasSubstr("it is no adapter of LoRA"));
}

}  // namespace
}  // namespace taper::llm
