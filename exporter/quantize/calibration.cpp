#include "taper/exporter/quantize/calibration.h"

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

/// Adds the rows of `x` to the sum, by eager's product.
void add(Hessian& hessian, const Tensor& x, const std::string& name) {
  const int64_t depth = hessian.depth, rows = x.numel().value() / depth;
  if (rows == 0) return;
  const Tensor flat = x.contiguous().reshape({rows, depth});
  const Tensor product = eager::mm(flat.t(), flat);
  const auto* from = product.data<float>();
  for (size_t i = 0; i < hessian.sum.size(); ++i) {
    if (!std::isfinite(from[i]))
      throw ExportError("calibration: " + name + " is not finite for some of the data");
    hessian.sum[i] += from[i];
  }
  hessian.inputs += rows;
}

}  // namespace

Hessians run_samples(const ir::Graph& graph, const std::vector<Sample>& samples,
                     const std::vector<const ir::Value*>& inputs,
                     const std::function<void()>& advance) {
  const eager::NoGrad guard;
  Hessians hessians;
  for (const ir::Value* v : inputs)
    if (!hessians.contains(v))
      hessians[v] = std::make_shared<Hessian>(v->type.sizes[v->type.rank - 1].value());
  for (const Sample& sample : samples) {
    ir::Interpreter interpreter(graph);
    interpreter.observe([&](const ir::Value& v, const Tensor& x) {
      if (const auto h = hessians.find(&v); h != hessians.end()) add(*h->second, x, v.name);
    });
    interpreter.run(sample);
    if (advance) advance();
  }
  return hessians;
}

}  // namespace taper::quantize
