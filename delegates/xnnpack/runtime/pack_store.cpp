#include "taper/delegates/xnnpack/runtime/pack_store.h"

#include <cstring>
#include <new>

namespace taper::delegates::xnnpack {
namespace {

// A file takes whole pages, so smaller blocks would waste them.
constexpr size_t least_bytes_of_file = 1u << 16;

// FNV-1a (Fowler, Noll and Vo), over words of 8 bytes. Equal hashes are compared byte by byte.
uint64_t hash_of(const void* elements, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto* at = static_cast<const unsigned char*>(elements);
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at + i, bytes - i < sizeof word ? bytes - i : sizeof word);
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

// Others hold the lock for a few instructions.
void PackStore::lock() {
  while (is_locked_.test_and_set(std::memory_order_acquire)) {
  }
}

size_t PackStore::size_of(const Block& block) {
  return sizeof(Block) + (block.mapped != nullptr ? 0 : block.bytes + bytes_behind_packed);
}

PackStore::Block* PackStore::reserve(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  void* place = allocate(memory_, sizeof(Block) + bytes + bytes_behind_packed);
  return place == nullptr ? nullptr : new (place) Block{nullptr, bytes, 0, 1, nullptr, nullptr};
}

void PackStore::drop(Block* block) {
  if (block->mapped != nullptr) block->files->unmap(block->mapped);
  memory_.release(block, size_of(*block));
}

// The next block that may be equal, which cannot go away until `leave`. Blocks in front of `behind`
// may be new, and are not looked at again.
PackStore::Block* PackStore::find_and_join(const Block& block, Block* behind) {
  lock();
  Block* found = behind == nullptr ? first_ : behind->next;
  while (found != nullptr && (found->hash != block.hash || found->bytes != block.bytes))
    found = found->next;
  if (found != nullptr) ++found->users;
  unlock();
  return found;
}

// A block that reads the bytes from a file, and then `block` is dropped; otherwise `block`.
PackStore::Block* PackStore::in_file(Block* block) {
  PackFiles* files = files_;
  if (files == nullptr || block->bytes < least_bytes_of_file) return block;
  void* place = memory_.allocate(sizeof(Block));
  if (place == nullptr) return block;
  const void* mapped = files->map(block->elements(), block->bytes, block->hash);
  if (mapped == nullptr) return memory_.release(place, sizeof(Block)), block;
  Block* other = new (place) Block{nullptr, block->bytes, block->hash, 1, mapped, files};
  drop(block);
  return other;
}

PackStore::Block* PackStore::share(Block* block) {
  block->hash = hash_of(block->elements(), block->bytes);
  for (Block* other = find_and_join(*block, nullptr); other != nullptr;) {
    if (std::memcmp(other->elements(), block->elements(), block->bytes) == 0)
      return drop(block), other;
    Block* next = find_and_join(*block, other);
    leave(other);
    other = next;
  }
  block = in_file(block);
  lock();
  block->next = first_;
  first_ = block;
  unlock();
  return block;
}

void PackStore::leave(Block* block) {
  lock();
  const bool is_last = --block->users == 0;
  if (is_last) {
    Block** at = &first_;
    while (*at != block) at = &(*at)->next;
    *at = block->next;
  }
  unlock();
  if (is_last) drop(block);
}

}  // namespace taper::delegates::xnnpack
