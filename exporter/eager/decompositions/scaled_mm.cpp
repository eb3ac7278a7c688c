// Products of matrices of 8-bit floats with scales. The operands are widened, multiplied in f32 and
// scaled, as PyTorch does on a CPU.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/kernels/float8.h"

namespace taper::eager::decompositions {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw EagerError("_scaled_mm: " + what); }

bool is_one_number(const Tensor& scale) { return proves_equal(scale.numel(), Dim(1)); }

/// Whether the scales are (rows, 1) for self and (1, columns) for mat2.
bool are_of_lines(const Tensor& scale_a, const Tensor& scale_b, Dim rows, Dim columns) {
  return scale_a.rank() == 2 && scale_b.rank() == 2 && proves_equal(scale_a.size(0), rows) &&
         proves_equal(scale_a.size(1), Dim(1)) && proves_equal(scale_b.size(0), Dim(1)) &&
         proves_equal(scale_b.size(1), columns);
}

void check(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b) {
  for (const Tensor* t : {&self, &mat2})
    if (t->rank() != 2 || !is_float8(t->dtype()))
      refuse(std::string("self and mat2 must be matrices of f8_e4m3fn or f8_e5m2, got ") +
             taper::name_of(t->dtype()) + " " + to_string(t->sizes()));
  for (const Tensor* t : {&scale_a, &scale_b})
    if (t->dtype() != DType::f32)
      refuse(std::string("the scales must be f32, not ") + taper::name_of(t->dtype()));
  if (!(is_one_number(scale_a) && is_one_number(scale_b)) &&
      !are_of_lines(scale_a, scale_b, self.size(0), mat2.size(1)))
    refuse("scale_a " + to_string(scale_a.sizes()) + " and scale_b " + to_string(scale_b.sizes()) +
           " must both have one element, or be (" + self.size(0).to_string() + ", 1) and (1, " +
           mat2.size(1).to_string() + ")");
}

}  // namespace

TAPER_DECOMPOSITION(_scaled_mm) {
  const Tensor self = a.tensor<"self">(), mat2 = a.tensor<"mat2">();
  Tensor scale_a = a.tensor<"scale_a">(), scale_b = a.tensor<"scale_b">();
  check(self, mat2, scale_a, scale_b);
  if (is_one_number(scale_a)) scale_a = reshape(scale_a, {}), scale_b = reshape(scale_b, {});
  Tensor y = mm(cast(self, DType::f32), cast(mat2, DType::f32));
  y = mul(mul(y, scale_a), scale_b);
  if (a.has<"bias">()) y = add(y, cast(a.tensor<"bias">(), DType::f32));
  const bool given = a.has<"out_dtype">();
  const DType dtype = given ? a.dtype<"out_dtype">() : self.dtype();
  if (given && is_float8(dtype) && a.has<"scale_result">())
    y = div(y, reshape(a.tensor<"scale_result">(), {}));
  return {cast(y, dtype)};
}

}  // namespace taper::eager::decompositions
