// convolution and convolution_backward, transposed or not, over 1 to 3 spatial dimensions.
#include "taper/kernels/shapes/convolution.h"

#include "taper/kernels/optimized/correlation.h"
#include "taper/kernels/optimized/filter_gradient.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/portable/widened.h"

namespace taper::optimized {
namespace {

using In = View<const float>;
using Out = View<float>;
using Ints = Span<const int64_t>;

// A transposed convolution computes what is the gradient of a convolution's input: x and y change
// places.
Correlation sides_of(In input, In weight, const Shape& output, Ints stride, Ints padding,
                     Ints dilation, bool transposed, int64_t groups) {
  const Shape& x = transposed ? output : input.shape();
  const Shape& y = transposed ? input.shape() : output;
  return correlation_of(x, y, weight.shape(), stride, padding, dilation, groups);
}
Direction direction_of(bool transposed) {
  return transposed ? Direction::backward : Direction::forward;
}
Direction opposite(bool transposed) { return direction_of(!transposed); }

Error refuse_uncountable(Context& context) {
  return context.fail(Error::not_supported,
                      TAPER_TEXT("the image between its zeros is larger than any memory"));
}

template <CpuLevel level>
Error prepare(Context& context, CorrelationPlan& plan, In input, In weight, Maybe<In>, Ints stride,
              Ints padding, Ints dilation, bool transposed, Ints, int64_t groups, Out out) {
  const Correlation c =
      sides_of(input, weight, out.shape(), stride, padding, dilation, transposed, groups);
  if (!portable::is_countable(c)) return refuse_uncountable(context);
  plan = plan_correlation(microkernels<level>(), c, direction_of(transposed),
                          thread_count(context.threads), weight.layout());
  context.need_scratch(plan.scratch_bytes());
  return Error::ok;
}

template <CpuLevel level>
Error run(Context& context, const CorrelationPlan& plan, In input, In weight, Maybe<In> bias,
          Ints stride, Ints padding, Ints dilation, bool transposed, Ints, int64_t groups,
          Out out) {
  const Correlation c =
      sides_of(input, weight, out.shape(), stride, padding, dilation, transposed, groups);
  run_correlation(microkernels<level>(), image_tiles<level>(), plan, c, direction_of(transposed),
                  input.data(), weight.data(), weight.layout(), bias ? bias->data() : nullptr,
                  Activation::none, out.data(), context.scratch, context.threads);
  return Error::ok;
}

// Filters that are constants are packed once. Transposed ones are read along another dimension.
template <CpuLevel level>
constexpr portable::WidenedPackings<1> packings{
    portable::to_f32_layout<1, Layout::panels_of_first, 6, bytes_of_filter_panels,
                            pack_first<level>>};

struct BackwardPlan {
  CorrelationPlan input, weight;
};

template <CpuLevel level>
Error prepare_backward(Context& context, BackwardPlan& plan, In grad_output, In input, In weight,
                       Maybe<Ints>, Ints stride, Ints padding, Ints dilation, bool transposed, Ints,
                       int64_t groups, Ints, Maybe<Out> grad_input, Maybe<Out> grad_weight,
                       Maybe<Out>) {
  const Correlation c =
      sides_of(input, weight, grad_output.shape(), stride, padding, dilation, transposed, groups);
  if (!portable::is_countable(c)) return refuse_uncountable(context);
  const Microkernels& kernels = microkernels<level>();
  plan = {};
  if (grad_input) {
    plan.input = plan_correlation(kernels, c, opposite(transposed), thread_count(context.threads));
    context.need_scratch(plan.input.scratch_bytes());
  }
  if (grad_weight && !has_single_filters(c)) {
    plan.weight = plan_weight_gradient(kernels, c, thread_count(context.threads));
    context.need_scratch(plan.weight.scratch_bytes());
  }
  return Error::ok;
}

template <CpuLevel level>
Error run_backward(Context& context, const BackwardPlan& plan, In grad_output, In input, In weight,
                   Maybe<Ints>, Ints stride, Ints padding, Ints dilation, bool transposed, Ints,
                   int64_t groups, Ints, Maybe<Out> grad_input, Maybe<Out> grad_weight,
                   Maybe<Out> grad_bias) {
  const Correlation c =
      sides_of(input, weight, grad_output.shape(), stride, padding, dilation, transposed, groups);
  const Microkernels& kernels = microkernels<level>();
  if (grad_input)
    run_correlation(kernels, image_tiles<level>(), plan.input, c, opposite(transposed),
                    grad_output.data(), weight.data(), Layout::dense, nullptr, Activation::none,
                    grad_input->data(), context.scratch, context.threads);
  if (grad_weight) {
    const float* x = transposed ? grad_output.data() : input.data();
    const float* y = transposed ? input.data() : grad_output.data();
    if (has_single_filters(c))
      run_filter_gradient<level>(c, x, y, grad_weight->data(), context.threads);
    else
      run_weight_gradient(kernels, plan.weight, c, x, y, grad_weight->data(), context.scratch,
                          context.threads);
  }
  if (grad_bias) {
    index_t plane = 1;
    for (int i = 2; i < grad_output.rank(); ++i) plane *= grad_output.size(i);
    sum_channels(kernels, grad_output.size(0), grad_output.size(1), plane, grad_output.data(),
                 grad_bias->data(), context.threads);
  }
  return Error::ok;
}

}  // namespace

TAPER_PACKING_KERNEL_LEVELS(convolution, prepare, run, packings)
TAPER_KERNEL_LEVELS(convolution_backward, prepare_backward, run_backward)

}  // namespace taper::optimized
