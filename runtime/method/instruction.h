// A method that is ready to run: plain tables. The loader fills them, or a linked program has them
// as constants.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper {

/// What `execute` does with an instruction.
enum class Step : uint8_t {
  kernel,         ///< run the kernel on the caller's thread
  stale,          ///< a symbol was bound since the last `prepare`: prepare, then do `fresh`
  device_kernel,  ///< put the kernel into a queue
  copy,           ///< on the host
  copy_in,        ///< to the device of `space`
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
    struct {
      uint32_t target;  ///< an instruction; bind: a symbol; loop_begin: the first of the symbols
                        ///< that show its counter
      union {
        uint32_t condition;   ///< jump_unless, loop_end: an expression
        uint32_t iterations;  ///< loop_begin: how often the loop's end was reached
      };
    } control;
  };
  const Slot* arguments;
  void* plan;
  uint32_t
      depends;  ///< symbols (as bits) that the shapes, offsets and numbers of its arguments use
  uint8_t queue;
  Step step;
  Step fresh;         ///< what `step` is when it is not stale
  uint8_t space : 7;  ///< of a device
  uint8_t ends : 1;   ///< the plan was prepared, and its kernel wants to be told when it ends
};
static_assert(sizeof(void*) != 8 || sizeof(Instruction) == 32);

}  // namespace taper
