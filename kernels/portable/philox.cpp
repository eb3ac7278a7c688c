#include "taper/kernels/portable/philox.h"

#include "taper/kernels/portable/elements.h"

namespace taper::portable {

PhiloxGroups PhiloxStream::groups(int64_t first) const {
  const uint64_t n = offset_ + static_cast<uint64_t>(first);
  PhiloxGroups groups;
  TAPER_LANES
  for (int g = 0; g < PhiloxGroups::count; ++g) {
    const uint64_t counter = n + static_cast<uint64_t>(g);
    const PhiloxWords words =
        philox({{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}},
               static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32));
    for (int k = 0; k < 4; ++k) groups.word[k][g] = words.word[k];
  }
  return groups;
}

}  // namespace taper::portable
