// Datasets: the source of a Loader's batches.
#pragma once
#include <cstdint>
#include <span>

#include "taper/exporter/data/random.h"
#include "taper/exporter/eager/tensor.h"

namespace taper::data {

using eager::Tensor;

/// Inputs and the results that the model should give for them: `auto [images, labels] = batch;`
struct Batch {
  Tensor inputs, targets;
};

/// Numbered examples. Derive your own dataset from it and give that to a Loader.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// The number of examples.
  virtual int64_t size() const = 0;

  /// The examples of these numbers, each in [0, size()), stacked along a new first dimension.
  /// `seed` decides all chance (augmentation); the same arguments give the same batch.
  virtual Batch batch(std::span<const int64_t> examples, uint64_t seed) const = 0;
};

}  // namespace taper::data
