#include "taper/exporter/llm/adapter.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/llm/config_keys.h"

namespace taper::llm {
namespace {

constexpr const char* remedy = "; merge the adapter into its model (PEFT: merge_and_unload)";

/// Without this end; "" if the text ends otherwise.
std::string before(const std::string& text, const std::string& end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : "";
}

std::string text(const eager::Tensor& t) {
  return "(" + std::to_string(t.size(0).value()) + ", " + std::to_string(t.size(1).value()) + ")";
}

eager::Tensor plain(const gguf::TensorInfo& t, const std::string& name) {
  const DType dtype = t.type == gguf::f32_id    ? DType::f32
                      : t.type == gguf::f16_id  ? DType::f16
                      : t.type == gguf::bf16_id ? DType::bf16
                                                : DType::i8;
  if (dtype == DType::i8)
    throw ExportError(name + " has the type " + gguf::type_name(t.type) +
                      "; f32, f16 and bf16 are supported");
  return eager::Tensor::from_bytes(t.bytes.data(), t.bytes.size(), dtype, t.sizes);
}

/// One such number makes all logits NaN.
void require_finite(const eager::Tensor& t, const std::string& matrix, const char* what) {
  if (!std::ranges::all_of(t.to_vector<float>(), [](float x) { return std::isfinite(x); }))
    throw ExportError("for " + matrix + " " + what +
                      " has elements that are not finite: its training diverged, or the file is "
                      "damaged");
}

}  // namespace

Adapter::Adapter(const std::filesystem::path& path)
    : path_(path), is_gguf_(path.extension() == ".gguf") {
  try {
    is_gguf_ ? read_gguf() : read_folder();
    if (pairs_.empty()) throw ExportError("it has no matrices lora_A and lora_B");
  } catch (const io::FileError&) {
    throw;
  } catch (const ExportError& e) {
    throw ExportError("adapter " + path_.string() + ": " + e.what());
  }
}

void Adapter::read_folder() {
  const nlohmann::json config = huggingface::read_json_object(path_ / "adapter_config.json");
  const Keys keys(config);
  if (const std::string type = keys.text({"peft_type"}, "LORA"); type != "LORA")
    throw ExportError("its peft_type is " + type + "; LORA is supported" + remedy);
  if (const std::string bias = keys.text({"bias"}, "none"); bias != "none")
    throw ExportError(std::string("it trains biases") + remedy);
  if (keys.flag({"use_dora"}, false)) throw ExportError(std::string("it is one of DoRA") + remedy);
  for (const char* pattern :
       {"alpha_pattern", "modules_to_save", "layer_replication", "alora_invocation_tokens"})
    if (const auto* value = keys.find({pattern}); value != nullptr && !value->empty())
      throw ExportError("it has " + std::string(pattern) + remedy);

  if (const auto* init = keys.find({"init_lora_weights"}); init != nullptr && init->is_string())
    for (const char* changing : {"pissa", "olora", "corda", "loftq"})
      if (init->get<std::string>().starts_with(changing))
        throw ExportError("its training changed the model's own weights (init_lora_weights: " +
                          init->get<std::string>() + ")" + remedy);

  const io::SafeTensors file = io::read_safetensors(path_ / "adapter_model.safetensors");
  for (const auto& [name, array] : file.tensors) {
    std::string matrix = before(name, ".lora_A.weight");
    const bool is_up = matrix.empty();
    if (is_up) matrix = before(name, ".lora_B.weight");
    const std::string prefix = "base_model.model.";
    if (matrix.starts_with(prefix)) matrix.erase(0, prefix.size());
    add(name, matrix.empty() ? "" : matrix + ".weight", is_up, eager::tensor_of(array));
  }
  scale(keys.number({"lora_alpha"}, 8), keys.flag({"use_rslora"}, false));
}

void Adapter::read_gguf() {
  const gguf::File file(path_);
  const gguf::Content& content = file.content();
  if (content.text("general.type") != "adapter" || content.text("adapter.type") != "lora")
    throw ExportError("it is no adapter of LoRA: general.type and adapter.type say otherwise");
  const std::optional<double> alpha = content.number("adapter.lora.alpha");
  if (!alpha) throw ExportError("it has no adapter.lora.alpha");
  for (const auto& [name, info] : content.tensors) {
    std::string matrix = before(name, ".lora_a");
    const bool is_up = matrix.empty();
    if (is_up) matrix = before(name, ".lora_b");
    add(name, matrix, is_up, plain(info, name));
  }
  scale(*alpha, false);
}

void Adapter::add(const std::string& name, const std::string& matrix, bool is_up,
                  const eager::Tensor& value) {
  if (matrix.empty() || value.rank() != 2)
    throw ExportError(name + " is no matrix lora_A or lora_B" + remedy);
  if (!is_floating(value.dtype()))
    throw ExportError(name + " is of " + name_of(value.dtype()) + ", which are no floats");
  Pair& pair = pairs_[matrix];
  (is_up ? pair.up : pair.down) = value.to(DType::f32);
}

void Adapter::scale(double alpha, bool by_root) {
  if (!std::isfinite(alpha)) throw ExportError("its alpha is " + std::to_string(alpha));
  for (auto& [matrix, pair] : pairs_) {
    if (!pair.down.defined() || !pair.up.defined())
      throw ExportError(matrix + " has only one of lora_A and lora_B");
    const int64_t rank = pair.down.size(0).value();
    if (rank < 1 || pair.up.size(1).value() != rank)
      throw ExportError("for " + matrix + " lora_A has the sizes " + text(pair.down) +
                        " and lora_B " + text(pair.up) + "; they need the same rank, from 1 on");
    const auto r = static_cast<double>(rank);
    require_finite(pair.down, matrix, "lora_A");
    require_finite(pair.up, matrix, "lora_B");
    pair.up = pair.up * (alpha / (by_root ? std::sqrt(r) : r));
    require_finite(pair.up, matrix, "lora_B, times the scale,");
  }
}

LowRank Adapter::of(const std::string& name, int64_t out, int64_t in) {
  const auto found = pairs_.find(name);
  if (found == pairs_.end()) return {};
  const Pair& pair = found->second;
  if (pair.down.size(1).value() != in || pair.up.size(0).value() != out)
    throw ExportError("adapter " + path_.string() + ": for " + name + " lora_A has the sizes " +
                      text(pair.down) + " and lora_B " + text(pair.up) + ", the model's is (" +
                      std::to_string(out) + ", " + std::to_string(in) +
                      "); it belongs to another model");
  used_.insert(name);
  return {pair.down, pair.up, nullptr, 1};
}

void Adapter::require_kind(bool is_gguf) const {
  if (is_gguf_ != is_gguf)
    throw ExportError("adapter " + path_.string() + ": " +
                      (is_gguf ? "a .gguf model needs an adapter in a .gguf file"
                               : "a Hugging Face folder needs an adapter in a folder of PEFT"));
}

std::string Adapter::unused() const {
  for (const auto& [name, pair] : pairs_)
    if (!used_.contains(name)) return name;
  return "";
}

void Adapter::require_all_used() const {
  if (const std::string name = unused(); !name.empty())
    throw ExportError("adapter " + path_.string() + ": the model has no product with " + name +
                      ", or shares it with another part" + remedy);
}

}  // namespace taper::llm
