// A device: memory that the host cannot touch, and a queue that runs kernels on it later.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/runtime/core/error.h"

namespace taper {

/// Spaces that one program may use, the host's included.
inline constexpr int max_spaces = 4;

/// What may use a device.
enum class DeviceUser : uint8_t { program, session, method };

/// What a device offers a program. Implemented by a backend (CUDA, Vulkan), handed over by the
/// caller in `LoadOptions`.
///
/// Addresses in its memory are opaque: the runtime adds offsets to them and passes them on, and
/// never reads through them. All work goes through one queue, in order. Nothing needs to have
/// happened before `wait` returns; errors of enqueued work are reported by a later call or by
/// `wait`, as `device_failed`.
///
/// The runtime waits before it changes anything that enqueued work may still read (plans,
/// arguments, shapes), and at the end of `execute`. No call allocates host memory during `execute`.
class Device {
 public:
  /// What a program calls it: "cuda", "vulkan". Equal devices are told apart by their ordinal.
  virtual const char* name() const = 0;
  virtual uint32_t ordinal() const { return 0; }
  /// The kernels that run on its memory: the same records as the host's; `prepare` and the shape
  /// rule run on the host and see opaque addresses.
  virtual KernelSet kernels() const = 0;

  /// Enqueues `kernel.run` with these arguments; their tensors lie in this device's memory.
  virtual Error run(const Kernel& kernel, Context& context, const void* plan,
                    const Slot* arguments) = 0;

  /// Enqueues a copy of `size_bytes` bytes. Host memory of `copy_in` was read when the call
  /// returns; that of `copy_out` is written when `wait` returns.
  virtual Error copy_in(void* device, const void* host, size_t size_bytes) = 0;
  virtual Error copy_out(void* host, const void* device, size_t size_bytes) = 0;
  virtual Error copy_within(void* to, const void* from, size_t size_bytes) = 0;

  /// Returns when everything enqueued is done, with the first error since the last `wait`.
  virtual Error wait() = 0;

  /// A user of the device was closed, or failed while it was made: what the device keeps for it (a
  /// recorded graph, a layout) may go. Everything enqueued is done. `which`: of a method, the
  /// address of the Context that `run` was given; of others, an address that tells them apart.
  virtual void end(DeviceUser user, const void* which) { (void)user, (void)which; }

 protected:
  ~Device() = default;
};

}  // namespace taper
