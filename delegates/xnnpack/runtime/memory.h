// The memory that XNNPACK allocates, counted.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taper::delegates::xnnpack {

/// Pieces for a library that got no memory: the largest has 40 bytes for each value and node of a
/// part. All of it is free again when all pieces are back. Nobody writes it before, so that a
/// system with virtual memory gives it no pages.
class Reserve {
 public:
  void* take(size_t bytes);
  /// Whether the piece came from here.
  bool give_back(void* piece);
  bool suffices();

 private:
  void lock();
  void unlock();

  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT;
  size_t used_ = 0;
  uint32_t pieces_ = 0;
  std::byte bytes_[1 << 20];
};

/// Memory from the caller. Calls come from several threads at the same time.
class Memory {
 public:
  /// At least `bytes` at a multiple of 64; nullptr: there are none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory, size_t bytes) = 0;
  /// The library has packed these bytes of a program, and hardly reads them again. The thread that
  /// creates a method calls this. Others may read the bytes meanwhile and later, so they must stay.
  virtual void was_packed(const void* /*elements*/, size_t /*bytes*/) {}

  /// How often there was no memory. The library does not check some pieces, so it gets those from
  /// the reserve. What it makes meanwhile must be destroyed.
  uint32_t failures() const { return failures_; }
  /// Whether the reserve suffices for such pieces. The library must not make anything otherwise.
  bool has_reserve() { return reserve_.suffices(); }

  // for memory.cpp
  Reserve& reserve() { return reserve_; }
  /// Counts a failure. A piece of the reserve, unless `bytes` is 0; nullptr: it has none.
  void* fail(size_t bytes);

 protected:
  Memory() {}  // leaves the reserve as it is
  ~Memory() = default;

 private:
  std::atomic<uint32_t> failures_{0};
  Reserve reserve_;
};

/// Initializes the library, which takes all its memory from `memory`. The library keeps the first
/// memory of the process, and ignores others. False: it does not run on this machine.
bool initialize(Memory& memory);

/// Of the backend itself. nullptr is counted as a failure.
void* allocate(Memory& memory, size_t bytes);

}  // namespace taper::delegates::xnnpack
