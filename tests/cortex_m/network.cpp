// Runs any network of one method on numbers that follow from a formula, and prints the bits of its
// outputs: on a microcontroller and on a computer, to compare them.
#include "network.h"  // made by `taper export`

#include <cstring>

#include "taper/examples/minimal_firmware/board.h"
#include "taper/runtime/runtime.h"

namespace {

alignas(64) std::byte metadata[network_load_bytes];
alignas(64) std::byte memory[network_session_bytes + network_forward_bytes];

void print_bits(uint32_t bits) {
  char text[] = "00000000\n";
  for (int i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15];
  print(text);
}

taper::Error run() {
  TAPER_LET(program, taper::Program::load(network_taper, network_kernels, metadata));
  TAPER_LET(session, taper::Session::create(program, memory));
  TAPER_LET(method, taper::Method::create(session, "forward"));
  const taper::TensorRef input = method.input(0);
  auto* x = static_cast<float*>(input.data);
  uint32_t state = 1;
  for (taper::index_t i = 0; i < input.shape->numel(); ++i) {
    state = state * 1664525 + 1013904223;
    x[i] = static_cast<float>(state >> 8) * (1.f / 16777216);
  }
  TAPER_TRY(method.execute());
  for (int i = 0; i < method.output_count(); ++i) {
    const taper::TensorRef output = method.output(i);
    // all bits of large outputs, in one number (FNV-1a)
    const auto count = static_cast<size_t>(output.shape->numel());
    uint32_t hash = 2166136261u;
    for (size_t k = 0; k < count; ++k) {
      uint32_t bits;
      std::memcpy(&bits, static_cast<const float*>(output.data) + k, sizeof bits);
      if (count <= 16) print_bits(bits);
      hash = (hash ^ bits) * 16777619u;
    }
    if (count > 16) print_bits(hash);
  }
  return taper::Error::ok;
}

}  // namespace

int main() {
  const taper::Error error = run();
  if (error == taper::Error::ok) return 0;
  print("error: ");
  print(name_of(error));
  print("\n");
  return 1;
}
