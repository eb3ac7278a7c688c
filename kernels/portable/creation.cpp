// Tensors made from numbers: full, fill, scalar_tensor, empty, arange, linspace.
#include "taper/kernels/portable/creation.h"

#include "taper/kernels/shapes/creation.h"

namespace taper::portable {

Element element_of(Scalar value, DType dtype) {
  Element element{};
  if (value.is_real)
    storer(DType::f64, dtype)(&value.real, 1, element.bytes);
  else
    storer(DType::i64, dtype)(&value.integer, 1, element.bytes);
  return element;
}

namespace {

Error scalar_tensor(Context& context, Scalar value, Maybe<DType>, View<AnyElement> out) {
  fill<PlainLoops>(context, out, value);
  return Error::ok;
}
// `empty` gives zeros, so that a result depends on nothing but the arguments.
Error empty(Context& context, Span<const int64_t>, Maybe<DType>, View<AnyElement> out) {
  fill<PlainLoops>(context, out, 0);
  return Error::ok;
}
Error empty_strided(Context& context, Span<const int64_t>, Span<const int64_t>, Maybe<DType>,
                    View<AnyElement> out) {
  fill<PlainLoops>(context, out, 0);
  return Error::ok;
}

/// Writes f(0), f(1), …; T is double or int64_t.
template <class T, class F>
void generate(Context& context, const View<AnyElement>& out, const F& f) {
  const Store store = storer(dtypes_of<T>::dtype, out.dtype());
  const int bytes = size_bytes(out.dtype());
  const index_t count = out.numel();
  parallel_for(context.threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    constexpr index_t block = block_size<T>;
    T buffer[block];
    const index_t begin = task * pointwise_grain,
                  end = begin + pointwise_grain < count ? begin + pointwise_grain : count;
    for (index_t at = begin; at < end; at += block) {
      const index_t n = end - at < block ? end - at : block;
      for (index_t i = 0; i < n; ++i) buffer[i] = f(at + i);
      store(buffer, n, static_cast<char*>(out.ref->data) + at * bytes);
    }
  });
}

Error arange(Context& context, Scalar start, Scalar, Scalar step, Maybe<DType>,
             View<AnyElement> out) {
  if (is_floating(out.dtype()) && (start.is_real || step.is_real)) {
    const double from = start.to<double>(), by = step.to<double>();
    generate<double>(context, out, [=](index_t i) { return from + static_cast<double>(i) * by; });
  } else {
    // computed in integers, as in PyTorch: a step of 0.5 becomes 0
    const int64_t from = start.to<int64_t>(), by = step.to<int64_t>();
    generate<int64_t>(context, out,
                      [=](index_t i) { return wrapping_add(from, wrapping_mul<int64_t>(i, by)); });
  }
  return Error::ok;
}

// Computed from both ends to the middle, so that the last element is exactly `end`. For an integer
// result, the ends first lose their fractions.
Error linspace(Context& context, Scalar start, Scalar end, int64_t steps, Maybe<DType>,
               View<AnyElement> out) {
  const auto number = [&](Scalar s) {
    return is_floating(out.dtype()) ? s.to<double>() : static_cast<double>(s.to<int64_t>());
  };
  const double from = number(start), to = number(end),
               by = steps > 1 ? (to - from) / static_cast<double>(steps - 1) : 0;
  generate<double>(context, out, [=](index_t i) {
    return i < steps / 2 || steps == 1 ? from + by * static_cast<double>(i)
                                       : to - by * static_cast<double>(steps - 1 - i);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(full, any, full<PlainLoops>)
TAPER_KERNEL(fill_Scalar, any, prepare_fill, fill_scalar<PlainLoops>)
TAPER_KERNEL(scalar_tensor, any, scalar_tensor)
TAPER_KERNEL(empty_memory_format, any, empty)
TAPER_KERNEL(empty_strided, any, empty_strided)
TAPER_KERNEL(arange_start_step, any, arange)
TAPER_KERNEL(linspace, any, linspace)

}  // namespace taper::portable
