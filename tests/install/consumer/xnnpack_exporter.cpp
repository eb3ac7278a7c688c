// Uses an installed Taper as a project does that exports for XNNPACK.
//
//   xnnpack_exporter FILE.taper: writes a program that multiplies its input with a weight.
#include "taper/delegates/xnnpack/compile/delegate.h"
#include "taper/exporter/exporter.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const taper::delegates::xnnpack::XnnpackDelegate delegate;
  taper::partition::hand_in(delegate);
  taper::ExportOptions options;
  options.exact = false, options.backend = delegate.name(), options.require_backend = true;
  const taper::Tensor weight = taper::Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  taper::Exporter exporter;
  exporter.method("forward", [&](taper::Tensor x) { return linear(x, weight); },
                  {taper::input("x", {2, 2})});
  exporter.write(argv[1], options);
}
