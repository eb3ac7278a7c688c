#include "taper/exporter/optim/rare/matrix.h"

#include <algorithm>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {
namespace {

Tensor root_mean_square(const Tensor& x) { return eager::sqrt(eager::mean(x * x)); }

/// mean = mean + share · (value - mean), in place.
void approach(Tensor& mean, const Tensor& value, const Tensor& share) {
  mean.add_((value - mean) * share);
}

/// A matrix with the singular vectors of `m` and singular values near 1.
Tensor orthogonalized(const Tensor& m, const MuonOptions& o) {
  const bool tall = m.size(0).value() > m.size(1).value();  // the smaller Gram matrix costs less
  Tensor x = m.to(DType::bf16);
  if (tall) x = x.t();
  const Tensor wide = x.to(DType::f32);
  const Tensor norm = eager::sqrt(eager::sum(wide * wide)).to(DType::bf16);
  x = x / eager::clamp_min(norm, o.eps);
  const auto [a, b, c] = o.coefficients;
  for (int64_t i = 0; i < o.newton_schulz_steps; ++i) {
    const Tensor gram = eager::mm(x, x.t());
    x = eager::addmm(x, eager::addmm(gram, gram, gram, b, c), x, a, 1);
  }
  return tall ? x.t() : x;
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

void Adafactor::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const AdafactorOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  AdafactorState& s = state(group, index);
  const double eps =
      o.eps1.value_or(parameter.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                      : std::numeric_limits<float>::epsilon());
  const Tensor g = decayed(gradient, o.maximize, parameter, 0), squared = g * g;
  const Tensor share = eager::pow(step_count(), o.beta2_decay);
  const Tensor rate = eager::clamp_min(root_mean_square(parameter), o.eps2) *
                      eager::minimum(lr, eager::rsqrt(step_count()));
  shrink(parameter, lr, o.weight_decay);
  Tensor variance = s.variance;
  if (variance.defined()) {
    approach(s.variance, squared, share);
  } else {
    const auto mean = [&](const Tensor& x, int64_t dim) { return eager::mean(x, {dim}, true); };
    approach(s.row, mean(squared, -1), share);
    approach(s.column, mean(squared, -2), share);
    variance = eager::matmul(s.row, s.column) / eager::clamp_min(mean(s.row, -2), eps);
  }
  const Tensor u = eager::rsqrt(eager::clamp_min(variance, eps * eps)) * g;
  parameter.sub_(u * (rate / eager::clamp_min(root_mean_square(u) * (1 / o.d), 1)));
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

void Muon::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const MuonOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  Tensor& momentum = state(group, index).momentum;
  average(momentum, o.momentum, gradient);
  const Tensor m =
      o.nesterov ? eager::add(gradient * (1 - o.momentum), momentum, o.momentum) : momentum;
  const Tensor direction = orthogonalized(m, o).to(parameter.dtype());
  const double rows = static_cast<double>(parameter.size(0).value()),
               columns = static_cast<double>(parameter.size(1).value());
  const double factor = o.rate == MuonOptions::Rate::original
                            ? std::sqrt(std::max(1.0, rows / columns))
                            : 0.2 * std::sqrt(std::max(rows, columns));
  shrink(parameter, lr, o.weight_decay);
  parameter.sub_(direction * (lr * factor));
}

}  // namespace taper::optim
