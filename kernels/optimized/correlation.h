// Convolution and its gradients: three ways through one cross-correlation (portable/correlation.h).
//
// All dense f32. Nothing is unrolled into columns. An image is copied once, with its padding. Then
// each tap of the kernel sees the shifted image as a row of the product. The copy is skipped where
// it would equal the image.
#pragma once
#include "taper/kernels/optimized/image_tiles.h"
#include "taper/kernels/portable/correlation.h"

namespace taper::optimized {

using portable::Correlation, portable::correlation_of;

/// How the work is cut. `band`: rows of the result in a task, in units of the stride when going
/// backward. `parts`: tasks that share a band, each with some of the channels.
struct CorrelationPlan {
  index_t band, parts = 1, slots, bytes_per_slot, shared_bytes;
  size_t scratch_bytes() const {
    return static_cast<size_t>(shared_bytes + slots * bytes_per_slot);
  }
};

/// y from x and w (forward), or x from y and w (backward: a transposed convolution, and the
/// gradient of x). An element is the sum over channels, then taps, in blocks of `gemm_depth_block`
/// as in gemm.h, then + bias, then the activation; it does not depend on the other images, nor on
/// threads.
enum class Direction : uint8_t { forward, backward };

/// `weight` is dense; forward it may also lie in panels of output channels.
CorrelationPlan plan_correlation(const Microkernels& kernels, const Correlation& c,
                                 Direction direction, int thread_count,
                                 Layout weight = Layout::dense);
/// `bias`: one element per channel of the result, or nullptr.
void run_correlation(const Microkernels& kernels, const ImageTiles& images,
                     const CorrelationPlan& plan, const Correlation& c, Direction direction,
                     const float* source, const float* weight, Layout weight_layout,
                     const float* bias, Activation activation, float* result, void* scratch,
                     const Threads* threads);

/// w from x and y: the gradient of the weight. Images are summed in an order that depends on the
/// shape alone.
CorrelationPlan plan_weight_gradient(const Microkernels& kernels, const Correlation& c,
                                     int thread_count);
void run_weight_gradient(const Microkernels& kernels, const CorrelationPlan& plan,
                         const Correlation& c, const float* x, const float* y, float* weight,
                         void* scratch, const Threads* threads);

/// The sum of y (batch, channels, plane) for each channel: the gradient of the bias.
void sum_channels(const Microkernels& kernels, index_t batch, index_t channels, index_t plane,
                  const float* y, float* sums, const Threads* threads);

}  // namespace taper::optimized
