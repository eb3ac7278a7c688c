// Classifies a digit without heap, exceptions, files or an operating system. The same code runs on
// a microcontroller (mps2_an385/) and on a computer, and prints the same bits on both.
#include <cstring>

#include "board.h"
#include "digit.h"
#include "lenet.h"  // made by `taper export`: lenet_taper, lenet_kernels, and the sizes below
#include "taper/runtime/runtime.h"

namespace {

alignas(64) std::byte metadata[lenet_load_bytes];
alignas(64) std::byte memory[lenet_session_bytes + lenet_forward_bytes];

// Ink in [0, 1], as the model was trained.
void read_digit(float* image) {
  constexpr char inks[] = " .:-=+*#%@";
  for (int y = 0; y < digit_size; ++y)
    for (int x = 0; x < digit_size; ++x)
      *image++ = static_cast<float>(std::strchr(inks, digit[y][x]) - inks) / 9.f;
}

void print_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char text[] = "00000000\n";
  for (int i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15];
  print(text);
}

taper::Error classify_digit() {
  TAPER_LET(program, taper::Program::load(lenet_taper, lenet_kernels, metadata));
  TAPER_LET(session, taper::Session::create(program, memory));
  TAPER_LET(method, taper::Method::create(session, "forward"));

  read_digit(
      static_cast<float*>(method.input(0).data));  // no copy: written where the method reads it
  TAPER_TRY(method.execute());

  const taper::TensorRef output = method.output(0);  // (1, 10)
  const float* scores = static_cast<const float*>(output.data);
  int best = 0;
  for (int i = 0; i < output.shape->numel(); ++i) {
    print_bits(scores[i]);
    if (scores[i] > scores[best]) best = i;
  }
  const char text[] = {
      't', 'h', 'i', 's', ' ', 'i', 's', ' ', 'a', ' ', static_cast<char>('0' + best), '\n', '\0'};
  print(text);
  return taper::Error::ok;
}

}  // namespace

int main() {
  const taper::Error error = classify_digit();
  if (error == taper::Error::ok) return 0;
  print("error: ");
  print(name_of(error));
  print("\n");
  return 1;
}
