#include "taper/exporter/nn/parametrize.h"

#include <algorithm>
#include <numeric>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/text.h"

namespace taper::nn {
namespace {

int64_t element_count(const Tensor& tensor) { return tensor.numel().value(); }

void check_dim(const char* layer, const Tensor& weight, int64_t dim, Location here) {
  if (!weight.defined() || weight.rank() < 1)
    throw EagerError(here, std::string(layer) + ": the layer has no weight");
  if (dim < 0 || dim >= weight.rank())
    throw EagerError(here, std::string(layer) + ": dim " + std::to_string(dim) +
                               " is outside of the weight " + eager::to_string(weight.sizes()));
}

/// x divided by its norm.
Tensor normalized(const Tensor& x, double eps) {
  return x / eager::clamp_min(eager::vector_norm(x), eps);
}

}  // namespace

Tensor parameters_to_vector(const std::vector<Tensor>& parameters, Location here) {
  if (parameters.empty()) throw EagerError(here, "parameters_to_vector: there is no parameter");
  std::vector<Tensor> flat;
  for (const Tensor& parameter : parameters) flat.push_back(parameter.reshape({Dim(-1)}, here));
  return eager::cat(flat, 0, here);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters,
                          Location here) {
  int64_t wanted = 0;
  for (const Tensor& parameter : parameters) wanted += element_count(parameter);
  if (vector.rank() != 1 || !same(vector.numel(), Dim(wanted)))
    throw EagerError(here, "vector_to_parameters: the parameters have " + std::to_string(wanted) +
                               " elements, the vector is " + eager::to_string(vector.sizes()));
  const eager::NoGrad guard;
  int64_t first = 0;
  for (Tensor parameter : parameters) {
    const int64_t count = element_count(parameter);
    parameter.copy_(vector.slice(0, first, first + count, 1, here).reshape(parameter.sizes(), here),
                    here);
    first += count;
  }
}

namespace internal {

Direction::Direction(const Tensor& weight, int64_t dim, Location here) : dim_(dim) {
  check_dim("WeightNorm", weight, dim, here);
  Ints others;
  for (int64_t d = 0; d < weight.rank(); ++d)
    if (d != dim) others.push_back(d);
  const Tensor start = weight.detach();
  length =
      Parameter(others.empty() ? eager::abs(start) : eager::vector_norm(start, 2, others, true));
  direction = Parameter(start.clone());
}
Tensor Direction::weight() const { return eager::weight_norm(direction, length, dim_); }
void Direction::visit(Members& members) {
  members.add("parametrizations.weight.original0", length);
  members.add("parametrizations.weight.original1", direction);
}

Spectrum::Spectrum(const Tensor& weight, int64_t dim, int64_t n_power_iterations, double eps,
                   Location here)
    : dim_(dim), iterations_(n_power_iterations), eps_(eps) {
  check_dim("SpectralNorm", weight, dim, here);
  if (n_power_iterations < 1)
    throw EagerError(here, "SpectralNorm: n_power_iterations must be 1 or more, got " +
                               std::to_string(n_power_iterations));
  const eager::NoGrad guard;
  original = Parameter(weight.detach().clone());
  const Tensor matrix = rows();
  u = normalized(eager::randn({matrix.size(0)}, weight.dtype()), eps);
  v = normalized(eager::randn({matrix.size(1)}, weight.dtype()), eps);
  iterate(matrix, 15);  // as many as PyTorch's
}

Tensor Spectrum::rows() const {
  Ints order(static_cast<size_t>(original.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + dim_, order.begin() + dim_ + 1);
  return original.permute(order).reshape({original.size(dim_), Dim(-1)});
}

void Spectrum::iterate(const Tensor& matrix, int64_t times) {
  const eager::NoGrad guard;
  for (int64_t i = 0; i < times; ++i) {
    u.copy_(normalized(eager::mv(matrix, v), eps_));
    v.copy_(normalized(eager::mv(matrix.transpose(0, 1), u), eps_));
  }
}

Tensor Spectrum::weight(bool training) {
  const Tensor matrix = rows();
  // a checkpoint computes again with the vectors of its first run
  if (training && !eager::computes_again()) iterate(matrix, iterations_);
  const Tensor left = u.clone(), right = v.clone();  // a later call overwrites u and v
  return original / eager::dot(left, eager::mv(matrix, right));
}
void Spectrum::visit(Members& members) {
  members.add("parametrizations.weight.original", original);
  members.add("parametrizations.weight.0._u", u);
  members.add("parametrizations.weight.0._v", v);
}

}  // namespace internal
}  // namespace taper::nn
