// A decoder-only language model: an embedding, layers of one family, a norm and a head. It takes
// any number of new tokens at a position and keeps what later tokens need in caches.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/attention.h"
#include "taper/exporter/llm/relative_bias.h"

namespace taper::llm {

class NewAdapter;

/// One layer of a family.
class DecoderLayer : public nn::Module {
 public:
  /// x (batch, n, hidden) -> (batch, n, hidden)
  virtual Tensor forward(const Tensor& x, const Step& step) = 0;
  Tensor operator()(const Tensor& x, const Step& step) {
    eager::ModuleScope scope(name());
    return forward(x, step);
  }
  /// Computes what cross attention needs of a source: states (batch, m, hidden) of an encoder.
  virtual void read_source(const Tensor&) {}
};

struct Family;

struct DecoderOptions {
  bool all_logits = false;   ///< of every new token, else only of the last one
  bool keep_hidden = false;  ///< fills `hidden`
  Tensor source_last;        ///< see Step; only for models that read a source
  /// i64 (batch): the row of the caches, out of `config.batch`, that each row of `ids` uses. All
  /// differ. Undefined: row b uses row b, and there are as many.
  Tensor batch;
  /// i64 (batch): the adapter of each row, counted from 1 in `config.adapters`; 0: none. Undefined:
  /// none for all.
  Tensor adapters;
  /// (m, hidden): they take the places of the image tokens of this call, row by row. A call with
  /// more of these tokens is an error.
  Tensor features;
};

class Decoder : public nn::Module {
 public:
  /// Of the family that the configuration names.
  Decoder(const Config& config, const Weights& weights);
  Decoder(const Config& config, const Weights& weights, const Family& family);

  Config config;
  std::unique_ptr<Embedding> embedding, learned_positions;
  std::unique_ptr<Norm> embedding_norm;
  std::unique_ptr<RelativeBias> relative_bias;
  std::vector<std::unique_ptr<DecoderLayer>> layers;
  std::unique_ptr<Norm> norm;
  std::unique_ptr<Linear> head;
  /// i64 (1): the length of windows that jump; or undefined. A constant, so that the identity of a
  /// program knows it (runtime/extension/llm/model_identity.h).
  Tensor jumping_window_length;
  TAPER_MODULE(embedding, learned_positions, embedding_norm, relative_bias, layers, norm, head,
               jumping_window_length)

  struct Result {
    Tensor logits;               ///< (batch, 1 or n, vocabulary)
    std::vector<Tensor> hidden;  ///< what goes into layer 0, what each layer gives, the final norm
  };
  /// `ids`: i64 (batch, n). `start`: i64 (batch), the position of each row's first new token. Rows
  /// may be padded behind their last token: nothing before it sees the padding. LFM2 and Mamba
  /// remember more than a cache, and take no padding. A row begins a new text at position 0.
  Result forward(const Tensor& ids, const Tensor& start, const DecoderOptions& options = {});

  /// For training: the last states (batch, n, hidden) of whole texts, `ids` i64 (batch, n). They
  /// are those of `forward`, but for rounding, and all has derivatives. No cache is read or
  /// written. With `checkpoints` backward computes each layer once more, and keeps the values of
  /// one layer at a time.
  Tensor states_of_texts(const Tensor& ids, bool checkpoints = true);
  /// states (…, hidden) -> (…, vocabulary)
  Tensor logits(const Tensor& states);

  /// Where products look which adapter each row uses; nullptr: there are none among which to
  /// choose.
  std::shared_ptr<Tensor> chosen_adapters;

 private:
  Step step(const Tensor& ids, const Tensor& start, bool is_whole) const;
  Tensor score_bias(const Tensor& positions, int64_t keys) const;
  Tensor place_in_table(const Tensor& positions) const;
  Tensor jumping_window(const Tensor& positions, int64_t keys) const;
  Tensor embed(const Tensor& ids, const Step& step, const Tensor& features);

  RotaryTable rotary_, local_rotary_;
};

/// An eager model with all its weights, out of files.
struct Model {
  Config config;
  std::unique_ptr<Decoder> decoder;
  std::string stored_type;  ///< of the embedding in a GGUF file: "Q4_0"; empty for a folder
  std::vector<io::SourceFile> files;  ///< where its weights lie
};

struct LoadOptions {
  int64_t capacity = 0;       ///< positions of the caches; 0: those that the model was trained for
  int64_t most_capacity = 0;  ///< if not 0: makes smaller caches where the model has more positions
  int64_t batch = 1;
  std::string config = "config.json";   ///< the name of the configuration in a folder
  std::string lora;                     ///< an adapter (adapter.h); "": none
  CacheType cache = CacheType::f32;     ///< of models whose positions are no bias of the scores
  std::vector<NamedAdapter> adapters;   ///< among which texts choose, in place of `lora`
  std::shared_ptr<NewAdapter> trained;  ///< a new adapter (new_adapter.h), in place of `lora`
  /// Changes how matrices are stored, as they are read: `quantize::in_blocks`. None: they stay as
  /// the file has them.
  std::function<Tensor(const Tensor&)> stored;
};

/// Sets what the caller asks for. Throws ExportError.
void apply(const LoadOptions& options, Config& config);

/// For models that do not let texts choose an adapter.
void refuse_named_adapters(const LoadOptions& options);

/// Loads a Hugging Face folder or a .gguf file. Weights stay in the mapped files where they can.
/// Throws ExportError, which names the file.
Model load(const std::string& path, const LoadOptions& options = {});
/// Whether `load` may be asked for this path: a folder with a config.json, or a .gguf file.
bool is_language_model(const std::string& path);

}  // namespace taper::llm
