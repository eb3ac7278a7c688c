// The memory that XNNPACK allocates, counted.
#pragma once
#include <cstddef>

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

}  // namespace taper::delegates::xnnpack
