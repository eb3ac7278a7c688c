// Language models as programs. The method `forward` takes any number of new tokens at a position:
//
//   ids i64 (batch, n), start i64 (batch) -> logits f32 (batch, 1, vocabulary)
//
// n is at most `chunk`; a longer text goes in by pieces. Caches are states of the session. `start`
// is a value: a new token prepares nothing again, and a rewind is a smaller start.
//
// With ProgramOptions::by_row the caches hold several texts, and a call says which of them it goes
// on with. `forward` takes one text, `decode` a token of each of several ones:
//
//   forward  ids i64 (1, n), start i64 (1), rows i64 (1) -> logits f32 (1, 1, vocabulary)
//   decode   ids i64 (r, 1), start i64 (r), rows i64 (r) -> logits f32 (r, 1, vocabulary)
#pragma once
#include <filesystem>
#include <memory>

#include "taper/exporter/exporter.h"
#include "taper/exporter/llm/encoder.h"
#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/image_runner.h"
#include "taper/exporter/llm/vision_language_runner.h"

namespace taper::llm {

struct ProgramOptions {
  int64_t chunk = 512;      ///< the most tokens of a call; at most the capacity of the caches
  bool all_logits = false;  ///< adds the method `forward_all`, which gives those of every token
  int64_t all_logits_chunk = 0;  ///< the most tokens of a call of `forward_all`; 0: chunk
  /// Adds the method `states` to a decoder's: the last state of every token, which embeddings are
  /// made of.
  bool states = false;
  /// The methods of a decoder take the rows of the caches that they use, out of `config.batch`; and
  /// there is the method `decode`.
  bool by_row = false;
};

/// Traces the methods.
void add_methods(Exporter& exporter, Decoder& decoder, const ProgramOptions& options = {});

/// Traces the methods of an encoder, for up to `batch` texts of up to its longest length:
///   forward  ids, mask, types i64 (batch, n) -> last f32 (batch, n, hidden)
///   embed    ids, mask i64 (batch, n) -> embedding f32 (batch, hidden), of length 1
void add_methods(Exporter& exporter, Encoder& encoder, int64_t batch = 64);

/// Traces the methods of a model that reads a source. `encode` computes the keys and values of
/// cross attention, which are states; `forward` (and `forward_all`) is as that of a decoder.
///   encode   ids i64 (batch, m), lengths i64 (batch) -> last f32 (batch, m, hidden)
///            features f32 (batch, features, frames) -> last f32 (batch, m, hidden), for sounds
void add_methods(Exporter& exporter, Seq2Seq& model, const ProgramOptions& options = {});

/// Traces the methods of a model of images, for up to `batch` images or texts:
///   embed_image  pixels f32 (batch, channels, size, size)
///                -> embedding f32 (batch, features), last f32 (batch, m, hidden)
///   embed_text   ids i64 (batch, n) -> embedding, last; only with texts, as is
///   match        images f32 (a, features), texts f32 (b, features) -> logits f32 (a, b)
void add_methods(Exporter& exporter, ImageModel& model, int64_t batch = 64);

/// Traces the methods of a model that sees images and writes a text. `forward` (and `forward_all`)
/// is as that of a decoder.
///   embed_image  pixels f32 (images, channels, size, size) -> features f32 (m, hidden)
///   forward_features (and forward_features_all)
///                ids i64 (batch, n), start i64 (batch), features f32 (m, hidden) -> logits
///                features take the places of the image tokens among ids
void add_methods(Exporter& exporter, VisionLanguage& model, const ProgramOptions& options = {});

/// A program that `add_methods` made, in memory.
class MemoryProgram {
 public:
  /// Throws ExportError with the runtime's message, as every call does.
  explicit MemoryProgram(std::vector<std::byte> program, const Threads* threads = nullptr);
  ~MemoryProgram();
  std::vector<Tensor> execute(const std::string& method, const std::vector<Tensor>& inputs);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Runs the program of a decoder.
class ProgramRunner : public Runner {
 public:
  explicit ProgramRunner(std::vector<std::byte> program, const Threads* threads = nullptr)
      : program_(std::move(program), threads) {}
  Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) override;

 private:
  MemoryProgram program_;
};

/// Runs the program of a model that reads a source.
class ProgramSeq2SeqRunner : public Seq2SeqRunner {
 public:
  explicit ProgramSeq2SeqRunner(std::vector<std::byte> program, const Threads* threads = nullptr)
      : program_(std::move(program), threads) {}
  Read encode(const Tensor& source) override;
  Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) override;

 private:
  MemoryProgram program_;
};

/// Runs the program of a model of images.
class ProgramImageRunner : public ImageRunner {
 public:
  explicit ProgramImageRunner(std::vector<std::byte> program, const Threads* threads = nullptr)
      : program_(std::move(program), threads) {}
  TowerResult embed_image(const Tensor& pixels) override;
  TowerResult embed_text(const Tensor& ids) override;
  Tensor match(const Tensor& images, const Tensor& texts) override;

 private:
  MemoryProgram program_;
};

/// Runs the program of a model that sees images and writes a text.
class ProgramVisionRunner : public VisionRunner {
 public:
  ProgramVisionRunner(std::vector<std::byte> program, int64_t image_token,
                      const Threads* threads = nullptr)
      : VisionRunner(image_token), program_(std::move(program), threads) {}

 protected:
  Tensor embed_image(const Tensor& pixels) override;
  Tensor logits_with(const std::vector<int64_t>& ids, int64_t start, bool all,
                     const Tensor& features) override;

 private:
  MemoryProgram program_;
};

}  // namespace taper::llm
