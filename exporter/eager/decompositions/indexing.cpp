#include "taper/exporter/eager/ops/indexing.h"

#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager::decompositions {

TAPER_DECOMPOSITION(argsort) {
  return {std::get<1>(call<ops::sort>(a.here(), a.tensor<"self">(), a.integer<"dim">(),
                                      a.boolean<"descending">()))};
}

}  // namespace taper::eager::decompositions
