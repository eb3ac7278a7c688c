// Uses an installed Taper as a project that trains and exports does.
//
//   exporter FILE.taper: writes a program that doubles its input.
#include "taper/exporter/exporter.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  taper::Exporter exporter;
  exporter.method("forward", [](taper::Tensor x) { return x * 2; }, {taper::input("x", {2, 3})});
  exporter.write(argv[1]);
}
