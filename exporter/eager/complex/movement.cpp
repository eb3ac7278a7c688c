// Complex tensors made, cast, and written in part.
#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::complex_forms {
namespace {

Tensor converted(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return clone(t);
  if (is_complex(dtype)) return complex_of({cast(t, DType::f32), {}});
  if (dtype == DType::boolean) return ne(t, 0);
  throw ExportError(std::string("a complex tensor cannot become ") + taper::name_of(dtype) +
                    ", which would drop its imaginary part; take real(x), imag(x), abs(x) or "
                    "view_as_real(x)");
}

}  // namespace

TAPER_COMPLEX(_to_copy) {
  const Tensor self = a.tensor<"self">();
  return {converted(self, a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype())};
}
TAPER_COMPLEX(copy) {
  const Tensor self = a.tensor<"self">();
  return {converted(expand(a.tensor<"src">(), self.sizes()), self.dtype())};
}

TAPER_COMPLEX_FORM(full, by_parts_with_numbers)
TAPER_COMPLEX_FORM(fill_Scalar, by_parts_with_numbers)
TAPER_COMPLEX(linspace) {
  return {complex_of(
      {linspace(a.scalar<"start">(), a.scalar<"end">(), a.integer<"steps">(), DType::f32), {}})};
}
TAPER_COMPLEX_FORM(scalar_tensor, by_parts_with_numbers)
TAPER_COMPLEX_FORM(empty_memory_format, by_parts)
TAPER_COMPLEX_FORM(empty_strided, by_parts)

TAPER_COMPLEX_FORM(constant_pad_nd, by_parts_with_numbers)
TAPER_COMPLEX_FORM(masked_fill_Scalar, by_parts_with_numbers)
TAPER_COMPLEX_FORM(scatter_value, by_parts_with_numbers)
TAPER_COMPLEX_FORM(index_fill_int_Scalar, by_parts_with_numbers)
TAPER_COMPLEX_FORM(index_put, by_parts)
TAPER_COMPLEX_FORM(index_add, by_parts)
TAPER_COMPLEX_FORM(scatter_add, by_parts)

// what derivatives of operators that move elements call
TAPER_COMPLEX_FORM(embedding_dense_backward, by_parts)
TAPER_COMPLEX_FORM(reflection_pad1d_backward, by_parts)
TAPER_COMPLEX_FORM(reflection_pad2d_backward, by_parts)
TAPER_COMPLEX_FORM(reflection_pad3d_backward, by_parts)
TAPER_COMPLEX_FORM(replication_pad1d_backward, by_parts)
TAPER_COMPLEX_FORM(replication_pad2d_backward, by_parts)
TAPER_COMPLEX_FORM(replication_pad3d_backward, by_parts)
TAPER_COMPLEX_FORM(col2im, by_parts)

}  // namespace taper::eager::complex_forms
