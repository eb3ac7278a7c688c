#include "taper/exporter/importers/huggingface/quantized.h"

#include "taper/exporter/importers/huggingface/quantized_parts.h"

namespace taper::huggingface {
namespace internal {

Tensor Parts::take(const std::string& suffix, DType dtype, size_t rank) {
  const auto at = tensors_.find(name + suffix);
  require(at != tensors_.end(), suffix + " is missing");
  require(at->second.dtype == dtype && at->second.sizes.size() == rank,
          suffix + " has " + std::to_string(at->second.sizes.size()) + " dimensions of " +
              taper::name_of(at->second.dtype) + ", not " + std::to_string(rank) + " of " +
              taper::name_of(dtype));
  require(!at->second.bytes.empty(), suffix + " is empty");
  return take_if(suffix);
}

Tensor Parts::take_if(const std::string& suffix) {
  const auto at = tensors_.find(name + suffix);
  if (at == tensors_.end()) return {};
  Tensor found = std::move(at->second);
  tensors_.erase(at);
  return found;
}

Tensor Parts::take_numbers(const std::vector<std::string>& suffixes) {
  std::string missing;
  for (const std::string& suffix : suffixes) {
    const Tensor found = take_if(suffix);
    if (found.bytes.empty()) {
      missing += (missing.empty() ? "it has no " : " and no ") + suffix;
      continue;
    }
    require(found.dtype == DType::f32 || found.dtype == DType::f16 || found.dtype == DType::bf16,
            suffix + " is of " + taper::name_of(found.dtype) + ", not of f32, f16 or bf16");
    return found;
  }
  require(false, missing);
  return {};
}

std::vector<std::string> names_before(const Tensors& tensors, const std::string& end) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
    if (name.ends_with(end)) names.push_back(name.substr(0, name.size() - end.size()));
  return names;
}

float number(const Tensor& t, int64_t i) {
  if (t.dtype == DType::f16) return element<Half>(t, i);
  if (t.dtype == DType::bf16) return element<BFloat16>(t, i);
  return element<float>(t, i);
}

std::shared_ptr<std::byte> allocate(size_t bytes) {
  constexpr size_t readable_behind = 64;
  return {new std::byte[bytes + readable_behind](), std::default_delete<std::byte[]>()};
}

}  // namespace internal

std::map<std::string, QuantizedWeight> take_quantized(const nlohmann::json& config,
                                                      std::map<std::string, Tensor>& tensors) {
  auto at = config.find("quantization_config");
  if (at == config.end())  // compressed-tensors wrote this for a while
    at = config.find("compression_config");
  if (at == config.end() || at->is_null()) return {};
  if (!at->is_object())
    throw ExportError("config: " + at.key() + " must be an object, it is " +
                      at->dump().substr(0, 60));
  const auto method = at->find("quant_method");
  const std::string name =
      method != at->end() && method->is_string() ? method->get<std::string>() : "";
  if (name == "mxfp4") return internal::take_mxfp4(tensors);
  if (name == "fp8" || name == "fbgemm_fp8") return internal::take_float8(*at, tensors);
  if (name == "gptq") return internal::take_gptq(*at, tensors);
  if (name == "awq") return internal::take_awq(*at, tensors);
  if (name == "bitsandbytes") return internal::take_bitsandbytes(tensors);
  if (name == "compressed-tensors") return internal::take_compressed(*at, tensors);
  throw ExportError("config: weights quantized by \"" + name +
                    "\" are not read; mxfp4, fp8, gptq, awq, bitsandbytes and compressed-tensors "
                    "are. Take the model before it was quantized, and give a recipe: --recipe "
                    "int4-g32");
}

}  // namespace taper::huggingface
