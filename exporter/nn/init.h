// Initial values of parameters, as PyTorch's torch.nn.init computes them; the random streams
// differ. All of them write in place, are not recorded on the tape, draw from eager's default
// generator (`manual_seed`), and return the tensor. Draws are f32, rounded to other dtypes.
#pragma once
#include "taper/exporter/eager/tensor.h"

namespace taper::nn::init {

using eager::Tensor;

/// The number of inputs that add up to one output of a weight (out, in, kernel…), and of outputs
/// that one input reaches.
struct Fans {
  int64_t in, out;
};
/// Throws EagerError if the weight has fewer than two dimensions.
Fans fans_of(const Tensor& weight);

enum class Mode { fan_in, fan_out };
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// The recommended factor on the deviation of weights before a nonlinearity: 1, 1, 5/3, √2, √(2 /
/// (1 + slope²)), 3/4.
double gain_of(Nonlinearity nonlinearity, double negative_slope = 0.01);

/// Even in [low, high).
Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
Tensor normal_(Tensor tensor, double mean = 0, double deviation = 1);
/// Normal, drawn again while outside [low, high].
Tensor trunc_normal_(Tensor tensor, double mean = 0, double deviation = 1, double low = -2,
                     double high = 2);
Tensor constant_(Tensor tensor, double value);
inline Tensor zeros_(Tensor tensor) { return constant_(tensor, 0); }
inline Tensor ones_(Tensor tensor) { return constant_(tensor, 1); }

/// Glorot and Bengio, 2010: deviation gain · √(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(Tensor weight, double gain = 1);
Tensor xavier_normal_(Tensor weight, double gain = 1);
/// He et al., 2015: deviation gain / √fan. `a` is the negative slope of leaky_relu, ignored for
/// others.
Tensor kaiming_uniform_(Tensor weight, double a = 0, Mode mode = Mode::fan_in,
                        Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
Tensor kaiming_normal_(Tensor weight, double a = 0, Mode mode = Mode::fan_in,
                       Nonlinearity nonlinearity = Nonlinearity::leaky_relu);

/// Ones on the diagonal of a matrix, else zeros.
Tensor eye_(Tensor matrix);
/// A convolution's weight (out, in / groups, kernel…) that passes channels through: in each group,
/// output channel i is input channel i, if both exist.
Tensor dirac_(Tensor weight, int64_t groups = 1);
/// Saxe et al., 2014: the rows of (size(0), all others), or its columns where those are fewer, are
/// orthogonal vectors of length gain, evenly distributed.
Tensor orthogonal_(Tensor weight, double gain = 1);
/// Martens, 2010: a normal matrix in which a share `sparsity` of each column, rounded up, is zero.
Tensor sparse_(Tensor matrix, double sparsity, double deviation = 0.01);

}  // namespace taper::nn::init
