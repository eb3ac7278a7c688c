// Recurrent layers, attention and transformers.
#include "taper/tests/exporter/nn/factories.h"

namespace taper::tests {
namespace {

/// The tensors of a tuple that are defined.
template <class... T>
std::vector<Tensor> outputs(const std::tuple<T...>& tuple) {
  std::vector<Tensor> all;
  std::apply([&](const auto&... t) { ((t.defined() ? all.push_back(t) : void()), ...); }, tuple);
  return all;
}

template <class Options>
Options recurrent_options(const Json& a) {
  Options o;
  o.num_layers = argument<int64_t>(a, "num_layers", 1);
  o.bias = argument(a, "bias", true);
  o.batch_first = argument(a, "batch_first", false);
  o.bidirectional = argument(a, "bidirectional", false);
  return o;
}

template <class M, class... A>
std::shared_ptr<M> sized(const Json& a, A&&... more) {
  return std::make_shared<M>(a["input_size"].get<int64_t>(), a["hidden_size"].get<int64_t>(),
                             std::forward<A>(more)...);
}
template <class M>
Callable with_one_state(std::shared_ptr<M> m) {
  return {m, [m](const Call& c) { return outputs((*m)(c.input(0), c.input(1))); }};
}
template <class M>
Callable cell_with_one_state(std::shared_ptr<M> m) {
  return {m, [m](const Call& c) -> std::vector<Tensor> { return {(*m)(c.input(0), c.input(1))}; }};
}
template <class M>
Callable with_two_states(std::shared_ptr<M> m) {
  return {m, [m](const Call& c) { return outputs((*m)(c.input(0), c.input(1), c.input(2))); }};
}

Callable multihead_attention(const Json& a) {
  nn::MultiheadAttentionOptions o;
  o.bias = argument(a, "bias", true);
  o.add_bias_kv = argument(a, "add_bias_kv", false);
  o.add_zero_attn = argument(a, "add_zero_attn", false);
  o.kdim = optional_argument<int64_t>(a, "kdim");
  o.vdim = optional_argument<int64_t>(a, "vdim");
  o.batch_first = argument(a, "batch_first", false);
  const auto m = std::make_shared<nn::MultiheadAttention>(a["embed_dim"].get<int64_t>(),
                                                          a["num_heads"].get<int64_t>(), o);
  return {m, [m](const Call& c) {
            return outputs(
                (*m)(c.input(0), c.input(1), c.input(2),
                     {.key_padding_mask = c.keyword("key_padding_mask"),
                      .need_weights = argument(c.options, "need_weights", true),
                      .attn_mask = c.keyword("attn_mask"),
                      .average_attn_weights = argument(c.options, "average_attn_weights", true)}));
          }};
}

nn::TransformerLayerOptions transformer_options(const Json& a) {
  return {.dim_feedforward = a["dim_feedforward"].get<int64_t>(),
          .dropout = a["dropout"].get<double>(),
          .activation = argument<std::string>(a, "activation", "relu"),
          .layer_norm_eps = argument(a, "layer_norm_eps", 1e-5),
          .batch_first = argument(a, "batch_first", false),
          .norm_first = argument(a, "norm_first", false),
          .bias = argument(a, "bias", true)};
}

}  // namespace

std::map<std::string, Factory> sequence_factories() {
  return {
      {"LSTM",
       [](const Json& a) {
         auto o = recurrent_options<nn::LSTMOptions>(a);
         o.proj_size = argument<int64_t>(a, "proj_size", 0);
         return with_two_states(sized<nn::LSTM>(a, o));
       }},
      {"GRU",
       [](const Json& a) {
         return with_one_state(sized<nn::GRU>(a, recurrent_options<nn::RecurrentOptions>(a)));
       }},
      {"RNN",
       [](const Json& a) {
         auto o = recurrent_options<nn::RNNOptions>(a);
         o.relu = argument<std::string>(a, "nonlinearity", "tanh") == "relu";
         return with_one_state(sized<nn::RNN>(a, o));
       }},
      {"LSTMCell",
       [](const Json& a) {
         return with_two_states(sized<nn::LSTMCell>(a, argument(a, "bias", true)));
       }},
      {"GRUCell",
       [](const Json& a) {
         return cell_with_one_state(sized<nn::GRUCell>(a, argument(a, "bias", true)));
       }},
      {"RNNCell",
       [](const Json& a) {
         return cell_with_one_state(sized<nn::RNNCell>(a, argument(a, "bias", true)));
       }},
      {"MultiheadAttention", multihead_attention},
      {"TransformerEncoderLayer",
       [](const Json& a) -> Callable {
         const auto m = std::make_shared<nn::TransformerEncoderLayer>(
             a["d_model"].get<int64_t>(), a["nhead"].get<int64_t>(), transformer_options(a));
         return {m, [m](const Call& c) -> std::vector<Tensor> {
                   return {(*m)(c.input(0), nn::EncoderMasks{c.keyword("src_mask"),
                                                             c.keyword("src_key_padding_mask")})};
                 }};
       }},
      {"TransformerDecoderLayer",
       [](const Json& a) -> Callable {
         const auto m = std::make_shared<nn::TransformerDecoderLayer>(
             a["d_model"].get<int64_t>(), a["nhead"].get<int64_t>(), transformer_options(a));
         return {m, [m](const Call& c) -> std::vector<Tensor> {
                   return {(*m)(c.input(0), c.input(1),
                                nn::DecoderMasks{.tgt_mask = c.keyword("tgt_mask")})};
                 }};
       }},
      {"Transformer",
       [](const Json& a) -> Callable {
         const auto m = std::make_shared<nn::Transformer>(
             nn::TransformerOptions{.d_model = a["d_model"].get<int64_t>(),
                                    .nhead = a["nhead"].get<int64_t>(),
                                    .num_encoder_layers = a["num_encoder_layers"].get<int64_t>(),
                                    .num_decoder_layers = a["num_decoder_layers"].get<int64_t>(),
                                    .layer = transformer_options(a)});
         return {m, [m](const Call& c) -> std::vector<Tensor> {
                   return {(*m)(c.input(0), c.input(1))};
                 }};
       }},
  };
}

}  // namespace taper::tests
