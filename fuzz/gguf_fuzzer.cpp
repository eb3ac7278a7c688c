// Any bytes are a valid GGUF file or a FileError, and all that was read can be touched.
#include <cstdlib>

#include "taper/exporter/importers/gguf/gguf.h"

namespace {

using namespace taper;

/// Reads every element. A list of the wrong kind is refused.
size_t touch(const gguf::List& list) {
  try {
    if (list.type() == gguf::ValueType::text) {
      size_t sum = 0;
      for (const std::string_view text : list.texts())
        for (const char c : text) sum += static_cast<unsigned char>(c);
      return sum;
    }
    return list.numbers().size();
  } catch (const io::FileError&) {
    return 0;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gguf::Content content;
  try {
    content = gguf::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzzed");
  } catch (const io::FileError&) {
    return 0;
  }
  size_t sum = 0;
  for (const auto& [key, value] : content.metadata)
    if (const auto* list = std::get_if<gguf::List>(&value)) sum += touch(*list);
  for (const auto& [name, tensor] : content.tensors) {
    if (gguf::find_type(tensor.type) == nullptr) std::abort();
    for (const std::byte b : tensor.bytes) sum += static_cast<size_t>(b);
  }
  volatile size_t seen = sum;
  (void)seen;
  return 0;
}
