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
constexpr size_t most_zeros = 64 << 10;  // of a pixel

Memory& memory_of(void* context) { return *static_cast<Memory*>(context); }
Head& head_of(void* piece) { return static_cast<Head*>(piece)[-1]; }

void* take(void* context, size_t alignment, size_t bytes, bool may_use_reserve) {
  if (alignment < least_alignment) alignment = least_alignment;
  const size_t spare = alignment + sizeof(Head);
  if (bytes > SIZE_MAX / 2 - spare) return nullptr;
  Memory& memory = memory_of(context);
  void* block = memory.allocate(bytes + spare);
  if (block == nullptr) block = memory.fail(may_use_reserve ? bytes + spare : 0);
  if (block == nullptr) return nullptr;
  const uintptr_t first = reinterpret_cast<uintptr_t>(block) + sizeof(Head);
  void* piece = reinterpret_cast<void*>((first + alignment - 1) / alignment * alignment);
  head_of(piece) = {block, bytes + spare, bytes};
  return piece;
}
void give_back(void* context, void* piece) {
  if (piece == nullptr) return;
  const Head head = head_of(piece);
  Memory& memory = memory_of(context);
  if (!memory.reserve().give_back(head.block)) memory.release(head.block, head.block_bytes);
}

// The library checks what it gets for vectors, but pools then release their zeros twice. Workspaces
// are mostly larger, and live too long for the reserve.
void* allocate_for_vectors(void* context, size_t alignment, size_t bytes) {
  return take(context, alignment, bytes, bytes <= most_zeros);
}
void* allocate_piece(void* context, size_t bytes) {
  return take(context, least_alignment, bytes, true);
}
void* reallocate_piece(void* context, void* piece, size_t bytes) {
  void* other = allocate_piece(context, bytes);
  if (piece == nullptr || other == nullptr) return other;
  const size_t kept = head_of(piece).bytes;
  std::memcpy(other, piece, kept < bytes ? kept : bytes);
  give_back(context, piece);
  return other;
}

}  // namespace

bool initialize(Memory& memory) {
  // the library copies this in its first initialization, and ignores it later
  const xnn_allocator allocator{&memory,   allocate_piece,       reallocate_piece,
                                give_back, allocate_for_vectors, give_back};
  return xnn_initialize(&allocator) == xnn_status_success;
}

void* Memory::fail(size_t bytes) {
  ++failures_;
  return bytes == 0 ? nullptr : reserve_.take(bytes);
}

void* allocate(Memory& memory, size_t bytes) {
  void* piece = memory.allocate(bytes);
  if (piece == nullptr) (void)memory.fail(0);
  return piece;
}

// ---- the reserve

void* Reserve::take(size_t bytes) {
  lock();
  void* piece = nullptr;
  if (bytes <= (sizeof bytes_ - used_) / 2) piece = bytes_ + used_, used_ += bytes, ++pieces_;
  unlock();
  return piece;
}

bool Reserve::give_back(void* piece) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(piece);
  const uintptr_t first = reinterpret_cast<uintptr_t>(bytes_);
  if (place < first || place >= first + sizeof bytes_) return false;
  lock();
  if (--pieces_ == 0) used_ = 0;
  unlock();
  return true;
}

bool Reserve::suffices() {
  lock();
  const bool does = used_ <= sizeof bytes_ / 2;
  unlock();
  return does;
}

// Others hold the lock for a few instructions.
void Reserve::lock() {
  while (is_locked_.test_and_set(std::memory_order_acquire)) {
  }
}
void Reserve::unlock() { is_locked_.clear(std::memory_order_release); }

}  // namespace taper::delegates::xnnpack
