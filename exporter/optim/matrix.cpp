#include "taper/exporter/optim/matrix.h"

#include <algorithm>
#include <limits>

#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {
namespace {

Tensor root_mean_square(const Tensor& x, const At& at) {
  return at.sqrt(eager::mean(at.mul(x, x), std::nullopt, at.here));
}

/// mean = mean + share · (value - mean), in place.
void approach(Tensor& mean, const Tensor& value, const Tensor& share, const At& at) {
  mean.add_(at.mul(at.sub(value, mean), share), Scalar(1), at.here);
}

/// A matrix with the singular vectors of `m` and singular values near 1.
Tensor orthogonalized(const Tensor& m, const MuonOptions& o, const At& at) {
  const Location here = at.here;
  const bool tall = m.size(0).value() > m.size(1).value();  // the smaller Gram matrix costs less
  Tensor x = m.to(DType::bf16, here);
  if (tall) x = x.t(here);
  const Tensor wide = x.to(DType::f32, here);
  const Tensor norm =
      at.sqrt(eager::sum(at.mul(wide, wide), std::nullopt, here)).to(DType::bf16, here);
  x = at.div(x, eager::clamp_min(norm, Scalar(o.eps), here));
  const auto [a, b, c] = o.coefficients;
  for (int64_t i = 0; i < o.newton_schulz_steps; ++i) {
    const Tensor gram = eager::mm(x, x.t(here), here);
    const Tensor polynomial = eager::addmm(gram, gram, gram, Scalar(b), Scalar(c), here);
    x = eager::addmm(x, polynomial, x, Scalar(a), Scalar(1), here);
  }
  return tall ? x.t(here) : x;
}

}  // namespace

Adafactor::Adafactor(const std::vector<ParameterGroup<AdafactorOptions>>& groups, Location here)
    : PerParameter({"Adafactor", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const AdafactorOptions& o) -> AdafactorState {
    check().option(o.beta2_decay <= 0, "beta2_decay", o.beta2_decay, "0 or less");
    check().not_negative(
        {{"eps1", o.eps1.value_or(0)}, {"eps2", o.eps2}, {"weight_decay", o.weight_decay}});
    check().option(o.d >= 1, "d", o.d, "1 or more");
    if (p.rank() < 2) return {{}, {}, make_zeros("variance", p)};
    eager::Dims row = p.sizes(), column = p.sizes();
    row[row.size() - 1] = 1, column[column.size() - 2] = 1;
    return {make_full("row_var", p, row, 0), make_full("col_var", p, column, 0), {}};
  });
}

void Adafactor::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                       Location here) {
  const At at{here};
  const AdafactorOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  AdafactorState& s = state(group, index);
  const double eps =
      o.eps1.value_or(parameter.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                      : std::numeric_limits<float>::epsilon());
  const Tensor g = at.decayed(gradient, o.maximize, parameter, 0), squared = at.mul(g, g);
  const Tensor share = eager::pow(step_count(), Scalar(o.beta2_decay), here);
  const Tensor size = eager::clamp_min(root_mean_square(parameter, at), Scalar(o.eps2), here);
  const Tensor rate = at.mul(size, eager::minimum(lr, eager::rsqrt(step_count(), here), here));
  at.shrink(parameter, lr, o.weight_decay);
  Tensor variance = s.variance;
  if (variance.defined()) {
    approach(s.variance, squared, share, at);
  } else {
    const auto mean = [&](const Tensor& x, int64_t dim) {
      return eager::mean(x, {dim}, true, std::nullopt, here);
    };
    approach(s.row, mean(squared, -1), share, at);
    approach(s.column, mean(squared, -2), share, at);
    variance = at.div(eager::matmul(s.row, s.column, here),
                      eager::clamp_min(mean(s.row, -2), Scalar(eps), here));
  }
  const Tensor u =
      at.mul(eager::rsqrt(eager::clamp_min(variance, Scalar(eps * eps), here), here), g);
  const Tensor excess = eager::clamp_min(at.mul(root_mean_square(u, at), 1 / o.d), Scalar(1), here);
  parameter.sub_(at.mul(u, at.div(rate, excess)), Scalar(1), here);
}

Muon::Muon(const std::vector<ParameterGroup<MuonOptions>>& groups, Location here)
    : PerParameter({"Muon", here}) {
  add_groups(groups, [&](const Tensor& p, const MuonOptions& o) {
    check().not_negative({{"momentum", o.momentum}, {"weight_decay", o.weight_decay}});
    check().at_least("newton_schulz_steps", o.newton_schulz_steps, 0);
    check().require(p.rank() == 2, "it takes matrices, parameter '" + p.name() + "' is " +
                                       eager::to_string(p.sizes()));
    return MuonState{make_zeros("momentum", p)};
  });
}

void Muon::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient,
                  Location here) {
  const At at{here};
  const MuonOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  Tensor& momentum = state(group, index).momentum;
  at.average(momentum, o.momentum, gradient);
  const Tensor m =
      o.nesterov ? at.add(at.mul(gradient, 1 - o.momentum), momentum, o.momentum) : momentum;
  const Tensor direction = orthogonalized(m, o, at).to(parameter.dtype(), here);
  const double rows = static_cast<double>(parameter.size(0).value()),
               columns = static_cast<double>(parameter.size(1).value());
  const double factor = o.rate == MuonOptions::Rate::original
                            ? std::sqrt(std::max(1.0, rows / columns))
                            : 0.2 * std::sqrt(std::max(rows, columns));
  at.shrink(parameter, lr, o.weight_decay);
  parameter.sub_(at.mul(direction, at.mul(lr, factor)), Scalar(1), here);
}

}  // namespace taper::optim
