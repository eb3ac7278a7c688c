// Weights that other tools have quantized, in the layouts of Taper: `quantization_config` in
// config.json says how they lie.
//
//   quant_method        tensors of a weight                     becomes
//   mxfp4               X_blocks, X_scales                      blocks of mxfp4, the same numbers
//   gptq, awq           X.qweight, X.qzeros, X.scales           blocks of q4_0, q4_1 or q8_0
//   bitsandbytes        X.weight, X.weight.absmax and others    blocks of nf4; or
//                       X.weight (i8), X.SCB                    blocks of q8_0
//   fp8                 X.weight, X.weight_scale_inv            bf16
//   compressed-tensors  X.weight_packed, X.weight_scale; or     blocks of q4_0; or
//                       X.weight (f8_e4m3fn), X.weight_scale    bf16
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/runtime/core/layout.h"

namespace taper::huggingface {

/// A weight in the memory of this process. 64 bytes are readable behind it.
struct Repacked {
  DType dtype = DType::f32;  ///< f32 for blocks
  Layout layout = Layout::dense;
  std::shared_ptr<const std::byte> bytes;
};

/// A weight (…, out, in) that is packed anew when it is asked for.
struct QuantizedWeight {
  std::vector<int64_t> sizes;
  std::function<Repacked()> read;
};

/// Takes the tensors of quantized weights out of `tensors`, and returns the weights: X.weight, or
/// X_blocks for mxfp4. None, if `config` has no quantization_config. Throws ExportError if a method
/// is not read, or if tensors do not fit each other.
std::map<std::string, QuantizedWeight> take_quantized(const nlohmann::json& config,
                                                      std::map<std::string, Tensor>& tensors);

}  // namespace taper::huggingface
