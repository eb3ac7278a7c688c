// Convolutions of volumes (batch, channels, depth, height, width) as those of images.
// Internal to compile.
#pragma once
#include <string>

#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {

/// Why a convolution of volumes is refused, but for its weights; empty: it is taken.
std::string refuses_volume(const ir::Call<ops::convolution>& call);
void lower_volume(Lowering& out, const ir::Node& convolution);

}  // namespace taper::delegates::xnnpack
