// The memory that XNNPACK allocates, counted.
#pragma once
#include <cstddef>
#include <cstdint>

namespace taper::delegates::xnnpack {

/// Memory from the caller. Calls come from several threads at the same time.
class Memory {
 public:
  /// At least `bytes` at a multiple of 64; nullptr: there are none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory, size_t bytes) = 0;
  /// The library has packed these bytes of a program, and hardly reads them again. The thread that
  /// creates a method calls this. Others may read the bytes meanwhile and later, so they must stay.
  virtual void was_packed(const void* /*elements*/, size_t /*bytes*/) {}

 protected:
  ~Memory() = default;
};

/// Initializes the library, which takes all its memory from `memory`. The library keeps the first
/// memory of the process, and ignores others. False: it does not run on this machine.
bool initialize(Memory& memory);

/// Of the backend itself. nullptr is counted as a failure.
void* allocate(Memory& memory, size_t bytes);
/// How often there was no memory. The library does not check some pieces, so it gets those
/// from a reserve. What it makes meanwhile must be destroyed.
uint32_t failed_allocations();
/// Whether the reserve suffices for such pieces. The library must not make anything otherwise.
bool has_reserve();

}  // namespace taper::delegates::xnnpack
