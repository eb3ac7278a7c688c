#include "taper/delegates/xnnpack/runtime/memory.h"

#include <xnnpack.h>

#include <cstdint>
#include <cstring>

namespace taper::delegates::xnnpack {
namespace {

// Stands before each piece, so that it can be released and counted.
struct Head {
  void* block;
  size_t block_bytes, bytes;
};
constexpr size_t least_alignment = 64;

Memory& memory_of(void* context) { return *static_cast<Memory*>(context); }
Head& head_of(void* piece) { return static_cast<Head*>(piece)[-1]; }

void* take(void* context, size_t alignment, size_t bytes) {
  if (alignment < least_alignment) alignment = least_alignment;
  const size_t spare = alignment + sizeof(Head);
  if (bytes > SIZE_MAX / 2 - spare) return nullptr;
  void* block = memory_of(context).allocate(bytes + spare);
  if (block == nullptr) return nullptr;
  const uintptr_t first = reinterpret_cast<uintptr_t>(block) + sizeof(Head);
  void* piece = reinterpret_cast<void*>((first + alignment - 1) / alignment * alignment);
  head_of(piece) = {block, bytes + spare, bytes};
  return piece;
}
void give_back(void* context, void* piece) {
  if (piece == nullptr) return;
  const Head head = head_of(piece);
  memory_of(context).release(head.block, head.block_bytes);
}

void* allocate(void* context, size_t bytes) { return take(context, least_alignment, bytes); }
void* reallocate(void* context, void* piece, size_t bytes) {
  void* other = allocate(context, bytes);
  if (piece == nullptr || other == nullptr) return other;
  const size_t kept = head_of(piece).bytes;
  std::memcpy(other, piece, kept < bytes ? kept : bytes);
  give_back(context, piece);
  return other;
}

}  // namespace

bool initialize(Memory& memory) {
  // the library copies this in its first initialization, and ignores it later
  const xnn_allocator allocator{&memory, allocate, reallocate, give_back, take, give_back};
  return xnn_initialize(&allocator) == xnn_status_success;
}

}  // namespace taper::delegates::xnnpack
