// What must hold for every call of an operator, whatever its arguments:
//
//   threads    the same bits with one thread and with two
//   strides    the same bits for dense arguments as for strided ones
//   levels     the portable kernels give what faster ones do, within rounding
//   exported   a program of the call gives eager's bits, with one thread and with two
//   symbols    traced with symbolic sizes, it gets the sizes that a run gives
//   gradients  first and second derivatives agree with central differences, in f64
#pragma once
#include <set>
#include <string>

#include "known.h"
#include "run_case.h"
#include "variation.h"

namespace taper::golden {

struct PropertyCounts {
  int accepted = 0, refused = 0, failed = 0, symbolic = 0, differentiated = 0;
  std::set<std::string> refused_symbols;  ///< why
  void add(const PropertyCounts& c) {
    accepted += c.accepted, refused += c.refused, failed += c.failed;
    symbolic += c.symbolic, differentiated += c.differentiated;
  }
};

/// The first property that does not hold for a variation of `base`, and how, or "". A call that
/// the operator refuses is counted, no more. `known` lists by row and property what need not hold.
std::string check_properties(const Variation& variation, const Json& base, const Target& target,
                             const Known& known, PropertyCounts& counts);

}  // namespace taper::golden
