#include "taper/exporter/eager/alias.h"

#include <algorithm>
#include <cstring>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

Dim at(const ViewStep& step, int argument) {
  return step.arguments[static_cast<size_t>(argument)].dim;
}
bool given(const ViewStep& step, int argument) {
  return step.arguments[static_cast<size_t>(argument)].present;
}
Ints integers(const ViewStep& step, int argument) {
  const Boxed& b = step.arguments[static_cast<size_t>(argument)];
  return Ints(b.integers, b.integers + b.size);
}

/// The inverse of one step: `source`, with the elements that the step shows replaced by `value`.
Tensor scatter_step(const ViewStep& step, const Tensor& source, const Tensor& value,
                    Location here) {
  const Operator* op = step.info->op;
  if (op == &ops::select_int)
    return call<ops::select_scatter>(here, source, value, at(step, 1).value(), at(step, 2));
  if (op == &ops::slice_Tensor) {
    const auto optional = [&](int i) {
      return given(step, i) ? std::optional<Dim>(at(step, i)) : std::nullopt;
    };
    return call<ops::slice_scatter>(here, source, value, at(step, 1).value(), optional(2),
                                    optional(3), at(step, 4));
  }
  if (op == &ops::diagonal)
    return call<ops::diagonal_scatter>(here, source, value, at(step, 1).value(),
                                       at(step, 2).value(), at(step, 3).value());
  if (op == &ops::as_strided)
    return call<ops::as_strided_scatter>(
        here, source, value, step.dims[0], step.dims[1],
        given(step, 3) ? std::optional<Dim>(at(step, 3)) : std::nullopt);
  if (op == &ops::permute) {
    const Ints dims = integers(step, 1);
    Ints inverse(dims.size());
    const int64_t n = static_cast<int64_t>(dims.size());
    for (int64_t i = 0; i < n; ++i)
      inverse[static_cast<size_t>((dims[static_cast<size_t>(i)] + n) % n)] = i;
    return value.permute(inverse, here);
  }
  if (op == &ops::transpose_int)
    return value.transpose(at(step, 1).value(), at(step, 2).value(), here);
  if (op == &ops::view_as_real) return call<ops::view_as_complex>(here, value.contiguous(here));
  if (op == &ops::view_as_complex) return call<ops::view_as_real>(here, value);
  if (op == &ops::view_dtype)
    return call<ops::view_dtype>(here, value.contiguous(here), source.dtype());
  if (op == &ops::view || op == &ops::unsqueeze || op == &ops::squeeze_dim ||
      op == &ops::squeeze_dims || op == &ops::alias ||
      (op == &ops::expand && same(value.numel(), source.numel())))  // adds at most dimensions of 1
    return value.reshape(source.sizes(), here);
  throw EagerError(here, "a view made by " + std::string(step.info->name) +
                             " cannot be written in place: several of its elements may share "
                             "memory; write to a clone() instead");
}

template <size_t n>
void copy_line(std::byte* to, index_t to_stride, const std::byte* from, index_t from_stride,
               index_t count) {
  for (index_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride * static_cast<index_t>(n),
                from + i * from_stride * static_cast<index_t>(n), n);
}

void copy_dims(std::byte* to, const Shape& to_shape, const std::byte* from, const Shape& from_shape,
               int dim, index_t size) {
  const int rank = to_shape.rank;
  if (dim >= rank - 1) {
    const index_t count = rank ? to_shape.sizes[rank - 1] : 1,
                  a = rank ? to_shape.strides[rank - 1] : 1,
                  b = rank ? from_shape.strides[rank - 1] : 1;
    if (a == 1 && b == 1) {
      std::memcpy(to, from, static_cast<size_t>(count * size));
      return;
    }
    switch (size) {
      case 1:
        return copy_line<1>(to, a, from, b, count);
      case 2:
        return copy_line<2>(to, a, from, b, count);
      case 4:
        return copy_line<4>(to, a, from, b, count);
      default:
        return copy_line<8>(to, a, from, b, count);
    }
  }
  for (index_t i = 0; i < to_shape.sizes[dim]; ++i)
    copy_dims(to + i * to_shape.strides[dim] * size, to_shape,
              from + i * from_shape.strides[dim] * size, from_shape, dim + 1, size);
}

}  // namespace

void link_view(const Tensor& view, const OperatorInfo& info, const Boxed* arguments) {
  TensorImpl& impl = *view.impl();
  const TensorImpl& source = *arguments[0].tensor().impl();
  impl.base = source.base.defined() ? source.base : arguments[0].tensor();
  const Autograd* base = impl.base.impl()->autograd.get();
  impl.base_generation = base ? base->generation : 0;
  auto step = std::make_shared<ViewStep>();
  step->source = source.view;
  step->info = &info;
  step->arguments = {arguments, arguments + info.argument_count};
  for (Boxed& b : step->arguments) {
    if (b.kind == Kind::tensor)
      b.tensors = nullptr;
    else if (b.present && b.list && b.symbolic)
      b.dims = step->dims.emplace_back(b.dims, b.dims + b.size).data();
    else if (b.present && b.list)
      b.integers = step->integers.emplace_back(b.integers, b.integers + b.size).data();
  }
  impl.view = std::move(step);
}

namespace {

Tensor apply(const ViewStep& step, const Tensor& source, Location here) {
  std::vector<Boxed> arguments(step.arguments.begin(), step.arguments.end());
  arguments[0] = Boxed::of(source);
  Tensor result;
  dispatch(*step.info, arguments.data(), &result, here);
  return result;
}

/// The steps of a chain, from the base on.
std::vector<const ViewStep*> steps_of(const ViewStep* chain) {
  std::vector<const ViewStep*> steps;
  for (; chain != nullptr; chain = chain->source.get()) steps.push_back(chain);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace

ViewStep::~ViewStep() {
  while (source != nullptr && source.use_count() == 1)
    source = std::shared_ptr<const ViewStep>(std::move(source->source));
}

Tensor replay(const ViewStep* chain, const Tensor& base, Location here) {
  Tensor view = base;
  for (const ViewStep* step : steps_of(chain)) view = apply(*step, view, here);
  return view;
}

Tensor scatter_back(const ViewStep* chain, const Tensor& base, const Tensor& value, Location here) {
  const std::vector<const ViewStep*> steps = steps_of(chain);
  std::vector<Tensor> sources{base};
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    sources.push_back(apply(*steps[i], sources.back(), here));
  Tensor whole = value;
  for (size_t i = steps.size(); i-- > 0;) whole = scatter_step(*steps[i], sources[i], whole, here);
  return whole;
}

std::string in_place_name(const char* writer) {
  const std::string text = writer;
  return text.substr(0, text.find_first_of(".(")) + "_";
}

void copy_elements(const Tensor& destination, const Tensor& source) {
  const TensorImpl &to = *destination.impl(), &from = *source.impl();
  if (to.shape.numel() == 0) return;
  copy_dims(static_cast<std::byte*>(to.ref.data), to.shape,
            static_cast<const std::byte*>(from.ref.data), from.shape, 0, size_bytes(to.ref.dtype));
}

void write(const Tensor& self, const Tensor& value, const char* writer, Location here) {
  const std::string name = in_place_name(writer);
  const Dims want = self.sizes(), have = value.sizes();
  bool equal = want.size() == have.size();
  for (size_t i = 0; equal && i < want.size(); ++i) equal = same(want[i], have[i]);
  if (!equal)
    throw EagerError(here, name + ": the result's size " + to_string(have) +
                               " is not that of self " + to_string(want));
  const DType common = promote_types(self.dtype(), value.dtype());
  if (common != self.dtype() &&
      (is_complex(common) || (is_floating(value.dtype()) && !is_floating(self.dtype()))))
    throw EagerError(here, name + ": a result of " + std::string(taper::name_of(value.dtype())) +
                               " cannot be written into self of " + taper::name_of(self.dtype()));
  const TensorType<Dim> layout = self.type();
  bool empty = false, repeats = false;
  for (int i = 0; i < layout.rank; ++i) {
    empty = empty || same(layout.sizes[i], Dim(0));
    repeats = repeats || (same(layout.strides[i], Dim(0)) && !same(layout.sizes[i], Dim(1)));
  }
  if (repeats && !empty)
    throw EagerError(here, name + ": several elements of self " + to_string(want) +
                               " share one element of its storage (expand); write to a clone() "
                               "instead");
  const Tensor converted = cast(value, self.dtype(), here);
  const bool taped =
      grad_enabled() && (self.requires_grad() || value.requires_grad() ||
                         (self.impl()->base.defined() && self.impl()->base.requires_grad()));
  if (taped && self.is_leaf() && self.requires_grad())
    throw EagerError(
        here,
        name +
            ": a leaf that requires a gradient cannot be written in place; do it inside no_grad()");
  const Tensor base = self.impl()->base;
  if (taped && base.defined() && base.is_leaf() && base.requires_grad())
    throw EagerError(here, name +
                               ": a view of a leaf that requires a gradient cannot be written in "
                               "place; do it inside no_grad()");

  Recorder* r = recorder();
  if (r != nullptr || taped) {
    const Tensor whole =
        base.defined() ? scatter_back(self.impl()->view.get(), base, converted, here) : converted;
    const Tensor& target = base.defined() ? base : self;
    if (r != nullptr) r->write(target, whole, here);
    if (taped) take_history(target, whole);
  }
  if (r == nullptr) {
    // the value may be a view of the elements that are written
    const bool overlaps = converted.impl()->storage == self.impl()->storage;
    copy_elements(self, overlaps ? no_grad([&] { return converted.clone(here); }) : converted);
  }
  self.impl()->storage->wrote(writer, here);
}

}  // namespace taper::eager
