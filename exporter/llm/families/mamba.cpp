// Mamba: a selective state space in place of attention. A. Gu, T. Dao, "Mamba: Linear-time sequence
// modeling with selective state spaces", arXiv:2312.00752.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/mixer_layer.h"
#include "taper/exporter/llm/short_convolution.h"

namespace taper::llm {
namespace {

using namespace eager;

/// h_t = exp(step_t a) h_(t-1) + step_t b_t x_t;  y_t = c_t h_t + d x_t
class Mixer : public nn::Module {
 public:
  Mixer(const Config& c, const Weights& weights)
      : in(weights["in"], c.hidden, 2 * c.inner),
        convolution(c, weights["filter"], c.inner),
        parameters(weights["parameters"], c.inner, c.step_rank + 2 * c.state),
        step_size(weights["step"], c.step_rank, c.inner),
        a(neg(exp(weights.vector({c.inner, c.state}, "A_log")))),
        d(weights.vector({c.inner}, "D")),
        out(weights["out"], c.inner, c.hidden),
        state(lazy_zeros({c.batch, 1, c.inner, c.state})),
        sizes_{c.step_rank, c.state, c.state} {
    set_names();
  }
  Linear in;
  ShortConvolution convolution;
  Linear parameters, step_size;
  Tensor a, d;
  Linear out;
  Tensor state;
  TAPER_LAYER(in, convolution, parameters, step_size, a, d, out, state)

  Tensor forward(const Tensor& input, const Step& step) {
    const std::vector<Tensor> halves = chunk(in(input), 2, -1);
    const Tensor x = silu(convolution.forward(halves[0], step));  // (batch, n, inner)
    return out(scan(x, step) * silu(halves[1]));
  }

 private:
  Tensor scan(const Tensor& x, const Step& step) {
    const std::vector<Tensor> p = split(parameters(x), sizes_, -1);
    const Tensor dt = softplus(step_size(p[0])).unsqueeze(-1);  // (batch, n, inner, 1)
    const Tensor b = p[1].unsqueeze(2), c = p[2].unsqueeze(2);  // (batch, n, 1, state)
    // the state stands before the new tokens; its own factor does not count
    const Tensor first = kept(state, step);
    const Tensor factors = cat({first, exp(dt * a)}, 1),
                 terms = cat({first, dt * b * x.unsqueeze(-1)}, 1);
    const Tensor all = linear_recurrence(factors, terms, 1), h = narrow(all, 1, 1, x.size(1));
    keep(state, narrow(all, 1, x.size(1), 1), step);
    return sum(h * c, {3}) + x * d;
  }

  Dims sizes_;
};

}  // namespace

const Family mamba = {{"mamba"}, Family::FinalNorm::rms, make<MixerLayer<Mixer>>};

}  // namespace taper::llm
