// Writes the program for which the apps on docs/running.md are weighed: MobileNetV2, with weights
// as they are initialized.
//
//   docs_mobilenet_program FILE.taper
#include "taper/benchmarks/mobilenet_v2.h"

using namespace taper;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  mobilenet::MobileNetV2 model;
  model.eval();
  Exporter exporter;
  exporter.method("forward", [&](Tensor x) { return model(x); },
                  {input("image", {1, 3, 224, 224})});
  exporter.write(argv[1], {.exact = false, .debug = false});
  return 0;
}
