// RWKV 6: each head keeps a matrix of keys and values, which decays by feature, and each token says
// how far. B. Peng and others, "Eagle and Finch: RWKV with matrix-valued states and dynamic
// recurrence", arXiv:2404.05892. Weights have the names and forms of llama.cpp's GGUF files.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/token_shift.h"

namespace taper::llm {
namespace {

using namespace eager;

constexpr int64_t inputs_of_6 = 5;  // of decay, key, value, receptance, gate: in this order

/// Older files have a vector for each input.
Tensor shares_of_6(const Config& c, const Weights& weights) {
  if (weights["share"].has())
    return weights["share"]
        .vector({inputs_of_6, 1, 1, c.hidden})
        .reshape({inputs_of_6, 1, c.hidden});
  std::vector<Tensor> all;
  for (const char* input : {"w", "k", "v", "r", "g"})
    all.push_back(weights[std::string("share_") + input].vector({c.hidden}));
  return stack(all).unsqueeze(1);
}

/// What goes into the products: x + (before - x) (share + products of x), for each input.
class MixedInputs : public nn::Module {
 public:
  MixedInputs(const Config& c, const Weights& weights)
      : share(weights["share_x"].vector({c.hidden})),
        shares(shares_of_6(c, weights)),
        first(weights["share_1"], c.hidden, inputs_of_6 * c.mix_rank),
        second(weights["share_2"].vector({inputs_of_6, c.hidden, c.mix_rank})) {
    set_names();
  }
  Tensor share;   ///< (hidden)
  Tensor shares;  ///< (5, 1, hidden)
  Linear first;
  Tensor second;  ///< (5, hidden, rank)
  TAPER_LAYER(share, shares, first, second)

  /// (batch, n, hidden) each
  std::vector<Tensor> forward(const Tensor& x, const Tensor& before) {
    const Tensor change = before - x;
    const Tensor few = tanh(first(x + change * share));  // (batch, n, 5 rank)
    const Dim batch = x.size(0), n = x.size(1), hidden = x.size(2);
    const Tensor by_input = few.reshape({batch * n, inputs_of_6, second.size(2)}).transpose(0, 1);
    const Tensor learned = matmul(by_input, second.transpose(1, 2)) + shares;  // (5, batch n, …)
    std::vector<Tensor> inputs;
    for (int64_t i = 0; i < inputs_of_6; ++i)
      inputs.push_back(x + change * learned.select(0, i).reshape({batch, n, hidden}));
    return inputs;
  }
};

/// y = S r;  S <- decay S + value keyᵀ, by head. `slice`: receptance, decay, key, value.
MatrixStep next_of_6(const Tensor& state, const Tensor& slice) {
  const Tensor read = narrow(slice, 2, 0, 1), decay = narrow(slice, 2, 1, 1),
               key = narrow(slice, 2, 2, 1), value = narrow(slice, 2, 3, 1).transpose(2, 3);
  return {state * decay + value * key, sum(state * read, {3})};
}

class TimeMix6 : public nn::Module {
 public:
  TimeMix6(const Config& c, const Weights& weights)
      : shift(c),
        inputs(c, weights),
        decay(c, weights, "decay", c.decay_rank),
        first(weights["first"].vector({c.heads, c.head_dim})),
        receptance(weights["receptance"], c.hidden, c.hidden),
        key(weights["key"], c.hidden, c.hidden),
        value(weights["value"], c.hidden, c.hidden),
        gate(weights["out_gate"], c.hidden, c.hidden),
        norm(c, weights["out_norm"]),
        out(weights["out"], c.hidden, c.hidden),
        state(lazy_zeros({c.batch, c.heads, c.head_dim, c.head_dim})),
        config_(c) {
    set_names();
  }
  TokenShift shift;
  MixedInputs inputs;
  SmallProducts decay;
  Tensor first;  ///< (heads, features): how much of the token itself is read
  Linear receptance, key, value, gate;
  HeadNorm norm;
  Linear out;
  Tensor state;  ///< (batch, heads, values, keys)
  TAPER_LAYER(shift, inputs, decay, first, receptance, key, value, gate, norm, out, state)

  Tensor forward(const Tensor& x, const Step& step) {
    const std::vector<Tensor> in = inputs.forward(x, shift.forward(x, step));
    const Tensor w = exp(neg(exp(decay.forward(in[0], [](const Tensor& t) { return tanh(t); }))));
    const Tensor k = in_heads(key(in[1]), config_), v = in_heads(value(in[2]), config_),
                 r = in_heads(receptance(in[3]), config_);
    const Tensor before = for_each_token(next_of_6, state, {r, in_heads(w, config_), k, v}, step);
    const Tensor own = sum(r * first * k, {3}, true) * v;
    return out(norm.forward(before + own) * silu(gate(in[4])));
  }

 private:
  Config config_;
};

class ChannelMix6 : public nn::Module {
 public:
  ChannelMix6(const Config& c, const Weights& weights)
      : shift(c),
        key_share(weights["key_share"].vector({c.hidden})),
        gate_share(weights["gate_share"].vector({c.hidden})),
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
    const Tensor change = shift.forward(x, step) - x;
    const Tensor y = value(square(relu(key(x + change * key_share))));
    return sigmoid(gate(x + change * gate_share)) * y;
  }
};

/// Files divide the weights behind the states by powers of 2, so that f16 does not overflow. The
/// states are then halved behind as many layers.
class Rwkv6Layer : public DecoderLayer {
 public:
  Rwkv6Layer(const Config& c, const Weights& weights, int64_t layer)
      : time_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        time_mix(c, weights["time_mix"]),
        channel_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        channel_mix(c, weights["channel_mix"]),
        halves_(c.halved_every > 0 && (layer + 1) % c.halved_every == 0) {
    set_names();
  }
  Norm time_norm;
  TimeMix6 time_mix;
  Norm channel_norm;
  ChannelMix6 channel_mix;
  TAPER_LAYER(time_norm, time_mix, channel_norm, channel_mix)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + time_mix.forward(time_norm(input), step);
    const Tensor y = x + channel_mix.forward(channel_norm(x), step);
    return halves_ ? y * 0.5 : y;
  }

 private:
  bool halves_;
};

}  // namespace

const Family rwkv6 = {{"rwkv6"}, Family::FinalNorm::layer, make<Rwkv6Layer>};

}  // namespace taper::llm
