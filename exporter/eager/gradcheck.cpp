#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"

namespace taper::eager {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

double value_of(const Function& function, const std::vector<Tensor>& inputs) {
  return no_grad([&] { return function(inputs).to(DType::f64).item<double>(); });
}

/// A weighted sum of the results with fixed weights, so that each result counts differently.
Tensor weighted_sum(const Tensor& y) {
  const size_t n = static_cast<size_t>(y.numel().value());
  std::vector<double> w(n);
  for (size_t i = 0; i < n; ++i)
    w[i] = 0.5 + std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0);
  const Tensor flat = y.reshape({Dim(static_cast<int64_t>(n))});
  const Tensor weights = Tensor::from(w, {static_cast<int64_t>(n)}).to(y.dtype());
  return call<ops::sum>(Location{}, call<ops::mul_Tensor>(Location{}, flat, weights), std::nullopt);
}

std::string compare(const Function& scalar_function, const std::vector<Tensor>& inputs,
                    const std::vector<Tensor>& analytic, double eps, double atol, double rtol) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].requires_grad()) continue;
    double* x = inputs[k].data<double>();
    const std::vector<double> g =
        analytic[k].defined()
            ? analytic[k].to_vector<double>()
            : std::vector<double>(static_cast<size_t>(inputs[k].numel().value()), 0.0);
    for (size_t i = 0; i < g.size(); ++i) {
      const double kept = x[i];
      x[i] = kept + eps;
      const double above = value_of(scalar_function, inputs);
      x[i] = kept - eps;
      const double below = value_of(scalar_function, inputs);
      x[i] = kept;
      const double numeric = (above - below) / (2 * eps);
      if (!(std::abs(numeric - g[i]) <= atol + rtol * std::abs(numeric)))
        return "input " + std::to_string(k) + ", element " + std::to_string(i) + ": derivative " +
               std::to_string(g[i]) + ", central difference " + std::to_string(numeric);
    }
  }
  return "";
}

/// Dense leaves in f64, which want gradients if the originals do.
std::vector<Tensor> leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> list;
  for (const Tensor& t : inputs) {
    const bool wanted = t.requires_grad();
    Tensor leaf =
        no_grad([&] { return is_floating(t.dtype()) ? t.detach().to(DType::f64).clone() : t; });
    if (wanted) leaf.set_requires_grad();
    list.push_back(leaf);
  }
  return list;
}
std::vector<Tensor> checked_leaves(const char* who, const std::vector<Tensor>& inputs) {
  for (const Tensor& t : inputs)
    if (t.requires_grad()) return leaves(inputs);
  throw EagerError(
      Location{},
      std::string(who) + ": no input requires a gradient; call set_requires_grad() on one");
}
std::vector<Tensor> wanted(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> list;
  for (const Tensor& t : inputs)
    if (t.requires_grad()) list.push_back(t);
  return list;
}
/// One entry for each input; undefined for inputs that want no gradient.
std::vector<Tensor> spread(const std::vector<Tensor>& gradients,
                           const std::vector<Tensor>& inputs) {
  std::vector<Tensor> list;
  size_t next = 0;
  for (const Tensor& t : inputs) list.push_back(t.requires_grad() ? gradients[next++] : Tensor());
  return list;
}

}  // namespace

std::string gradcheck(const Function& function, const std::vector<Tensor>& inputs, double eps,
                      double atol, double rtol) {
  const std::vector<Tensor> x = checked_leaves("gradcheck", inputs);
  const Function scalar_function = [&](const std::vector<Tensor>& in) {
    return weighted_sum(function(in));
  };
  const std::vector<Tensor> analytic =
      spread(grad({scalar_function(x)}, wanted(x), {}, false, false, true), x);
  return compare(scalar_function, x, analytic, eps, atol, rtol);
}

std::string gradgradcheck(const Function& function, const std::vector<Tensor>& inputs, double eps,
                          double atol, double rtol) {
  const std::vector<Tensor> x = checked_leaves("gradgradcheck", inputs);
  // the weighted sum of all first derivatives, as a function of the inputs
  const Function first = [&](const std::vector<Tensor>& in) {
    NoGrad on(true);
    Tensor sum;
    for (const Tensor& g : grad({weighted_sum(function(in))}, wanted(in), {}, true, true, true)) {
      if (!g.defined()) continue;
      const Tensor s = weighted_sum(g);
      sum = sum.defined() ? call<ops::add_Tensor>(Location{}, sum, s, Scalar(1)) : s;
    }
    return sum;
  };
  const Tensor value = first(x);
  if (!value.defined() || !value.requires_grad()) return "";  // the first derivatives are constant
  const std::vector<Tensor> analytic = spread(grad({value}, wanted(x), {}, false, false, true), x);
  return compare(first, x, analytic, eps, atol, rtol);
}

}  // namespace taper::eager
