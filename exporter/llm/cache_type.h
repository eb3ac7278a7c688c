// How caches of attention hold keys and values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::llm {

/// int8 and int4: 32 features with a scale in f16 (docs/format.md, "Caches in blocks").
enum class CacheType : uint8_t { f32, f16, bf16, int8, int4 };

/// "f32", "f16", "bf16", "int8", "int4".
const std::vector<std::string>& cache_type_names();
/// Throws ExportError, which lists the names.
CacheType cache_type_named(const std::string& name);

/// Bytes of one key, or one value, of a head.
int64_t bytes_of_row(CacheType type, int64_t features);

}  // namespace taper::llm
