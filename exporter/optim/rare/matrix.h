// Optimizers that treat a weight as a matrix.
#pragma once
#include <array>
#include <optional>

#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

struct AdafactorOptions {
  double lr = 1e-2;  ///< at most this much of a parameter's root mean square a step
  double beta2_decay = -0.8;
  std::optional<double> eps1 = std::nullopt;  ///< absent: the machine epsilon of the dtype
  double eps2 = 1e-3;                         ///< the least root mean square that counts
  double d = 1;                               ///< updates are scaled down to this root mean square
  double weight_decay = 0;                    ///< decoupled, as AdamW's
  bool maximize = false;
};
struct AdafactorState {
  Tensor row, column;  ///< of a parameter of two or more dimensions
  Tensor variance;     ///< of a vector
};
/// Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018. With
/// β = 1 - t^beta2_decay and rms(x) = |x| / √numel, for the last two dimensions (n, m):
///   r = β r + (1 - β) mean of g² along m,   c = β c + (1 - β) mean of g² along n
///   v = r c / max(mean(r), eps1);  a vector has its v itself
///   u = g / √max(v, eps1²)
///   p = p - max(eps2, rms(p)) · min(lr, 1 / √t) · u / max(1, rms(u) / d)
/// States: lr, step, row_var.<parameter> and col_var.<parameter>, or variance.<parameter>.
class Adafactor : public PerParameter<AdafactorOptions, AdafactorState> {
 public:
  explicit Adafactor(const std::vector<Tensor>& parameters, AdafactorOptions options = {},
                     Location here = Location::current())
      : Adafactor(std::vector{ParameterGroup<AdafactorOptions>{parameters, options}}, here) {}
  explicit Adafactor(const std::vector<ParameterGroup<AdafactorOptions>>& groups,
                     Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< decoupled, as AdamW's
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> coefficients{3.4445, -4.775, 2.0315};  ///< of the polynomial
  double eps = 1e-7;
  int64_t newton_schulz_steps = 5;
  /// The factor for the rate of an (n, m) matrix: √max(1, n / m), or 0.2 √max(n, m), which gives
  /// updates as large as AdamW's.
  enum class Rate { original, match_rms_adamw } rate = Rate::original;
};
struct MuonState {
  Tensor momentum;
};
/// Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024. The update is
/// the momentum m = momentum · m + (1 - momentum) g, made nearly orthogonal by a Newton-Schulz
/// iteration in bf16: x = a x + (b x xᵀ + c (x xᵀ)²) x. For matrices only: give biases and
/// embeddings to AdamW. Throws EagerError for parameters of another rank. States: lr,
/// momentum.<parameter>.
class Muon : public PerParameter<MuonOptions, MuonState> {
 public:
  explicit Muon(const std::vector<Tensor>& parameters, MuonOptions options = {},
                Location here = Location::current())
      : Muon(std::vector{ParameterGroup<MuonOptions>{parameters, options}}, here) {}
  explicit Muon(const std::vector<ParameterGroup<MuonOptions>>& groups,
                Location here = Location::current());

  double momentum(size_t group = 0) const override { return options(group).momentum; }
  void set_momentum(double value, size_t group = 0, Location = Location::current()) override {
    options(group).momentum = value;
  }

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;
};

}  // namespace taper::optim
