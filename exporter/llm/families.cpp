#include "taper/exporter/llm/families.h"

#include <algorithm>

#include "taper/exporter/base/error.h"

namespace taper::llm {

const Family& family_named(const std::string& name) {
  static const Family* const all[] = {&llama, &gemma,  &olmo, &cohere, &phi,      &falcon,
                                      &neox,  &bloom,  &glm,  &gpt2,   &stablelm, &lfm2,
                                      &mamba, &mamba2, &rwkv, &rwkv6,  &rwkv7};
  std::string known;
  for (const Family* family : all)
    for (const std::string& n : family->names) {
      if (n == name) return *family;
      known += (known.empty() ? "" : ", ") + n;
    }
  throw ExportError("models of the family \"" + name + "\" are not supported; these are: " + known);
}

}  // namespace taper::llm
