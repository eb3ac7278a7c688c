// Splits a grouped matrix product (kernels/shapes/matmul.h) into plain ones.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper {
namespace portable {

struct GroupEnd {};  ///< i32 or i64
using GroupEnds = Maybe<AnyView<const GroupEnd>>;

/// One of the plain products: its extents, and where its parts of self, mat2 and out begin, in
/// elements.
struct GroupProduct {
  index_t m, n, k;
  index_t self, mat2, out;
};

inline int64_t group_end(const AnyView<const GroupEnd>& offs, index_t group) {
  const void* data = offs.ref->data;
  const index_t at = group * offs.stride(0);
  return offs.dtype() == DType::i32 ? static_cast<const int32_t*>(data)[at]
                                    : static_cast<const int64_t*>(data)[at];
}

/// The ends of the groups must ascend within [0, extent], because they are used as addresses.
inline Error check_group_ends(Context& context, const AnyView<const GroupEnd>& offs,
                              index_t extent) {
  int64_t begin = 0;
  for (index_t g = 0; g < offs.size(0); ++g) {
    const int64_t end = group_end(offs, g);
    if (end < begin || end > extent)
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("offs must ascend: {} is outside [{}, {}]"), end, begin,
                          extent);
    begin = end;
  }
  return Error::ok;
}

/// Calls `body(product)` for each group. What lies behind the last group gets one more call, with
/// an empty sum. If offs is wrong, nothing is computed.
template <class E, class Body>
Error for_each_group(Context& context, const AnyView<const E>& self, const AnyView<const E>& mat2,
                     const GroupEnds& offs, const View<E>& out, const Body& body) {
  const bool cuts_self = self.rank() == 2, cuts_mat2 = mat2.rank() == 2;
  const index_t m = self.size(-2), n = mat2.size(-1), k = self.size(-1);
  const index_t cut = !cuts_self ? n : cuts_mat2 ? k : m;  // the extent that offs divides
  if (offs) TAPER_TRY(check_group_ends(context, *offs, cut));
  const index_t groups = offs ? offs->size(0) : self.size(0);
  index_t begin = 0;
  for (index_t g = 0; g < groups; ++g) {
    GroupProduct p{m, n, k, 0, 0, 0};
    if (!cuts_self) p.self = g * self.stride(0);
    if (!cuts_mat2) p.mat2 = g * mat2.stride(0);
    if (out.rank() == 3) p.out = g * m * n;
    if (offs) {
      const index_t end = static_cast<index_t>(group_end(*offs, g)), count = end - begin;
      if (cuts_self && cuts_mat2)
        p.k = count, p.self = begin * self.stride(1), p.mat2 = begin * mat2.stride(0);
      else if (cuts_self)
        p.m = count, p.self = begin * self.stride(0), p.out = begin * n;
      else
        p.n = count, p.mat2 = begin * mat2.stride(1), p.out = begin;
      begin = end;
    }
    if (p.m > 0 && p.n > 0) body(p);
  }
  if (out.rank() == 3 || begin == cut || out.numel() == 0) return Error::ok;
  if (cuts_self)
    body(GroupProduct{m - begin, n, 0, 0, 0, begin * n});
  else
    body(GroupProduct{m, n - begin, 0, 0, 0, begin});
  return Error::ok;
}

}  // namespace portable

template <>
struct dtypes_of<portable::GroupEnd> {
  static constexpr DTypeSet set = one(DType::i32) | one(DType::i64);
};

}  // namespace taper
