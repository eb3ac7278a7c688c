// Golden cases made into others: what a property must hold for besides the cases themselves.
#pragma once
#include <random>

#include "cases.h"

namespace taper::golden {

using Random = std::mt19937_64;

/// Arguments like those of `golden`, drawn anew, as a case without results:
///   sizes     an extent larger than one becomes, everywhere in the case, another one
///   dtypes    all floating tensors take another floating dtype, all integer ones another integer
///   strides   permuted, stepped, shifted, or 0 along a dimension
///   elements  drawn from the case's own, floating ones moved a little, so that indices stay
///   indices
///             and the domain of a function is kept
///   order     where a seed asks for one (seeds.h), it is made again
/// Each with a probability, so that operators that bear little still get some that they accept.
struct Variation {
  CaseFile file;
  Json golden;
};
Variation vary(const CaseFile& file, const Json& golden, const eager::OperatorInfo& info,
               Random& random);

}  // namespace taper::golden
