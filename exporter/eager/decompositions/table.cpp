#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager {
namespace decompositions {

int64_t checked_dim(int64_t dim, int64_t rank, std::string_view op, const Tensor& self) {
  const int64_t n = rank > 0 ? rank : 1;
  if (dim < -n || dim >= n)
    throw EagerError(std::string(op) + ": dim " + std::to_string(dim) + " is outside [" +
                     std::to_string(-n) + ", " + std::to_string(n) + ") for " +
                     to_string(self.sizes()));
  return dim < 0 ? dim + n : dim;
}

void need_elements(const Tensor& t, std::string_view op) {
  if (t.is_traced())
    throw DataDependentError(std::string(op) +
                             ": the size of the result depends on the "
                             "elements of a tensor " +
                             to_string(t.sizes()) + ", which a trace does not know");
}

Tensor positions(Dim count) {
  Boxed arguments[] = {Boxed::of(Dim(0)), Boxed::of(count), Boxed::of(Dim(1)),
                       Boxed::of(DType::i64)};
  Tensor result;
  dispatch(info_of(ops::arange_start_step), arguments, &result, place());
  return result;
}

#define TAPER_DECOMPOSITION_NAME(name) extern const Decomposition name##_entry;
#include "taper/exporter/eager/decompositions/decompositions.def"
#undef TAPER_DECOMPOSITION_NAME

}  // namespace decompositions

std::span<const Decomposition* const> common_decompositions() {
  static constexpr const Decomposition* list[] = {
#define TAPER_DECOMPOSITION_NAME(name) &decompositions::name##_entry,
#include "taper/exporter/eager/decompositions/decompositions.def"
#undef TAPER_DECOMPOSITION_NAME
  };
  return list;
}

}  // namespace taper::eager
