// Initial values of parameters, by the formulas of PyTorch's torch.nn.init; the random numbers
// differ. Each function writes in place, off the tape, and returns the tensor. The numbers come
// from eager's default generator (`manual_seed`). They are drawn in f32 and rounded to other
// dtypes.
#pragma once
#include "taper/exporter/eager/tensor.h"

namespace taper::nn::init {

using eager::Tensor;

/// For a weight (out, in, kernel…): how many inputs add up to one output, and how many outputs one
/// input reaches.
struct Fans {
  int64_t in, out;
};
/// Throws EagerError if the weight has fewer than two dimensions.
Fans fans_of(const Tensor& weight);

enum class Mode { fan_in, fan_out };
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// The factor for the deviation of weights before a nonlinearity, as PyTorch recommends: 1, 1, 5/3,
/// √2, √(2 / (1 + slope²)), 3/4.
double gain_of(Nonlinearity nonlinearity, double negative_slope = 0.01);

/// Uniform in [low, high).
Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
Tensor normal_(Tensor tensor, double mean = 0, double deviation = 1);
/// Normal. A number outside [low, high] is drawn again.
Tensor trunc_normal_(Tensor tensor, double mean = 0, double deviation = 1, double low = -2,
                     double high = 2);
Tensor constant_(Tensor tensor, double value);
inline Tensor zeros_(Tensor tensor) { return constant_(tensor, 0); }
inline Tensor ones_(Tensor tensor) { return constant_(tensor, 1); }

/// Glorot and Bengio, 2010: the standard deviation is gain · √(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(Tensor weight, double gain = 1);
Tensor xavier_normal_(Tensor weight, double gain = 1);
/// He et al., 2015: the standard deviation is gain / √fan. `a` is the negative slope of leaky_relu;
/// other nonlinearities ignore it.
Tensor kaiming_uniform_(Tensor weight, double a = 0, Mode mode = Mode::fan_in,
                        Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
Tensor kaiming_normal_(Tensor weight, double a = 0, Mode mode = Mode::fan_in,
                       Nonlinearity nonlinearity = Nonlinearity::leaky_relu);

/// Ones on the diagonal of a matrix, and zeros elsewhere.
Tensor eye_(Tensor matrix);
/// A convolution's weight (out, in / groups, kernel…) that passes channels through: in each group,
/// output channel i is input channel i, if both exist.
Tensor dirac_(Tensor weight, int64_t groups = 1);
/// Saxe et al., 2014. The tensor is seen as a matrix (size(0), all others). Its rows, or its
/// columns if there are fewer, become orthogonal vectors of length gain in random directions.
Tensor orthogonal_(Tensor weight, double gain = 1);
/// Martens, 2010: a normal matrix where a share `sparsity` of each column, rounded up, is zero.
Tensor sparse_(Tensor matrix, double sparsity, double deviation = 0.01);

}  // namespace taper::nn::init
