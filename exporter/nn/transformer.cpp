#include "taper/exporter/nn/transformer.h"

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/check.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {
namespace {

/// The options, if they are possible.
const TransformerLayerOptions& checked(const char* layer, int64_t d_model,
                                       const TransformerLayerOptions& o, Location here) {
  internal::check_sizes(layer, {{"d_model", d_model}, {"dim_feedforward", o.dim_feedforward}},
                        here);
  if (o.activation != "relu" && o.activation != "gelu")
    throw EagerError(here, std::string(layer) +
                               ": activation must be \"relu\" or \"gelu\", got \"" + o.activation +
                               "\"");
  return o;
}
MultiheadAttention attention(int64_t d_model, int64_t nhead, const TransformerLayerOptions& o,
                             Location here) {
  return MultiheadAttention(
      d_model, nhead, {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first}, here);
}
Linear widening(int64_t d_model, const TransformerLayerOptions& o) {
  return Linear(d_model, o.dim_feedforward, {.bias = o.bias});
}
Linear narrowing(int64_t d_model, const TransformerLayerOptions& o) {
  return Linear(o.dim_feedforward, d_model, {.bias = o.bias});
}
LayerNorm layer_norm(int64_t d_model, const TransformerLayerOptions& o) {
  return LayerNorm(d_model, {.eps = o.layer_norm_eps, .bias = o.bias});
}

/// x + part(norm(x)), or norm(x + part(x)).
template <class Part>
Tensor residual(const Tensor& x, LayerNorm& norm, bool norm_first, const Part& part) {
  return norm_first ? x + part(norm(x)) : norm(x + part(x));
}

template <class Layer>
Tensor feed_forward(Layer& layer, const std::string& activation, const Tensor& x) {
  const Tensor wide = layer.linear1(x);
  return layer.linear2(layer.dropout(activation == "gelu" ? eager::gelu(wide) : eager::relu(wide)));
}

/// The output of an attention of x over `memory`, without the weights.
Tensor attend(MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
              const Tensor& mask, const Tensor& key_padding_mask) {
  return std::get<0>(
      attention(x, memory, memory,
                {.key_padding_mask = key_padding_mask, .need_weights = false, .attn_mask = mask}));
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 TransformerLayerOptions o, Location here)
    : self_attn(
          attention(d_model, nhead, checked("TransformerEncoderLayer", d_model, o, here), here)),
      linear1(widening(d_model, o)),
      linear2(narrowing(d_model, o)),
      norm1(layer_norm(d_model, o)),
      norm2(layer_norm(d_model, o)),
      dropout(o.dropout, here),
      dropout1(o.dropout, here),
      dropout2(o.dropout, here),
      options_(o) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const EncoderMasks& masks,
                                        Location here) {
  const PlaceScope scope(here);
  const bool first = options_.norm_first;
  const Tensor x = residual(src, norm1, first, [&](const Tensor& t) {
    return dropout1(attend(self_attn, t, t, masks.src_mask, masks.src_key_padding_mask));
  });
  return residual(x, norm2, first, [&](const Tensor& t) {
    return dropout2(feed_forward(*this, options_.activation, t));
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                                                 TransformerLayerOptions o, Location here)
    : self_attn(
          attention(d_model, nhead, checked("TransformerDecoderLayer", d_model, o, here), here)),
      multihead_attn(attention(d_model, nhead, o, here)),
      linear1(widening(d_model, o)),
      linear2(narrowing(d_model, o)),
      norm1(layer_norm(d_model, o)),
      norm2(layer_norm(d_model, o)),
      norm3(layer_norm(d_model, o)),
      dropout(o.dropout, here),
      dropout1(o.dropout, here),
      dropout2(o.dropout, here),
      dropout3(o.dropout, here),
      options_(o) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const DecoderMasks& masks, Location here) {
  const PlaceScope scope(here);
  const bool first = options_.norm_first;
  Tensor x = residual(tgt, norm1, first, [&](const Tensor& t) {
    return dropout1(attend(self_attn, t, t, masks.tgt_mask, masks.tgt_key_padding_mask));
  });
  x = residual(x, norm2, first, [&](const Tensor& t) {
    return dropout2(
        attend(multihead_attn, t, memory, masks.memory_mask, masks.memory_key_padding_mask));
  });
  return residual(x, norm3, first, [&](const Tensor& t) {
    return dropout3(feed_forward(*this, options_.activation, t));
  });
}

TransformerEncoder::TransformerEncoder(int64_t d_model, int64_t nhead, int64_t num_layers,
                                       TransformerLayerOptions options, bool final_norm,
                                       Location here) {
  internal::check_sizes("TransformerEncoder", {{"num_layers", num_layers}}, here);
  for (int64_t i = 0; i < num_layers; ++i) layers.emplace_back(d_model, nhead, options, here);
  if (final_norm) norm = std::make_shared<LayerNorm>(layer_norm(d_model, options));
  set_names();
}
Tensor TransformerEncoder::forward(const Tensor& src, const EncoderMasks& masks, Location here) {
  Tensor x = src;
  for (TransformerEncoderLayer& layer : layers) x = layer(x, masks, here);
  return norm ? (*norm)(x, here) : x;
}

TransformerDecoder::TransformerDecoder(int64_t d_model, int64_t nhead, int64_t num_layers,
                                       TransformerLayerOptions options, bool final_norm,
                                       Location here) {
  internal::check_sizes("TransformerDecoder", {{"num_layers", num_layers}}, here);
  for (int64_t i = 0; i < num_layers; ++i) layers.emplace_back(d_model, nhead, options, here);
  if (final_norm) norm = std::make_shared<LayerNorm>(layer_norm(d_model, options));
  set_names();
}
Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const DecoderMasks& masks, Location here) {
  Tensor x = tgt;
  for (TransformerDecoderLayer& layer : layers) x = layer(x, memory, masks, here);
  return norm ? (*norm)(x, here) : x;
}

Transformer::Transformer(TransformerOptions o, Location here)
    : encoder(o.d_model, o.nhead, o.num_encoder_layers, o.layer, true, here),
      decoder(o.d_model, o.nhead, o.num_decoder_layers, o.layer, true, here) {
  set_names();
  for (const Tensor& parameter : parameters())
    if (parameter.rank() > 1) init::xavier_uniform_(parameter);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks,
                            const DecoderMasks& decoder_masks, Location here) {
  return decoder(tgt, encoder(src, encoder_masks, here), decoder_masks, here);
}

Tensor Transformer::causal_mask(int64_t size, Location here) {
  return eager::triu(eager::full({Dim(size), Dim(size)}, Scalar(-INFINITY), DType::f32, here),
                     Dim(1), here);
}

}  // namespace taper::nn
