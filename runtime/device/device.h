// A device: memory that the host cannot touch, and a queue that runs kernels on it later.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/runtime/core/error.h"

namespace taper {

/// How many spaces one program may use, the host's included.
inline constexpr int max_spaces = 4;

/// The users of a device.
enum class DeviceUser : uint8_t { program, session, method };

/// The interface of a device for programs. A backend (CUDA, Vulkan) implements it; the caller hands
/// it over in `LoadOptions`.
///
/// Addresses in its memory are opaque. The runtime adds offsets to them and passes them on, but
/// never reads through them. All work goes through one queue, in order. Until `wait` returns,
/// nothing needs to have happened. A later call or `wait` reports errors of enqueued work, as
/// `device_failed`.
///
/// The runtime waits at the end of `execute`, and before it changes anything that enqueued work may
/// still read (plans, arguments, shapes). No call allocates host memory during `execute`.
class Device {
 public:
  /// The device's name in a program: "cuda", "vulkan". Devices of one name differ in their ordinal.
  virtual const char* name() const = 0;
  virtual uint32_t ordinal() const { return 0; }
  /// The kernels that run on its memory. The records are of the same kind as the host's. `prepare`
  /// and the shape rule run on the host and see opaque addresses.
  virtual KernelSet kernels() const = 0;

  /// Enqueues `kernel.run` with these arguments, whose tensors lie in this device's memory.
  virtual Error run(const Kernel& kernel, Context& context, const void* plan,
                    const Slot* arguments) = 0;

  /// Enqueues a copy of `size_bytes` bytes. `copy_in` has read the host memory when it returns.
  /// `copy_out` has written it when `wait` returns.
  virtual Error copy_in(void* device, const void* host, size_t size_bytes) = 0;
  virtual Error copy_out(void* host, const void* device, size_t size_bytes) = 0;
  virtual Error copy_within(void* to, const void* from, size_t size_bytes) = 0;

  /// Returns when all enqueued work is done, with the first error since the last `wait`.
  virtual Error wait() = 0;

  /// Called when a user of the device was closed, or failed while it was made. All enqueued work is
  /// done. The device may free what it keeps for this user (a recorded graph, a layout). For a
  /// method, `which` is the address of the Context that `run` was given; for others, an address
  /// that tells them apart.
  virtual void end(DeviceUser user, const void* which) { (void)user, (void)which; }

 protected:
  ~Device() = default;
};

}  // namespace taper
