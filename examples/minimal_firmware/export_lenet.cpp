// Writes LeNet for one picture at a time and the portable kernels: what the firmware runs.
//
//   export_lenet WEIGHTS.safetensors OUTPUT.taper
//
// examples/train_lenet trains the weights.
#include <iostream>

#include "taper/examples/train_lenet/lenet.h"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: export_lenet WEIGHTS.safetensors OUTPUT.taper\n";
    return 2;
  }
  LeNet model;
  model.load(argv[1]);
  model.eval();
  taper::Exporter exporter;
  exporter.method("forward", [&](taper::Tensor x) { return model(x); },
                  {taper::input("image", {1, 1, 28, 28})}, {"logits"});
  exporter.write(argv[2], {.target = taper::Target("portable"), .debug = false});
  return 0;
} catch (const std::exception& e) {
  std::cerr << "export_lenet: " << e.what() << '\n';
  return 1;
}
