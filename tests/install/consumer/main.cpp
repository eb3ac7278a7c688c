// Uses an installed Taper as a user's project does.
#include <cstdio>

#include "taper/kernels/portable/portable.h"

int main() {
  const taper::KernelSet kernels = taper::portable::all;
  std::printf("%d kernels, the first is %s\n", static_cast<int>(kernels.size()), kernels[0]->name);
  return kernels.size() > 0 ? 0 : 1;
}
