// clone, _to_copy, copy: copies and casts of any strides.
#include "taper/kernels/portable/copy.h"

#include <cstring>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/shapes/movement.h"

namespace taper::portable {
namespace {

template <int bytes>
void scatter(const void* from, index_t n, void* to, index_t stride) {
  const Bytes<bytes>* x = static_cast<const Bytes<bytes>*>(from);
  Bytes<bytes>* y = static_cast<Bytes<bytes>*>(to);
  for (index_t i = 0; i < n; ++i) y[i * stride] = x[i];
}

// Writes n dense elements from element `first` of a walk on, run by run.
void write_block(char* data, const Walk& walk, int element_bytes, index_t first, index_t n,
                 const char* from) {
  const int inner = walk.rank - 1;
  while (n > 0) {
    const index_t offset = walk.offset_of(first);
    index_t run = walk.rank == 1 ? n : walk.sizes[inner] - first % walk.sizes[inner];
    if (run > n) run = n;
    char* to = data + offset * element_bytes;
    const index_t stride = walk.strides[inner];
    if (stride == 1 || run == 1) {
      if (to != from) std::memcpy(to, from, static_cast<size_t>(run) * element_bytes);
    } else {
      switch (element_bytes) {
        case 1:
          scatter<1>(from, run, to, stride);
          break;
        case 2:
          scatter<2>(from, run, to, stride);
          break;
        case 4:
          scatter<4>(from, run, to, stride);
          break;
        default:
          scatter<8>(from, run, to, stride);
      }
    }
    from += run * element_bytes, first += run, n -= run;
  }
}

/// The elements are the same bytes in both.
bool same_bytes(DType from, DType to) {
  return from == to || (from == DType::boolean && size_bytes(to) == 1);
}

}  // namespace

void copy_elements(const Threads* threads, const TensorRef& from, const Walk& from_walk, void* data,
                   DType dtype, const Walk& to, index_t count) {
  // A cast goes through a type that holds every value of the source: ten conversions in and ten
  // out, not a hundred.
  const bool casts = !same_bytes(from.dtype, dtype);
  const DType through = !casts ? from.dtype : is_floating(from.dtype) ? DType::f64 : DType::i64;
  const bool stores = casts && through != dtype;
  const Source source(from, from_walk, through);
  const Store store = storer(through, dtype);
  const int bytes = size_bytes(dtype);
  // an uncast block is as long as its source lies dense; others pass through buffers
  const index_t block = !casts && from_walk.is_linear() ? pointwise_grain : block_size<int64_t>;
  parallel_for(threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    alignas(16) char buffers[2][block_bytes];
    const index_t begin = task * pointwise_grain,
                  end = begin + pointwise_grain < count ? begin + pointwise_grain : count;
    for (index_t at = begin; at < end; at += block) {
      const index_t n = end - at < block ? end - at : block;
      const void* x = read_block(source, at, n, buffers[0]);
      if (stores) store(x, n, buffers[1]), x = buffers[1];
      write_block(static_cast<char*>(data), to, bytes, at, n, static_cast<const char*>(x));
    }
  });
}

namespace {

/// Both walks of a copy whose result is dense.
struct Copy {
  static constexpr uint32_t overwrites = 1;
  Walk from, to;
};

Walk dense_walk(index_t count) {
  Walk walk;
  walk.add(count, 1);
  return walk;
}

Error prepare_clone(Context&, Copy& plan, AnyView<const AnyElement> self, View<AnyElement> out) {
  plan = {Walk::of(self.shape()), dense_walk(out.numel())};
  return Error::ok;
}
Error clone_(Context& context, const Copy& plan, AnyView<const AnyElement> self,
             View<AnyElement> out) {
  copy_elements(context.threads, *self.ref, plan.from, out.ref->data, out.dtype(), plan.to,
                out.numel());
  return Error::ok;
}
Error prepare_cast(Context&, Copy& plan, AnyView<const AnyElement> self, Maybe<DType>,
                   View<AnyElement> out) {
  plan = {Walk::of(self.shape()), dense_walk(out.numel())};
  return Error::ok;
}
Error cast(Context& context, const Copy& plan, AnyView<const AnyElement> self, Maybe<DType>,
           View<AnyElement> out) {
  copy_elements(context.threads, *self.ref, plan.from, out.ref->data, out.dtype(), plan.to,
                out.numel());
  return Error::ok;
}

struct CopyFrom {
  Walk from, to;
};
Error prepare_copy(Context&, CopyFrom& plan, AnyView<const AnyElement>,
                   AnyView<const AnyElement> src, View<AnyElement> out) {
  plan = {Walk::broadcast(src.shape(), out.shape()), dense_walk(out.numel())};
  return Error::ok;
}
Error copy_(Context& context, const CopyFrom& plan, AnyView<const AnyElement>,
            AnyView<const AnyElement> src, View<AnyElement> out) {
  copy_elements(context.threads, *src.ref, plan.from, out.ref->data, out.dtype(), plan.to,
                out.numel());
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(clone, any, prepare_clone, clone_)
TAPER_KERNEL(_to_copy, any, prepare_cast, cast)
TAPER_KERNEL(copy, any, prepare_copy, copy_)

}  // namespace taper::portable
