// Weights that are computed from other parameters (PyTorch's torch.nn.utils.parametrizations), and
// all parameters as one vector.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// The elements of all tensors, one behind the other.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters,
                            Location here = Location::current());
/// The reverse: overwrites the parameters with the elements of `vector`. Throws EagerError if their
/// number differs.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters,
                          Location here = Location::current());

namespace internal {

/// The weight as a product of a length and a direction.
struct Direction {
  Parameter length, direction;
  Direction(const Tensor& weight, int64_t dim, Location here);
  Tensor weight() const;
  void visit(Members& members);

 private:
  int64_t dim_;
};

/// The weight divided by its largest singular value.
struct Spectrum {
  Parameter original;
  Tensor u, v;  ///< singular vectors, as far as they are known
  Spectrum(const Tensor& weight, int64_t dim, int64_t n_power_iterations, double eps,
           Location here);
  /// In training, first comes closer to the singular vectors.
  Tensor weight(bool training);
  void visit(Members& members);

 private:
  Tensor rows() const;
  void iterate(const Tensor& rows, int64_t times);
  int64_t dim_, iterations_;
  double eps_;
};

/// A layer whose member `weight` is computed before each call.
template <class L, class Source>
class Parametrized : public Layer {
 public:
  void visit_members(Members& members) override {
    layer_.visit_members(members);  // without the weight, which is undefined between calls
    source_.visit(members);
  }

 protected:
  Parametrized(L layer, Source source) : layer_(std::move(layer)), source_(std::move(source)) {
    layer_.weight = {};
    set_names();
  }
  Tensor run(const Tensor& input, const Tensor& weight, Location here) {
    struct Weight {
      Tensor& member;
      ~Weight() { member = {}; }
    } const set{layer_.weight};
    set.member = weight;
    if (layer_.training() != training()) layer_.train(training());
    return layer_.forward(input, here);
  }

  L layer_;
  Source source_;
};

}  // namespace internal

/// A layer whose weight is g v / |v|, so that length and direction are trained apart:
/// `nn::WeightNorm conv(nn::Conv2d(3, 8, {.kernel_size = 3}));`. The norm goes over all dimensions
/// but `dim`. The parameters have PyTorch's names: parametrizations.weight.original0 (g),
/// parametrizations.weight.original1 (v). Salimans and Kingma, arXiv:1602.07868.
template <std::derived_from<Layer> L>
class WeightNorm : public internal::Parametrized<L, internal::Direction> {
 public:
  explicit WeightNorm(L layer, int64_t dim = 0, Location here = Location::current())
      : WeightNorm::Parametrized(layer, internal::Direction(layer.weight, dim, here)) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override {
    return this->run(input, this->source_.weight(), here);
  }
};

struct SpectralNormOptions {
  int64_t n_power_iterations = 1;  ///< in each call while training
  double eps = 1e-12;              ///< the least norm that is divided by
  int64_t dim = 0;                 ///< the rows of the matrix; 1 for ConvTranspose
};
/// A layer whose weight is divided by its largest singular value, found by power iterations. The
/// members have PyTorch's names: parametrizations.weight.original and the buffers
/// parametrizations.weight.0._u and _v. Miyato et al., arXiv:1802.05957.
template <std::derived_from<Layer> L>
class SpectralNorm : public internal::Parametrized<L, internal::Spectrum> {
 public:
  explicit SpectralNorm(L layer, SpectralNormOptions o = {}, Location here = Location::current())
      : SpectralNorm::Parametrized(
            layer, internal::Spectrum(layer.weight, o.dim, o.n_power_iterations, o.eps, here)) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override {
    return this->run(input, this->source_.weight(this->training()), here);
  }
};

}  // namespace taper::nn
