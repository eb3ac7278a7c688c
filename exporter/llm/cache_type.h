// How caches of attention hold keys and values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::llm {

/// int8 and int4: 32 features with a scale in f16 (docs/format.md, "Caches in blocks"). int8_int4:
/// keys in int8 and values in int4.
enum class CacheType : uint8_t { f32, f16, bf16, int8, int4, int8_int4 };

/// "f32", "f16", "bf16", "int8", "int4", "int8-int4".
const std::vector<std::string>& cache_type_names();
/// Throws ExportError, which lists the names.
CacheType cache_type_named(const std::string& name);

/// The types of keys and of values: not int8_int4.
CacheType type_of_keys(CacheType type);
CacheType type_of_values(CacheType type);
/// Bytes of a key and a value of a head.
int64_t bytes_of_token(CacheType type, int64_t features);

}  // namespace taper::llm
