#include <iostream>

#include "taper/exporter/cli/taper.h"
#ifdef TAPER_WITH_XNNPACK
#include "taper/delegates/xnnpack/app/backend.h"
#include "taper/delegates/xnnpack/compile/delegate.h"
#endif

namespace {

// The command has all delegates that were built.
void hand_in_delegates() {
#ifdef TAPER_WITH_XNNPACK
  using namespace taper::delegates;
  static const xnnpack::XnnpackDelegate delegate(&xnnpack::backend()),
      f16_delegate(&xnnpack::f16_backend(), xnnpack::Precision::f16);
  taper::partition::hand_in(delegate);
  taper::partition::hand_in(f16_delegate);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  hand_in_delegates();
  return taper::cli::run({argv + 1, argv + argc}, std::cout, std::cerr);
}
