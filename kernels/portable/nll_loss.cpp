// The negative log-likelihood loss of log-probabilities (batch, classes) or (classes), and its
// gradient.
//
//   loss_i = -weight[target_i] self[i, target_i]; 0 if target_i is `ignore_index`
//   mean: sum(loss) / total_weight, where total_weight is the sum of weight[target_i] over the
//   targets that are not ignored
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/shapes/loss.h"

namespace taper::portable {
namespace {

/// Every target must name a class or be the ignored one.
Error check(Context& context, View<const int64_t> target, index_t classes, int64_t ignored) {
  return check_indices(context, target, classes, 0, TAPER_TEXT("target {} is outside [{}, {})"),
                       {ignored, true});
}

template <class T>
Error forward(Context& context, View<const T> self, View<const int64_t> target,
              Maybe<View<const T>> weight, int64_t reduction, int64_t ignore_index, View<T> output,
              View<T> total_weight) {
  const index_t classes = self.size(-1);
  TAPER_TRY(check(context, target, classes, ignore_index));
  double sum = 0, total = 0;
  for (index_t i = 0; i < target.numel(); ++i) {
    const int64_t t = target.data()[i];
    const T w = t == ignore_index ? T(0) : weight ? weight->data()[t] : T(1);
    const T loss = t == ignore_index ? T(0) : -self.data()[i * classes + t] * w;
    if (reduction == static_cast<int64_t>(Reduction::none))
      output.data()[i] = loss;
    else
      sum += loss;
    // as in PyTorch: without reduction, a batch has no total weight
    if (reduction != static_cast<int64_t>(Reduction::none) || self.rank() == 1) total += w;
  }
  total_weight.data()[0] = static_cast<T>(total);
  if (reduction == static_cast<int64_t>(Reduction::mean))
    output.data()[0] = static_cast<T>(sum / total);  // 0 / 0 is NaN, as in PyTorch
  if (reduction == static_cast<int64_t>(Reduction::sum)) output.data()[0] = static_cast<T>(sum);
  return Error::ok;
}

template <class T>
Error backward(Context& context, View<const T> grad_output, View<const T> self,
               View<const int64_t> target, Maybe<View<const T>> weight, int64_t reduction,
               int64_t ignore_index, View<const T> total_weight, View<T> out) {
  const index_t classes = self.size(-1);
  TAPER_TRY(check(context, target, classes, ignore_index));
  parallel_lines(context.threads, target.numel(), classes, [&](index_t i) {
    T* const line = out.data() + i * classes;
    for (index_t c = 0; c < classes; ++c) line[c] = 0;
    const int64_t t = target.data()[i];
    if (t == ignore_index) return;
    const T w = weight ? weight->data()[t] : T(1);
    const T g = grad_output.data()[reduction == static_cast<int64_t>(Reduction::none) ? i : 0];
    const T divisor =
        reduction == static_cast<int64_t>(Reduction::mean) ? total_weight.data()[0] : T(1);
    line[t] = -w * g / divisor;
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(nll_loss_forward, f32, forward<float>)
TAPER_KERNEL(nll_loss_forward, f64, forward<double>)
TAPER_KERNEL(nll_loss_backward, f32, backward<float>)
TAPER_KERNEL(nll_loss_backward, f64, backward<double>)

}  // namespace taper::portable
