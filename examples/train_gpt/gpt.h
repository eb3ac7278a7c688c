// A small GPT over characters: the architecture of GPT-2 (Radford et al. 2019).
#pragma once
#include <vector>

#include "taper/exporter/exporter.h"

namespace gpt {

using namespace taper;

constexpr int64_t context = 64, width = 128, heads = 4, layers = 4;

/// Causal self-attention. (batch, time, width) -> the same
struct Attention : nn::Module {
  nn::Linear qkv{width, 3 * width}, proj{width, width};
  TAPER_MODULE(qkv, proj)

  Tensor forward(Tensor x) {
    const Dim batch = x.size(0), time = x.size(1);
    const auto head = [&](int64_t part, const Tensor& all) {  // (batch, heads, time, width / heads)
      return all.slice(2, part * width, (part + 1) * width)
          .reshape({batch, time, heads, width / heads})
          .transpose(1, 2);
    };
    const Tensor all = qkv(x);
    const Tensor y = scaled_dot_product_attention(head(0, all), head(1, all), head(2, all), {}, 0.0,
                                                  /*is_causal=*/true);
    return proj(y.transpose(1, 2).reshape({batch, time, width}));
  }
};

struct Block : nn::Module {
  nn::LayerNorm ln1{width}, ln2{width};
  Attention attention;
  nn::Linear up{width, 4 * width}, down{4 * width, width};
  TAPER_MODULE(ln1, attention, ln2, up, down)

  Tensor forward(Tensor x) {
    x = x + attention(ln1(x));
    return x + down(gelu(up(ln2(x))));
  }
};

/// (batch, context) tokens -> (batch, context, vocabulary) logits
struct Gpt : nn::Module {
  nn::Embedding tokens, positions{context, width};
  std::vector<Block> blocks = std::vector<Block>(layers);
  nn::LayerNorm ln{width};
  nn::Linear head;
  TAPER_MODULE(tokens, positions, blocks, ln, head)

  explicit Gpt(int64_t vocabulary) : tokens(vocabulary, width), head(width, vocabulary) {
    for (int64_t i = 0; i < layers; ++i) blocks[static_cast<size_t>(i)] = Block();
    set_names();
  }
  Tensor forward(Tensor ids) {
    Tensor x = tokens(ids) + positions(arange(context));
    for (Block& block : blocks) x = block(x);
    return head(ln(x));
  }
};

}  // namespace gpt
