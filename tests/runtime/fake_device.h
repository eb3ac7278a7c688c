// A device for tests: memory that the host must not touch, and a queue that does nothing until
// somebody waits.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "taper/runtime/device/device.h"
#include "test_kernels.h"

namespace taper::test {

/// Its addresses are `memory + poison`: no host pointer, so whoever dereferences one crashes. The
/// queue translates them when it runs. Kernels are those of the tests, on copies of their slots
/// whose tensors have real addresses.
class FakeDevice : public Device {
 public:
  static constexpr uintptr_t poison = uintptr_t{1} << 60;

  explicit FakeDevice(size_t bytes) : memory_(bytes / sizeof(std::max_align_t) + 4) {}

  /// What the caller hands over to the program, its session, its method.
  Span<std::byte> take(size_t bytes) {
    std::byte* place = reinterpret_cast<std::byte*>(memory_.data()) + used_;
    const size_t padding = (64 - reinterpret_cast<uintptr_t>(place) % 64) % 64;
    used_ += padding + bytes;
    return {poisoned(place + padding), static_cast<index_t>(bytes)};
  }
  /// An error that the next piece of enqueued work will meet.
  void fail_next() { fails_ = true; }
  size_t pending() const { return queue_.size(); }
  int waits = 0;

  const char* name() const override { return "fake"; }
  KernelSet kernels() const override { return test::kernels; }

  Error run(const Kernel& kernel, Context& context, const void* plan,
            const Slot* arguments) override {
    last_context = &context;
    queue_.push_back([&kernel, &context, plan, arguments] {
      std::vector<Slot> slots(arguments, arguments + kernel.expected_count);
      std::vector<TensorRef> tensors(slots.size());
      for (size_t i = 0; i < slots.size(); ++i) {
        if (kernel.expected[i].kind != Kind::tensor || kernel.expected[i].list ||
            slots[i].tensor == nullptr)
          continue;
        tensors[i] = *slots[i].tensor;
        tensors[i].data = real(tensors[i].data);
        slots[i].tensor = &tensors[i];
      }
      return kernel.run(context, plan, slots.data());
    });
    return Error::ok;
  }
  Error copy_in(void* device, const void* host, size_t bytes) override {
    const std::byte* from = static_cast<const std::byte*>(host);
    queue_.push_back([to = real(device), data = std::vector<std::byte>(from, from + bytes)] {
      std::memcpy(to, data.data(), data.size());
      return Error::ok;
    });
    return Error::ok;
  }
  Error copy_out(void* host, const void* device, size_t bytes) override {
    queue_.push_back([host, from = real(const_cast<void*>(device)), bytes] {
      return std::memcpy(host, from, bytes), Error::ok;
    });
    return Error::ok;
  }
  Error copy_within(void* to, const void* from, size_t bytes) override {
    queue_.push_back([to = real(to), from = real(const_cast<void*>(from)), bytes] {
      return std::memmove(to, from, bytes), Error::ok;
    });
    return Error::ok;
  }
  void end(DeviceUser user, const void* which) override {
    EXPECT_TRUE(queue_.empty()) << "told while work waits";
    ended.emplace_back(user, which);
  }
  std::vector<std::pair<DeviceUser, const void*>> ended;
  const Context* last_context = nullptr;  // of the last kernel
  Error wait() override {
    ++waits;
    Error first = Error::ok;
    for (auto& work : queue_) {
      Error e = work();
      if (fails_) e = Error::device_failed, fails_ = false;
      if (first == Error::ok) first = e;
    }
    queue_.clear();
    return first;
  }

 private:
  static std::byte* poisoned(std::byte* p) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(p) + poison);
  }
  static void* real(void* p) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) - poison);
  }

  std::vector<std::max_align_t> memory_;
  size_t used_ = 0;
  bool fails_ = false;
  std::vector<std::function<Error()>> queue_;
};

}  // namespace taper::test
