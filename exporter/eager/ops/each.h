#pragma once
#include <initializer_list>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// One number for all dimensions of a window (`2`), or one for each (`{2, 3}`). `{}` leaves the
/// choice to the operator.
class Each {
 public:
  Each() = default;
  Each(int64_t all) : values_{all} {}
  Each(std::initializer_list<int64_t> each) : values_(each) {}
  Each(Ints each) : values_(std::move(each)) {}

  const Ints& ints() const { return values_; }
  Dims dims() const { return {values_.begin(), values_.end()}; }

 private:
  Ints values_;
};

}  // namespace taper::eager
