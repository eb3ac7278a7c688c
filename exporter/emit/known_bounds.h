// What the checks of a method say about sizes. A run only continues if it has passed all of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "taper/exporter/dim/dim.h"

namespace taper::emit {

/// Upper bounds of sizes that use the checks, and not only the ranges of symbols. `u0*u1 <= 16`
/// bounds `u0*u1*4` by 64, even if u0 and u1 may each be 16.
class KnownBounds {
 public:
  explicit KnownBounds(std::span<const Check> checks);
  /// The largest value of `size` in a run that passes the checks. The largest int64 means that no
  /// limit is known.
  int64_t upper(Dim size) const;
  /// The same for a symbol: `u0*u1 <= 16` bounds u0 by 16 if u1 is at least 1.
  int64_t upper_of_symbol(Dim symbol) const;

 private:
  /// The product of `factors`, none of which is a constant, is at most `upper`.
  struct Product {
    std::vector<Dim> factors;
    int64_t upper;
  };
  void learn(Dim smaller, Dim larger);
  int64_t upper_of_factor(Dim d) const;
  int64_t upper_of_product(const std::vector<Dim>& factors) const;

  std::vector<Product> products_;
};

}  // namespace taper::emit
