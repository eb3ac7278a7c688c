// Mamba 2: a state space whose heads decay by one number each, so that the tokens of a call are
// products of matrices. T. Dao, A. Gu, "Transformers are SSMs", arXiv:2405.21060.
#include "taper/exporter/llm/attention.h"
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/mixer_layer.h"
#include "taper/exporter/llm/short_convolution.h"

namespace taper::llm {
namespace {

using namespace eager;

/// What a head reads and remembers:
///   h_t = exp(step_t a) h_(t-1) + step_t x_t b_tᵀ;  y_t = h_t c_t + d x_t
struct Scan {
  Tensor x;       ///< (batch, heads, n, head_dim), times the steps
  Tensor decay;   ///< (batch, heads, n): sums of step a from the first new token on
  Tensor b, c;    ///< (batch, heads, n, state)
  Tensor hidden;  ///< bool (batch, 1, n, n): true for tokens behind the row's
};

/// exp(decay_i - decay_j), and 0 where j comes after i.
Tensor kept_between(const Scan& s) {
  const Tensor between = s.decay.unsqueeze(-1) - s.decay.unsqueeze(-2);
  return exp(masked_fill(between, s.hidden, -INFINITY));
}

class Mixer2 : public nn::Module {
 public:
  Mixer2(const Config& c, const Weights& weights)
      : in(weights["in"], c.hidden, 2 * c.inner + 2 * c.groups * c.state + c.heads),
        convolution(c, weights["filter"], c.inner + 2 * c.groups * c.state),
        a(neg(exp(weights.vector({c.heads}, "A_log")))),
        d(weights.vector({c.heads}, "D")),
        step_bias(weights.vector({c.heads}, "dt_bias")),
        norm_weight(weights["norm"].vector({c.inner})),
        out(weights["out"], c.inner, c.hidden),
        state(lazy_zeros({c.batch, c.heads, c.head_dim, c.state})),
        config_(c) {
    set_names();
  }
  Linear in;
  ShortConvolution convolution;
  Tensor a, d, step_bias, norm_weight;
  Linear out;
  Tensor state;  ///< h: (batch, heads, head_dim, state)
  TAPER_LAYER(in, convolution, a, d, step_bias, norm_weight, out, state)

  Tensor forward(const Tensor& input, const Step& step) {
    const int64_t shared = config_.groups * config_.state;
    const std::vector<Tensor> parts =
        split(in(input), Dims{config_.inner, config_.inner + 2 * shared, config_.heads}, -1);
    const Tensor mixed = silu(convolution.forward(parts[1], step));
    const std::vector<Tensor> xbc = split(mixed, Dims{config_.inner, shared, shared}, -1);
    return out(normed(scan(xbc[0], xbc[1], xbc[2], parts[2], step) * silu(parts[0])));
  }

 private:
  /// (batch, n, heads * features) -> (batch, heads, n, features)
  Tensor in_heads(const Tensor& x, int64_t features) const {
    const Dim batch = x.size(0), n = x.size(1);
    return x.reshape({batch, n, config_.heads, features}).transpose(1, 2);
  }
  /// (batch, n, groups * state) -> (batch, heads, n, state)
  Tensor of_heads(const Tensor& x) const {
    const Dim batch = x.size(0), n = x.size(1);
    const int64_t groups = config_.groups, sharing = config_.heads / groups;
    const Tensor y = x.reshape({batch, n, groups, 1, config_.state});
    return in_heads(y.expand({batch, n, groups, sharing, config_.state})
                        .reshape({batch, n, config_.heads * config_.state}),
                    config_.state);
  }

  Tensor steps(const Tensor& raw) const {
    const Tensor dt = softplus(raw + step_bias);
    if (config_.least_step <= 0 && config_.most_step == INFINITY) return dt;
    return clamp(dt, config_.least_step, config_.most_step);
  }

  Tensor scan(const Tensor& x, const Tensor& b, const Tensor& c, const Tensor& raw_steps,
              const Step& step) {
    const Tensor dt = steps(raw_steps);  // (batch, n, heads)
    const Tensor heads = in_heads(x, config_.head_dim);
    const Tensor at = step.positions.unsqueeze(1);
    const Scan s{heads * dt.transpose(1, 2).unsqueeze(-1), cumsum(dt * a, 1).transpose(1, 2),
                 of_heads(b), of_heads(c), gt(at.unsqueeze(2), at.unsqueeze(3))};
    const Tensor y = read(s, step) + heads * d.unsqueeze(-1).unsqueeze(-1);
    return y.transpose(1, 2).reshape({x.size(0), x.size(1), config_.inner});
  }

  /// What the new tokens see of each other and of the state, which then moves behind them.
  Tensor read(const Scan& s, const Step& step) {
    const Tensor before = kept(state, step);
    const Tensor among = matmul(matmul(s.c, s.b.transpose(2, 3)) * kept_between(s), s.x);
    const Tensor of_state = matmul(s.c, before.transpose(2, 3)) * exp(s.decay).unsqueeze(-1);
    const Tensor all = narrow(s.decay, 2, s.decay.size(2) - 1, 1);  // (batch, heads, 1)
    const Tensor left = s.b * exp(all - s.decay).unsqueeze(-1);
    keep(state, before * exp(all).unsqueeze(-1) + matmul(s.x.transpose(2, 3), left), step);
    return among + of_state;
  }

  /// An RMS norm of each group.
  Tensor normed(const Tensor& x) const {
    const int64_t size = config_.inner / config_.groups;
    const Tensor groups = x.reshape({x.size(0), x.size(1), config_.groups, size});
    return rms_norm(groups, Dims{size}, {}, config_.norm_eps).reshape(x.sizes()) * norm_weight;
  }

  Config config_;
};

}  // namespace

const Family mamba2 = {{"mamba2"}, Family::FinalNorm::rms, make<MixerLayer<Mixer2>>};

}  // namespace taper::llm
