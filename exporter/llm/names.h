// The names of weights. Modules use one name for each part; this table says how files spell it.
#pragma once
#include <string>
#include <vector>

namespace taper::llm {

/// The names that files may have for a weight: "layers.3.attention.q.weight" →
/// "model.layers.3.self_attn.q_proj.weight", "blk.3.attn_q.weight", … Throws ExportError for a part
/// that the table does not know.
std::vector<std::string> spellings(const std::string& name);

}  // namespace taper::llm
