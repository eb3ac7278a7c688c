// From power-on to main(), and a way to print: semihosting, in which a debugger (here qemu) serves
// the program.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../board.h"

extern "C" {
extern char data_begin[], data_end[], bss_begin[], bss_end[], stack_top[];  // mps2_an385.ld
extern const char data_in_flash[];
}

int main();

namespace {

// "Semihosting for AArch32 and AArch64", Arm: operation in r0, its argument in r1.
enum class Service : uint32_t { write0 = 0x04, exit = 0x18 };

uint32_t call(Service service, uintptr_t argument) {
  register uint32_t r0 asm("r0") = static_cast<uint32_t>(service);
  register uintptr_t r1 asm("r1") = argument;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

[[noreturn]] void stop(bool good) {
  constexpr uintptr_t application_exit = 0x20026, run_time_error = 0x20023;
  for (;;) call(Service::exit, good ? application_exit : run_time_error);
}

extern "C" [[noreturn]] void reset() {
  std::memcpy(data_begin, data_in_flash, static_cast<size_t>(data_end - data_begin));
  std::memset(bss_begin, 0, static_cast<size_t>(bss_end - bss_begin));
  stop(main() == 0);
}

void fault() {
  print("fault\n");
  stop(false);
}

// What the processor reads at reset: the stack, where to begin, and what to do about NMI and the
// faults.
using Handler = void (*)();
struct Vectors {
  char* stack;
  Handler reset, nmi, hard_fault, memory_fault, bus_fault, usage_fault;
};
[[gnu::section(".vectors"), gnu::used]] const Vectors vectors = {stack_top, reset, fault, fault,
                                                                 fault,     fault, fault};

}  // namespace

void print(const char* text) { call(Service::write0, reinterpret_cast<uintptr_t>(text)); }
