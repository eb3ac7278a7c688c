// cat, and writes to a part of a tensor: copies to a strided region of the result.
#include <cstring>

#include "taper/kernels/portable/copy.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/shapes/movement.h"

namespace taper::portable {
namespace {

// Copies row by row, so that the result is written from one end to the other. Returns false unless
// the tensors are dense and few, and their parts of a row are short, but a cache line or more.
bool cat_rows(const Context& context, const ViewList<const AnyElement, Strides::any>& tensors,
              int dim, const View<AnyElement>& out) {
  constexpr int most = 8;
  constexpr index_t shortest = 64, longest = 4096, task_bytes = 131072;
  const int bytes = size_bytes(out.dtype());
  index_t rows = 1;
  for (int d = 0; d < dim; ++d) rows *= out.size(d);
  const index_t row = out.numel() / rows * bytes;
  if (rows == 1 || row > longest || tensors.count > most) return false;
  const char* from[most];
  index_t part[most];
  for (index_t i = 0; i < tensors.count; ++i) {
    const AnyView<const AnyElement>& tensor = tensors[i];
    from[i] = static_cast<const char*>(tensor.ref->data);
    part[i] = tensor.numel() / rows * bytes;
    if (tensor.dtype() != out.dtype() || !tensor.shape().is_dense() || part[i] < shortest)
      return false;
  }
  const index_t per_task = task_bytes / row;
  parallel_for(context.threads, (rows + per_task - 1) / per_task, [&](index_t task) {
    const index_t begin = task * per_task, end = begin + per_task < rows ? begin + per_task : rows;
    char* to = static_cast<char*>(out.ref->data) + begin * row;
    for (index_t r = begin; r < end; ++r)
      for (index_t i = 0; i < tensors.count; to += part[i++])
        std::memcpy(to, from[i] + r * part[i], static_cast<size_t>(part[i]));
  });
  return true;
}

Error cat(Context& context, ViewList<const AnyElement, Strides::any> tensors, int64_t dim,
          View<AnyElement> out) {
  if (out.numel() == 0) return Error::ok;
  if (dim < 0) dim += out.rank();
  if (cat_rows(context, tensors, static_cast<int>(dim), out)) return Error::ok;
  char* to = static_cast<char*>(out.ref->data);
  for (index_t i = 0; i < tensors.count; ++i) {
    const Shape& shape = tensors[i].shape();
    const index_t count = shape.numel();
    if (count == 0) continue;
    Walk region;
    for (int d = 0; d < shape.rank; ++d) region.add(shape.sizes[d], out.stride(d));
    copy_elements(context.threads, *tensors[i].ref, Walk::of(shape), to, out.dtype(), region,
                  count);
    to += shape.sizes[dim] * out.stride(static_cast<int>(dim)) * size_bytes(out.dtype());
  }
  return Error::ok;
}

/// `self`, and the region of the result that `src` is copied to.
struct Part {
  static constexpr uint32_t overwrites = 1;
  Walk self, src, region;
  index_t offset, count;
};

/// The type of the result, with its own strides.
TensorType<Extent> type_of_result(const View<AnyElement>& out) { return type_of(out.ref); }

Error plan_part(Part& plan, const AnyView<const AnyElement>& self,
                const AnyView<const AnyElement>& src, const TensorType<Extent>& part) {
  plan.self = Walk::of(self.shape());
  plan.src = Walk::of(src.shape());
  plan.region = Walk();
  for (int d = 0; d < part.rank; ++d)
    plan.region.add(static_cast<index_t>(part.sizes[d].value),
                    static_cast<index_t>(part.strides[d].value));
  plan.offset = static_cast<index_t>(part.offset.value);
  plan.count = src.numel();
  return Error::ok;
}

template <class... P>
Error write_part(Context& context, const Part& plan, AnyView<const AnyElement> self,
                 AnyView<const AnyElement> src, P..., View<AnyElement> out) {
  Walk dense;
  dense.add(out.numel(), 1);
  if (self.ref->data != out.ref->data)
    copy_elements(context.threads, *self.ref, plan.self, out.ref->data, out.dtype(), dense,
                  out.numel());
  if (plan.count == 0) return Error::ok;
  char* to = static_cast<char*>(out.ref->data) + plan.offset * size_bytes(out.dtype());
  copy_elements(context.threads, *src.ref, plan.src, to, out.dtype(), plan.region, plan.count);
  return Error::ok;
}

using Source_ = AnyView<const AnyElement>;
using Result_ = View<AnyElement>;
Maybe<Extent> extent_of(Maybe<int64_t> v) { return {Extent(v.value), v.present}; }

Error prepare_slice(Context&, Part& plan, Source_ self, Source_ src, int64_t dim,
                    Maybe<int64_t> start, Maybe<int64_t> end, int64_t step, Result_ out) {
  Facts<Extent> facts;
  TensorType<Extent> part;
  internal::slice_layout(facts, type_of_result(out), dim, extent_of(start), extent_of(end),
                         Extent(step), part);
  return plan_part(plan, self, src, part);
}
Error prepare_select(Context&, Part& plan, Source_ self, Source_ src, int64_t dim, int64_t index,
                     Result_ out) {
  Facts<Extent> facts;
  TensorType<Extent> part;
  internal::select_layout(facts, type_of_result(out), dim, Extent(index), part);
  return plan_part(plan, self, src, part);
}
Error prepare_diagonal(Context&, Part& plan, Source_ self, Source_ src, int64_t offset,
                       int64_t dim1, int64_t dim2, Result_ out) {
  Facts<Extent> facts;
  TensorType<Extent> part;
  internal::diagonal_layout(facts, type_of_result(out), offset, dim1, dim2, part);
  return plan_part(plan, self, src, part);
}
Error prepare_as_strided(Context&, Part& plan, Source_ self, Source_ src, Span<const int64_t> size,
                         Span<const int64_t> stride, Maybe<int64_t> offset, Result_) {
  TensorType<Extent> part;
  part.rank = static_cast<int>(size.size()), part.offset = offset ? *offset : 0;
  for (int d = 0; d < part.rank; ++d) part.sizes[d] = size[d], part.strides[d] = stride[d];
  return plan_part(plan, self, src, part);
}

}  // namespace

TAPER_KERNEL(cat, any, cat)
TAPER_KERNEL(slice_scatter, any, prepare_slice,
             write_part<int64_t, Maybe<int64_t>, Maybe<int64_t>, int64_t>)
TAPER_KERNEL(select_scatter, any, prepare_select, write_part<int64_t, int64_t>)
TAPER_KERNEL(diagonal_scatter, any, prepare_diagonal, write_part<int64_t, int64_t, int64_t>)
TAPER_KERNEL(as_strided_scatter, any, prepare_as_strided,
             write_part<Span<const int64_t>, Span<const int64_t>, Maybe<int64_t>>)

}  // namespace taper::portable
