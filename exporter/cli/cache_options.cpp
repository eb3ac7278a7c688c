// How the caches of language models are quantized.
#include <utility>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/quantization.h"

namespace taper::cli {

void add_cache_dtype(Command& command, std::string& dtype) {
  command
      .option("--cache-dtype DTYPE", dtype,
              "Language models: what caches hold; int8 takes a quarter of f32, and int4 an eighth; "
              "int8-int4: keys in int8, values in int4")
      .one_of({"f32", "f16", "bf16", "int8", "int4", "int8-int4"})
      .shows_default();
}

std::string take_cache_recipe(std::string& recipe) {
  if (recipe != "kv-int8" && recipe != "kv-int4") return "";
  return std::exchange(recipe, "").substr(3);
}

void take_cache_recipe(std::string& recipe, std::string& dtype) {
  const std::string caches = take_cache_recipe(recipe);
  if (caches.empty()) return;
  if (dtype != "f32" && dtype != caches)
    throw UsageError("--cache-dtype", "caches of " + dtype + " contradict the recipe kv-" + caches +
                                          "; give one of them");
  dtype = caches;
}

}  // namespace taper::cli
