// RWKV 7: each head keeps a matrix of keys and values. A token removes what stands at one key, and
// adds a value at another one. B. Peng and others, "RWKV-7 Goose with expressive dynamic state
// evolution", arXiv:2503.14456. Weights have the names and forms of llama.cpp's GGUF files.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/token_shift.h"

namespace taper::llm {
namespace {

using namespace eager;

constexpr int64_t inputs_of_7 = 6;  // of receptance, decay, key, value, rate, gate: in this order

/// S <- decay S + value keyᵀ + (S removed) addedᵀ;  y = S r, by head. `slice`: receptance, decay,
/// key, value, removed, added.
MatrixStep next_of_7(const Tensor& state, const Tensor& slice) {
  const auto part = [&](int64_t i) { return narrow(slice, 2, i, 1); };
  const Tensor kept = sum(state * part(4), {3}, true);
  const Tensor next = state * part(1) + part(3).transpose(2, 3) * part(2) + kept * part(5);
  return {next, sum(next * part(0), {3})};
}

/// The first layer repeats the weights of `rate` under these names. Nothing reads them.
void pass_over_unused_values(const Config& c, const Weights& weights) {
  if (!weights["first_value"].has()) return;
  (void)weights["first_value"].vector({c.hidden});
  (void)weights["first_value_1"].matrix(c.rate_rank, c.hidden);
  (void)weights["first_value_2"].matrix(c.hidden, c.rate_rank);
}

class TimeMix7 : public nn::Module {
 public:
  TimeMix7(const Config& c, const Weights& weights, int64_t layer)
      : shift(c),
        shares(weights["share"].vector({inputs_of_7, 1, 1, c.hidden})),
        decay(c, weights, "decay", c.decay_rank),
        rate(c, weights, "rate", c.rate_rank),
        gate(c, weights, "out_gate", c.gate_rank, false),
        removed_key(weights["removed_key"].vector({c.hidden})),
        added_key(weights["added_key"].vector({c.hidden})),
        own(weights["own"].vector({c.hidden}).reshape({c.heads, c.head_dim})),
        receptance(weights["receptance"], c.hidden, c.hidden),
        key(weights["key"], c.hidden, c.hidden),
        value(weights["value"], c.hidden, c.hidden),
        norm(c, weights["out_norm"]),
        out(weights["out"], c.hidden, c.hidden),
        state(lazy_zeros({c.batch, c.heads, c.head_dim, c.head_dim})),
        config_(c) {
    if (layer > 0)
      first_value = std::make_unique<SmallProducts>(c, weights, "first_value", c.value_rank);
    else
      pass_over_unused_values(c, weights);
    set_names();
  }
  TokenShift shift;
  Tensor shares;  ///< (6, 1, 1, hidden)
  SmallProducts decay, rate, gate;
  std::unique_ptr<SmallProducts> first_value;  ///< how much of the first layer's values goes in
  Tensor removed_key, added_key;               ///< (hidden)
  Tensor own;  ///< (heads, features): how much of the token itself is read
  Linear receptance, key, value;
  HeadNorm norm;
  Linear out;
  Tensor state;  ///< (batch, heads, values, keys)
  TAPER_LAYER(shift, shares, decay, rate, gate, first_value, removed_key, added_key, own,
              receptance, key, value, norm, out, state)

  /// `values`: those of the first layer, which computes them.
  Tensor forward(const Tensor& x, Tensor& values, const Step& step) {
    const Tensor in = x + (shift.forward(x, step) - x) * shares;  // (6, batch, n, hidden)
    const Tensor v = value_of(in.select(0, 3), values);
    const Tensor a = sigmoid(rate.forward(in.select(0, 4), nullptr)), raw = key(in.select(0, 2));
    const Tensor k = raw + (a - 1) * raw * added_key;
    const Tensor r = receptance(in.select(0, 0));
    const Tensor removed = unit(in_heads(raw * removed_key, config_));
    const auto heads = [&](const Tensor& t) { return in_heads(t, config_); };
    const Tensor y = for_each_token(next_of_7, state,
                                    {heads(r), heads(decay_of(in.select(0, 1))), heads(k), heads(v),
                                     neg(removed), removed * heads(a)},
                                    step);
    const Tensor of_token = sum(heads(r) * heads(k) * own, {3}, true) * heads(v);
    const Tensor sums = norm.forward(y) + of_token.reshape(x.sizes());
    const auto squeeze = [](const Tensor& t) { return sigmoid(t); };
    return out(sums * gate.forward(in.select(0, 5), squeeze));
  }

 private:
  Tensor value_of(const Tensor& input, Tensor& values) {
    const Tensor v = value(input);
    if (first_value == nullptr) return values = v;
    return v + (values - v) * sigmoid(first_value->forward(input, nullptr));
  }
  /// From exp(-1/√e) to 1.
  Tensor decay_of(const Tensor& input) {
    constexpr double lowest = -0.606531;
    return exp(sigmoid(decay.forward(input, [](const Tensor& t) { return tanh(t); })) * lowest);
  }
  /// Of length 1, by head.
  static Tensor unit(const Tensor& x) {
    return x / clamp_min(sqrt(sum(square(x), {3}, true)), 1e-12);
  }

  Config config_;
};

class ChannelMix7 : public nn::Module {
 public:
  ChannelMix7(const Config& c, const Weights& weights)
      : shift(c),
        key_share(weights["key_share"].vector({c.hidden})),
        key(weights["key"], c.hidden, c.mlp),
        value(weights["value"], c.mlp, c.hidden) {
    set_names();
  }
  TokenShift shift;
  Tensor key_share;
  Linear key, value;
  TAPER_LAYER(shift, key_share, key, value)

  Tensor forward(const Tensor& x, const Step& step) {
    return value(square(relu(key(x + (shift.forward(x, step) - x) * key_share))));
  }
};

/// The values of the first layer go to the others beside the states: (batch, n, 2 hidden) between
/// two layers.
class Rwkv7Layer : public DecoderLayer {
 public:
  Rwkv7Layer(const Config& c, const Weights& weights, int64_t layer)
      : time_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        time_mix(c, weights["time_mix"], layer),
        channel_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        channel_mix(c, weights["channel_mix"]),
        hidden_(c.hidden),
        is_first_(layer == 0),
        is_last_(layer + 1 == c.layers) {
    set_names();
  }
  Norm time_norm;
  TimeMix7 time_mix;
  Norm channel_norm;
  ChannelMix7 channel_mix;
  TAPER_LAYER(time_norm, time_mix, channel_norm, channel_mix)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor states = is_first_ ? input : narrow(input, 2, 0, hidden_);
    Tensor values = is_first_ ? Tensor() : narrow(input, 2, hidden_, hidden_);
    const Tensor x = states + time_mix.forward(time_norm(states), values, step);
    const Tensor y = x + channel_mix.forward(channel_norm(x), step);
    return is_last_ ? y : cat({y, values}, 2);
  }

 private:
  int64_t hidden_;
  bool is_first_, is_last_;
};

}  // namespace

const Family rwkv7 = {{"rwkv7"}, Family::FinalNorm::layer, make<Rwkv7Layer>};

}  // namespace taper::llm
