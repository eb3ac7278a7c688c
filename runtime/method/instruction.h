// A method that is ready to run: plain tables. The loader fills them, or a linked program contains
// them as constants.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/runtime/device/backend.h"

namespace taper {

namespace internal {
struct LoadedDelegate;
}

/// What `execute` does with an instruction.
enum class Step : uint8_t {
  kernel,         ///< run the kernel on the caller's thread
  stale,          ///< a symbol was bound since the last `prepare`: prepare, then do `fresh`
  device_kernel,  ///< put the kernel into a queue
  delegate,       ///< a backend computes the results
  copy,           ///< both tensors are on the host
  copy_in,        ///< from the host to the device of `space`
  copy_out,
  copy_within,
  bind,
  wait,
  jump,
  jump_unless,
  loop_begin,
  loop_end,
};

/// 32 bytes on a 64-bit machine.
struct Instruction {
  union {
    const Kernel* kernel;
    const internal::LoadedDelegate* delegate;
    struct {
      uint32_t target;  ///< jumps: an instruction; bind: a symbol; loop_begin: the first symbol
                        ///< that shows its counter
      union {
        uint32_t condition;   ///< jump_unless, loop_end: an expression
        uint32_t iterations;  ///< loop_begin: how often the end of the loop was reached
      };
    } control;
  };
  const Slot* arguments;
  void* plan;        ///< of a kernel; the instance of a delegate
  uint32_t depends;  ///< the symbols (as bits) that the shapes, offsets and numbers of the
                     ///< arguments depend on
  uint8_t queue;
  Step step;
  Step fresh;         ///< the value of `step` when it is not stale
  uint8_t space : 7;  ///< of the device
  uint8_t ends : 1;   ///< the plan is prepared and has an end: `Kernel::end`, `Backend::release`
};
static_assert(sizeof(void*) != 8 || sizeof(Instruction) == 32);

}  // namespace taper
