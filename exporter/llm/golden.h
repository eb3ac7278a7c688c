// Compares a language model with recorded results of another implementation: logits, hidden states,
// greedy continuations, decoding with a cache, padded batches.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/encoder.h"
#include "taper/exporter/llm/seq2seq.h"

namespace taper::llm {

/// A model that runs one row of tokens at a time, in eager or as a program.
class Runner {
 public:
  virtual ~Runner() = default;
  /// The logits (count, vocabulary) of `ids`, which stand at `start`, or of the last of them.
  virtual Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) = 0;
  /// See Decoder::Result. None if the model does not tell them.
  virtual std::vector<Tensor> hidden(const std::vector<int64_t>&) { return {}; }
};

class EagerRunner : public Runner {
 public:
  explicit EagerRunner(Decoder& decoder) : decoder_(decoder) {}
  Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) override;
  std::vector<Tensor> hidden(const std::vector<int64_t>& ids) override;

 private:
  Decoder& decoder_;
};

/// (1, n)
Tensor row_of(const std::vector<int64_t>& ids);

/// One result of a comparison.
struct Compared {
  std::string name;
  double difference = 0,
         tolerance = 0;  ///< the largest absolute difference; for tokens their count
  bool passed() const { return difference <= tolerance; }
};

/// Names in a file of golden results:
///   input_ids, logits · long.input_ids, long.logits   one call with all tokens
///   text_only.input_ids, text_only.logits             the same of models with images
///   hidden.embed, hidden.layer_N, hidden.final        what the layers give in it
///   greedy.prompt, greedy.tokens                      the most likely continuation
///   decode.logits                                     the last position, with a cache
///   batch.input_ids, .attention_mask, .logits         rows that are padded; each is run alone
/// A name may stand behind the type of a GGUF file's weights: `prefix` "Q4_0." reads Q4_0.logits
/// and Q4_0.greedy, which continues the first 16 of input_ids.
/// Tolerances: 2e-4 for logits, 1e-4 of the largest value for hidden states, all tokens equal.
/// Throws ExportError if there is nothing to compare.
std::vector<Compared> compare_with_golden(Runner& runner, const io::SafeTensors& golden,
                                          const std::string& prefix = "");

/// What a model with LongRoPE can give: the results of long texts if it turns with the long factors
/// (Rotary::is_long), else the others. All of them for other models.
io::SafeTensors results_of_context(const Config& config, const io::SafeTensors& golden);

/// The same for an encoder:
///   input_ids, token_type_ids, last_hidden_state, pooler_output, hidden.embed, hidden.layer_N
///   batch.input_ids, .attention_mask, .last_hidden_state, .mean_pooled_normalized
/// Hidden states within 1e-4 of their largest value, embeddings within 1e-5 of theirs.
std::vector<Compared> compare_with_golden(Encoder& encoder, const io::SafeTensors& golden);

/// A model that reads a source and writes a text.
class Seq2SeqRunner : public Runner {
 public:
  struct Read {
    Tensor last;                 ///< (1, m, hidden)
    std::vector<Tensor> hidden;  ///< see SourceEncoder; none if the model does not tell them
  };
  /// Reads a source of one row: ids (1, m) or features (1, features, frames).
  virtual Read encode(const Tensor& source) = 0;
};

class EagerSeq2SeqRunner : public Seq2SeqRunner {
 public:
  explicit EagerSeq2SeqRunner(Seq2Seq& model) : model_(model) {}
  Read encode(const Tensor& source) override;
  Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) override;
  std::vector<Tensor> hidden(const std::vector<int64_t>& ids) override;

 private:
  Seq2Seq& model_;
};

/// The same for a model that reads a source, input_ids or input_features:
///   encoder_last_hidden_state, encoder_hidden.N    N = 0: what goes into the first layer
///   decoder_input_ids, logits, decoder_hidden.N    the last one is behind the final norm
///   greedy.prompt, greedy.tokens, decode.logits
///   batch.input_ids, .attention_mask, .decoder_input_ids, .logits
std::vector<Compared> compare_with_golden(Seq2SeqRunner& runner, const io::SafeTensors& golden);

/// The tokens of greedy decoding after a prompt.
std::vector<int64_t> greedy(Runner& runner, const std::vector<int64_t>& prompt, size_t count);

}  // namespace taper::llm
