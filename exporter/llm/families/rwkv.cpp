// RWKV 4: in place of attention, a mean of all values so far whose weights decay by channel. B.
// Peng and others, "RWKV: Reinventing RNNs for the transformer era", arXiv:2305.13048.
#include "taper/exporter/llm/attention.h"
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/token_shift.h"

namespace taper::llm {
namespace {

using namespace eager;

/// share x + (1 - share) before, by channel.
Tensor mixed(const Tensor& x, const Tensor& before, const Tensor& share) {
  return x * share + before * (1 - share);
}

Tensor share(const Config& c, const Weights& weights, const char* name) {
  return weights.vector({1, 1, c.hidden}, name);
}

/// y_t = (sum of w_(t,i) v_i) / (sum of w_(t,i)) over i <= t, by channel, where
/// w_(t,i) = exp(k_i - (t - 1 - i) exp(decay)) for i < t, and w_(t,t) = exp(first + k_t).
class WeightedMean : public nn::Module {
 public:
  WeightedMean(const Config& c, const Weights& weights)
      : decay(neg(exp(weights.vector({c.hidden}, "time_decay")))),
        first(weights.vector({c.hidden}, "time_first")),
        sums(lazy_zeros({c.batch, 1, c.hidden})),
        counts(lazy_zeros({c.batch, 1, c.hidden})),
        peak(lazy_zeros({c.batch, 1, c.hidden})) {
    set_names();
  }
  Tensor decay, first;
  /// Of the tokens so far, divided by exp(peak): no power is far above 1.
  Tensor sums, counts, peak;  ///< (batch, 1, hidden)
  TAPER_LAYER(decay, first, sums, counts, peak)

  Tensor forward(const Tensor& keys, const Tensor& values, const Step& step) {
    const Dim n = keys.size(1);
    const Tensor start = peak_before(step);
    const Tensor peaks = cat({start, peaks_of(keys, start, step)}, 1);
    const Tensor before = narrow(peaks, 1, 0, n), after = narrow(peaks, 1, 1, n);
    const Tensor factor = exp(before + decay - after), power = exp(keys - after);
    const Tensor all_sums = recurrence(factor, power * values, kept(sums, step)),
                 all_counts = recurrence(factor, power, kept(counts, step));
    keep(sums, narrow(all_sums, 1, n, 1), step), keep(counts, narrow(all_counts, 1, n, 1), step);
    keep(peak, narrow(peaks, 1, n, 1), step);

    const Tensor now = keys + first, top = maximum(before, now);
    const Tensor old = exp(before - top), own = exp(now - top);
    return (narrow(all_sums, 1, 0, n) * old + own * values) /
           (narrow(all_counts, 1, 0, n) * old + own);
  }

 private:
  /// A new text has none yet.
  Tensor peak_before(const Step& step) const {
    const Tensor is_new = eq(step.start, 0).unsqueeze(-1).unsqueeze(-1);
    return masked_fill(rows_of(peak, step), is_new, -1e30);
  }
  /// max(k_t, peak_(t-1) + decay), which is a running maximum of k_t - t decay.
  Tensor peaks_of(const Tensor& keys, const Tensor& start, const Step& step) const {
    const Tensor count = step.positions - step.start.unsqueeze(1) + 1;  // 1, 2, … (batch, n)
    const Tensor fallen = count.to(DType::f32).unsqueeze(-1) * decay;
    const Tensor highest = std::get<0>(cummax(cat({start, keys - fallen}, 1), 1));
    return narrow(highest, 1, 1, keys.size(1)) + fallen;
  }
  /// The state stands in front; its own factor does not count.
  static Tensor recurrence(const Tensor& factors, const Tensor& terms, const Tensor& state) {
    return linear_recurrence(cat({state, factors}, 1), cat({state, terms}, 1), 1);
  }
};

class TimeMix : public nn::Module {
 public:
  TimeMix(const Config& c, const Weights& weights)
      : shift(c),
        key_share(share(c, weights, "time_mix_key")),
        value_share(share(c, weights, "time_mix_value")),
        gate_share(share(c, weights, "time_mix_receptance")),
        key(weights["key"], c.hidden, c.hidden),
        value(weights["value"], c.hidden, c.hidden),
        gate(weights["gate"], c.hidden, c.hidden),
        mean(c, weights),
        out(weights["out"], c.hidden, c.hidden) {
    set_names();
  }
  TokenShift shift;
  Tensor key_share, value_share, gate_share;
  Linear key, value, gate;
  WeightedMean mean;
  Linear out;
  TAPER_LAYER(shift, key_share, value_share, gate_share, key, value, gate, mean, out)

  Tensor forward(const Tensor& x, const Step& step) {
    const Tensor before = shift.forward(x, step);
    const Tensor y =
        mean.forward(key(mixed(x, before, key_share)), value(mixed(x, before, value_share)), step);
    return out(sigmoid(gate(mixed(x, before, gate_share))) * y);
  }
};

class ChannelMix : public nn::Module {
 public:
  ChannelMix(const Config& c, const Weights& weights)
      : shift(c),
        key_share(share(c, weights, "time_mix_key")),
        gate_share(share(c, weights, "time_mix_receptance")),
        key(weights["key"], c.hidden, c.mlp),
        value(weights["value"], c.mlp, c.hidden),
        gate(weights["gate"], c.hidden, c.hidden) {
    set_names();
  }
  TokenShift shift;
  Tensor key_share, gate_share;
  Linear key, value, gate;
  TAPER_LAYER(shift, key_share, gate_share, key, value, gate)

  Tensor forward(const Tensor& x, const Step& step) {
    const Tensor before = shift.forward(x, step);
    const Tensor y = value(square(relu(key(mixed(x, before, key_share)))));
    return sigmoid(gate(mixed(x, before, gate_share))) * y;
  }
};

/// The reference divides the states of later layers by powers of 2 (`rescale_every`), so that f16
/// does not overflow. That changes the eps of norms alone, and is not needed in f32.
class RwkvLayer : public DecoderLayer {
 public:
  RwkvLayer(const Config& c, const Weights& weights, int64_t)
      : time_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        time_mix(c, weights["time_mix"]),
        channel_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        channel_mix(c, weights["channel_mix"]) {
    if (weights["first_norm"].has())
      first_norm = std::make_unique<Norm>(weights["first_norm"], Ints{c.hidden}, c.norm_eps,
                                          Norm::Kind::layer);
    set_names();
  }
  std::unique_ptr<Norm> first_norm;  ///< of the embedding, in the first layer
  Norm time_norm;
  TimeMix time_mix;
  Norm channel_norm;
  ChannelMix channel_mix;
  TAPER_LAYER(first_norm, time_norm, time_mix, channel_norm, channel_mix)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = first_norm ? (*first_norm)(input) : input;
    const Tensor y = x + time_mix.forward(time_norm(x), step);
    return y + channel_mix.forward(channel_norm(y), step);
  }
};

}  // namespace

const Family rwkv = {{"rwkv"}, Family::FinalNorm::layer, make<RwkvLayer>};

}  // namespace taper::llm
