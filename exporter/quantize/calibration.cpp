#include "taper/exporter/quantize/calibration.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

/// Adds the rows of `x` to the sum, by eager's product.
void add(Hessian& hessian, const Tensor& x, const std::string& name) {
  const int64_t depth = hessian.depth, rows = x.numel().value() / depth;
  if (rows == 0) return;
  const Tensor flat = x.contiguous().reshape({rows, depth});
  const Tensor product = eager::mm(flat.t(), flat);
  const std::span<const float> sums(product.data<float>(), hessian.sum.size());
  if (!std::ranges::all_of(sums, [](float s) { return std::isfinite(s); }))
    throw ExportError("calibration: " + name + " is not finite for some of the data");
  hessian.add(sums, rows);
}

}  // namespace

Hessians run_samples(const ir::Graph& graph, const Examples& samples,
                     const std::vector<const ir::Value*>& inputs,
                     const std::function<void()>& advance) {
  const eager::NoGrad guard;
  Hessians hessians;
  for (const ir::Value* v : inputs)
    if (!hessians.contains(v))
      hessians[v] = std::make_shared<Hessian>(v->type.sizes[v->type.rank - 1].value());
  for (size_t i = 0; i < samples.count; ++i) {
    run_example(graph, samples, i, [&](const ir::Value& v, const Tensor& x) {
      if (const auto h = hessians.find(&v); h != hessians.end()) add(*h->second, x, v.name);
    });
    if (advance) advance();
  }
  return hessians;
}

double result_energy(std::span<const float> w, const Hessian& hessian) {
  const eager::NoGrad guard;
  const int64_t depth = hessian.depth, rows = static_cast<int64_t>(w.size()) / depth;
  const auto tensor = [](std::span<const float> elements, int64_t n, int64_t k) {
    return Tensor::from_bytes(elements.data(), elements.size_bytes(), DType::f32, {n, k});
  };
  const Tensor product = eager::mm(tensor(w, rows, depth), tensor(hessian.sum, depth, depth));
  const auto* x = product.data<float>();
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += static_cast<double>(x[i]) * w[i];
  return sum;
}

}  // namespace taper::quantize
