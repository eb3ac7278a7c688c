#include "taper/exporter/quantize/calibration.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {

using eager::Tensor;

void add_rows(Hessian& hessian, const Tensor& x, const std::string& name) {
  const int64_t depth = hessian.depth, rows = x.numel().value() / depth;
  if (rows == 0) return;
  const Tensor flat = x.contiguous().reshape({rows, depth});
  const Tensor product = eager::mm(flat.t(), flat);
  const std::span<const float> sums(product.data<float>(), hessian.sum.size());
  if (!std::ranges::all_of(sums, [](float s) { return std::isfinite(s); }))
    throw ExportError("calibration: " + name + " is not finite for some of the data");
  hessian.add(sums, rows);
}

namespace {

/// Adds the rows of each matrix to its own sum.
void add_parts(const std::vector<std::shared_ptr<Hessian>>& hessians, const Tensor& x,
               const Tensor& ends, const std::string& name) {
  int64_t begin = 0;
  const std::vector<int64_t> all = ends.to(DType::i64).to_vector<int64_t>();
  for (size_t m = 0; m < hessians.size(); ++m) {
    const int64_t end = std::max(begin, all[m]);
    add_rows(*hessians[m], x.slice(0, begin, end), name);
    begin = end;
  }
}

}  // namespace

int64_t ProductInput::depth() const { return rows->type.sizes[rows->type.rank - 1].value(); }
int64_t ProductInput::matrices() const { return ends == nullptr ? 1 : ends->type.sizes[0].value(); }

Hessians run_samples(const ir::Graph& graph, const Examples& samples,
                     const std::vector<ProductInput>& inputs,
                     const std::function<void()>& advance) {
  const eager::NoGrad guard;
  Hessians hessians;
  std::map<const ir::Value*, Tensor> seen;  // what the parts of stacks are found from
  for (const ProductInput& input : inputs) {
    if (hessians.contains(input)) continue;
    for (int64_t m = 0; m < input.matrices(); ++m)
      hessians[input].push_back(std::make_shared<Hessian>(input.depth()));
    if (input.ends != nullptr) seen[input.rows], seen[input.ends];
  }
  for (size_t i = 0; i < samples.count; ++i) {
    run_example(graph, samples, i, [&](const ir::Value& v, const Tensor& x) {
      if (const auto h = hessians.find({&v}); h != hessians.end())
        add_rows(*h->second[0], x, v.name);
      if (const auto at = seen.find(&v); at != seen.end()) at->second = x;
    });
    for (const auto& [input, parts] : hessians)
      if (input.ends != nullptr && seen[input.rows].defined() && seen[input.ends].defined())
        add_parts(parts, seen[input.rows], seen[input.ends], input.rows->name);
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
