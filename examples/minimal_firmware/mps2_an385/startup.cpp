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

volatile uint32_t& system_register(uintptr_t address) {
  return *reinterpret_cast<volatile uint32_t*>(address);
}

// SysTick counts down from 2^24 - 1, and starts again.
uint32_t turns = 0;
void count_turn() { turns = turns + 1; }
constexpr uint32_t most_ticks = 0xffffff;
void start_ticks() {
  system_register(0xe000e014) = most_ticks;
  system_register(0xe000e018) = 0;
  system_register(0xe000e010) = 7;  // the processor's clock, with the interrupt
}
void print_ticks() {
  const uint32_t left = system_register(0xe000e018);  // 0 until the first tick
  uint64_t ticks =
      static_cast<uint64_t>(turns) * (most_ticks + 1ull) + (left == 0 ? 0 : most_ticks - left);
  char text[] = "                    ticks\n";
  for (char* at = text + 19; ticks > 0; ticks /= 10) *--at = static_cast<char>('0' + ticks % 10);
  print(text);
}

extern "C" [[noreturn]] void reset() {
#ifdef __ARM_FP
  system_register(0xe000ed88) |= 0xf << 20;  // CPACR: the floating-point unit may be used
#endif
  std::memcpy(data_begin, data_in_flash, static_cast<size_t>(data_end - data_begin));
  std::memset(bss_begin, 0, static_cast<size_t>(bss_end - bss_begin));
#ifdef TAPER_PRINT_TICKS
  start_ticks();
  const bool good = main() == 0;
  print_ticks();
  stop(good);
#else
  stop(main() == 0);
#endif
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
  Handler reset, nmi, hard_fault, memory_fault, bus_fault, usage_fault, others[8], system_tick;
};
[[gnu::section(".vectors"), gnu::used]] const Vectors vectors = {
    stack_top, reset, fault, fault, fault, fault, fault, {}, count_turn};

}  // namespace

void print(const char* text) { call(Service::write0, reinterpret_cast<uintptr_t>(text)); }
