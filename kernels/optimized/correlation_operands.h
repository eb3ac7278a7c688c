// The operands of a correlation's products: planes of the source, and panels of the weights.
#pragma once
#include "taper/kernels/optimized/correlation_layout.h"
#include "taper/kernels/optimized/panels.h"

namespace taper::optimized::correlation {

/// All planes of a group's channels for the result's depth `z` and the band from `q0` on. `source`:
/// the group's first channel.
void fill_planes(const Microkernels& kernels, const ImageTiles& images, const Correlation& c,
                 const Layout& l, Direction direction, const float* source, index_t z, index_t q0,
                 float* planes);

/// offsets[(v, tap)]: where the plane of virtual channel v begins for the tap.
void write_offsets(const Correlation& c, const Layout& l, const Phase& p, index_t* offsets);

/// One panel of one group's weights: (depth, width) for each phase of the result. `weight` and
/// `to`: the group's first. `place`: the channel whose place it takes, its own or an earlier
/// panel's that is done with.
struct PanelOfWeights {
  const Microkernels& kernels;
  const Correlation& c;
  const Layout& l;
  Direction direction;
  const Panels& panels;
  index_t first, rows, width, place;
  const float* weight;
  PackedMatrix packed;  // in place of `weight`: all weights, of which the group's begin at
  index_t packed_row;
  float* to;

  void pack() const;

 private:
  void pack_forward() const;
  void pack_packed() const;
  void pack_backward(index_t first_tap) const;
};

}  // namespace taper::optimized::correlation
