// README.md, "Run on a phone or a laptop", as an app of its own. Its size is tested.
#include <array>
#include <cstdio>
#include <stdexcept>

#include "lenet.h"
#include "taper/runtime/extension/module/module.h"

int main() {
  const std::array<float, 28 * 28> image{};
#include "module.inc"
  std::printf("%g\n", scores[0]);
}
