// Exports LeNet as docs/microcontroller.md says.
#include "taper/examples/train_lenet/lenet.h"
#include "taper/exporter/exporter.h"

using namespace taper;

int main() {
  LeNet model;
  Exporter exporter;
#include "export.inc"
}
