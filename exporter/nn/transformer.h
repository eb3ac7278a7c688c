// Layers of "Attention is all you need" (Vaswani et al., 2017), with PyTorch's parameter names.
#pragma once
#include <memory>
#include <string>

#include "taper/exporter/nn/attention.h"
#include "taper/exporter/nn/dropout.h"
#include "taper/exporter/nn/norm.h"

namespace taper::nn {

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  ///< or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  ///< (batch, length, d_model), not (length, batch, d_model)
  bool norm_first = false;   ///< each part reads a normalised input, instead of giving one
  bool bias = true;          ///< of all projections and norms
};

/// Masks as nn::AttentionArguments takes them.
struct EncoderMasks {
  Tensor src_mask = {}, src_key_padding_mask = {};
};
struct DecoderMasks {
  Tensor tgt_mask = {}, memory_mask = {}, tgt_key_padding_mask = {}, memory_key_padding_mask = {};
};

/// Self-attention, then linear2(activation(linear1(x))). Each result is added to its input and
/// normalised.
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, TransformerLayerOptions options = {},
                          Location here = Location::current());

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout, dropout1, dropout2;
  TAPER_MODULE(self_attn, linear1, dropout, linear2, norm1, norm2, dropout1, dropout2)
  Tensor forward(const Tensor& src, const EncoderMasks& masks = {},
                 Location here = Location::current());

 private:
  TransformerLayerOptions options_;
};

/// Self-attention, attention over an encoder's output `memory`, then the two linear layers.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, TransformerLayerOptions options = {},
                          Location here = Location::current());

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout, dropout1, dropout2, dropout3;
  TAPER_MODULE(self_attn, multihead_attn, linear1, dropout, linear2, norm1, norm2, norm3, dropout1,
               dropout2, dropout3)
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {},
                 Location here = Location::current());

 private:
  TransformerLayerOptions options_;
};

/// `num_layers` encoder layers, followed by a LayerNorm if `final_norm`.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(int64_t d_model, int64_t nhead, int64_t num_layers,
                     TransformerLayerOptions options = {}, bool final_norm = false,
                     Location here = Location::current());

  std::vector<TransformerEncoderLayer> layers;
  std::shared_ptr<LayerNorm> norm;  ///< may be null
  TAPER_MODULE(layers, norm)
  Tensor forward(const Tensor& src, const EncoderMasks& masks = {},
                 Location here = Location::current());
};

class TransformerDecoder : public Module {
 public:
  TransformerDecoder(int64_t d_model, int64_t nhead, int64_t num_layers,
                     TransformerLayerOptions options = {}, bool final_norm = false,
                     Location here = Location::current());

  std::vector<TransformerDecoderLayer> layers;
  std::shared_ptr<LayerNorm> norm;  ///< may be null
  TAPER_MODULE(layers, norm)
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {},
                 Location here = Location::current());
};

struct TransformerOptions {
  int64_t d_model = 512, nhead = 8, num_encoder_layers = 6, num_decoder_layers = 6;
  TransformerLayerOptions layer = {};
};

/// Encoder and decoder, each with a final norm. Initial weights: xavier_uniform.
class Transformer : public Module {
 public:
  explicit Transformer(TransformerOptions options = {}, Location here = Location::current());

  TransformerEncoder encoder;
  TransformerDecoder decoder;
  TAPER_MODULE(encoder, decoder)
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks = {},
                 const DecoderMasks& decoder_masks = {}, Location here = Location::current());

  /// (size, size): -infinity above the diagonal, else 0, so that a query sees no later key.
  static Tensor causal_mask(int64_t size, Location here = Location::current());
};

}  // namespace taper::nn
