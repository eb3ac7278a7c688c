#include "taper/exporter/eager/lazy_zeros.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "taper/exporter/base/error.h"

namespace taper::eager {
namespace {

constexpr size_t slack = 64, alignment = 64;

struct Blocks {
  std::mutex mutex;
  std::map<const void*, uint64_t> versions;  ///< by the first byte; the last one with zeros
};
/// Those that live. Tensors may outlive every static object, so this one is never destroyed.
Blocks& blocks() {
  static Blocks& blocks = *new Blocks;
  return blocks;
}

}  // namespace

Tensor lazy_zeros(const Ints& sizes, DType dtype) {
  auto bytes = static_cast<size_t>(size_bytes(dtype));
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  void* const memory = std::calloc(1, bytes + slack + alignment);
  if (memory == nullptr)
    throw ExportError("no memory for a cache of " + std::to_string(bytes) +
                      " bytes; ask for a shorter context");
  const uintptr_t at =
      (reinterpret_cast<uintptr_t>(memory) + alignment - 1) / alignment * alignment;
  void* const begin = reinterpret_cast<void*>(at);
  const std::shared_ptr<void> owner(memory, [begin](void* block) {
    {
      const std::lock_guard lock(blocks().mutex);
      blocks().versions.erase(begin);
    }
    std::free(block);
  });
  const std::lock_guard lock(blocks().mutex);
  blocks().versions[begin] = 0;
  return Tensor::borrow(begin, dtype, sizes, owner);
}

bool is_untouched(const Storage& storage) {
  const std::lock_guard lock(blocks().mutex);
  const auto at = blocks().versions.find(storage.data());
  return at != blocks().versions.end() && at->second == storage.version();
}

void keep_untouched(const Storage& storage) {
  const std::lock_guard lock(blocks().mutex);
  const auto at = blocks().versions.find(storage.data());
  if (at != blocks().versions.end()) at->second = storage.version();
}

}  // namespace taper::eager
