// Models that read a source and write a text: T5, Whisper. An encoder reads the whole source. A
// decoder attends to it, and takes any number of new tokens at a position.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/full_attention.h"

namespace taper::llm {

struct Seq2SeqConfig {
  Config encoder, decoder;
  int64_t features = 0;  ///< of a frame of sound; 0: the source is a text

  /// A position of the encoder stands for two frames.
  int64_t frames() const { return 2 * encoder.context; }
};

/// What reads the source.
class SourceEncoder : public nn::Module {
 public:
  struct Result {
    Tensor last;                 ///< (batch, m, hidden), behind the final norm
    std::vector<Tensor> hidden;  ///< what goes into each layer; then `last`
  };
  /// `source`: ids i64 (batch, m), or features f32 (batch, features, frames). `lengths`: i64
  /// (batch), the positions of each row that are no padding.
  virtual Result forward(const Tensor& source, const Tensor& lengths) = 0;

 protected:
  static Result run_layers(const FullLayers& layers, Norm& norm, const Tensor& input,
                           const Tensor& mask = {});
};

class Seq2Seq : public nn::Module {
 public:
  Seq2Seq(const Seq2SeqConfig& config, const Weights& weights);

  Seq2SeqConfig config;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<SourceEncoder> encoder;
  Tensor source_length;  ///< i64 (batch), written by `encode`
  TAPER_MODULE(decoder, encoder, source_length)

  /// Reads a source. Its keys and values stay until the next one. A row that is shorter is padded
  /// behind its end. Undefined lengths: no row is.
  SourceEncoder::Result encode(const Tensor& source, const Tensor& lengths = {});
  /// See Decoder::forward. There must be a source.
  Decoder::Result forward(const Tensor& ids, const Tensor& start, DecoderOptions options = {});
};

/// `weights` are those of the whole model, `shared` the embedding of the decoder.
std::unique_ptr<SourceEncoder> make_t5_encoder(const Config& config, const Weights& weights,
                                               const Embedding& shared);

/// `features`: of a frame.
std::unique_ptr<SourceEncoder> make_whisper_encoder(const Config& config, int64_t features,
                                                    const Weights& weights);

/// Whether a folder's config.json names such a model.
bool is_seq2seq(const std::string& path);
/// Loads a Hugging Face folder. `capacity` is that of the text, and of a source of text. `cache` is
/// what the caches of the source hold, and those of the text; T5's text keeps f32. Throws
/// ExportError, which names the folder.
std::unique_ptr<Seq2Seq> load_seq2seq(const std::string& path, const LoadOptions& options = {});

}  // namespace taper::llm
