// Values of more dimensions than a tensor can have here. Models make them for a moment, to exchange
// parts of dimensions: reshape, permute, reshape. Only the importer knows them: it gives operators
// tensors in which neighbouring dimensions are joined.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "taper/exporter/eager/tensor.h"

namespace taper::pt2 {

/// A value of more than `max_rank` dimensions.
struct HighRank {
  eager::Tensor elements;  ///< in row-major order, whatever its own sizes are
  eager::Dims sizes;
};

/// How an operator treats dimensions. It decides which of them can be joined.
enum class Form : uint8_t {
  layout,       ///< the same elements in the same order: reshape, squeeze, clone
  permutation,  ///< permute, transpose, movedim
  expansion,    ///< expand
  fill,         ///< one number everywhere: zeros, full
  broadcast,    ///< element by element, over broadcast sizes: add, where
  along_dims,   ///< it looks at the dimensions that an argument names: select, flip, sum, cat
};
/// Nothing for operators that take no values of high rank.
std::optional<Form> form_of(const Operator& op);
/// The parameter of an operator `along_dims` that names them: "dim". Empty: it looks at all
/// elements in their order. Nothing for other operators.
std::optional<std::string_view> parameter_of_dims(const Operator& op);

/// Dimensions, of which neighbours are joined.
struct Joined {
  eager::Dims sizes;
  std::vector<int64_t> place;  ///< for each dimension before, the joined one that it is part of
};
/// Joins all dimensions but those in `apart`.
Joined join_around(const eager::Dims& sizes, const std::vector<int64_t>& apart);

/// Joins dimensions that all operands repeat in the same way. Returns the joined sizes of the
/// operands, in order, and those of the result at the end. All have the same rank.
std::vector<eager::Dims> join_repeated(const std::vector<eager::Dims>& operands,
                                       const eager::Dims& result);

/// Dimension i of the result is dimension order[i] of `value`. Copies once if the dimensions can be
/// joined to `max_rank`, and a few times otherwise.
HighRank permuted(HighRank value, std::vector<int64_t> order);

/// The number of elements.
Dim product(const eager::Dims& sizes);

eager::Tensor flat(const eager::Tensor& tensor);

}  // namespace taper::pt2
