#include "taper/exporter/llm/seq2seq.h"

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {

using namespace eager;

namespace {

const Family* family_of(const std::string& name) {
  for (const Family* family : {&t5_decoder, &whisper_decoder})
    if (family->names[0] == name) return family;
  return nullptr;
}

/// A bias for each distance needs the positions of all keys, and with them self attention reads
/// f32. Cross attention has no positions.
void set_caches(Seq2SeqConfig& c, LoadOptions options) {
  c.decoder.source_cache = options.cache;
  if (c.decoder.distance_buckets > 0) options.cache = CacheType::f32;
  apply(options, c.decoder);
  options.cache = CacheType::f32;  // an encoder has none
  apply(options, c.encoder);
  if (c.features > 0) c.encoder.capacity = c.encoder.context;  // a sound has one length
  c.decoder.source_capacity = c.encoder.capacity;
}

}  // namespace

SourceEncoder::Result SourceEncoder::run_layers(const FullLayers& layers, Norm& norm,
                                                const Tensor& input, const Tensor& mask) {
  Result result;
  Tensor x = input;
  for (const auto& layer : layers) {
    result.hidden.push_back(x);
    x = (*layer)(x, mask);
  }
  result.last = norm(x);
  result.hidden.push_back(result.last);
  return result;
}

Seq2Seq::Seq2Seq(const Seq2SeqConfig& c, const Weights& weights)
    : config(c),
      source_length(Tensor::from(std::vector<int64_t>(c.decoder.batch), {c.decoder.batch})) {
  decoder = std::make_unique<Decoder>(c.decoder, weights["decoder"], *family_of(c.decoder.family));
  encoder = c.features > 0 ? make_whisper_encoder(c.encoder, c.features, weights["encoder"])
                           : make_t5_encoder(c.encoder, weights, *decoder->embedding);
  set_names();
}

SourceEncoder::Result Seq2Seq::encode(const Tensor& source, const Tensor& lengths) {
  const Dim rows = source.size(0);
  const Dim positions = config.features > 0 ? Dim(config.encoder.capacity) : source.size(1);
  const Tensor ends = lengths.defined() ? lengths : sum(ones({rows, positions}, DType::i64), {1});
  ModuleScope scope(encoder->name());
  SourceEncoder::Result result = encoder->forward(source, ends);
  for (const auto& layer : decoder->layers) layer->read_source(result.last);
  source_length.copy_(ends);
  return result;
}

Decoder::Result Seq2Seq::forward(const Tensor& ids, const Tensor& start, DecoderOptions options) {
  options.source_last = source_length - 1;
  return (*decoder)(ids, start, options);
}

bool is_seq2seq(const std::string& path) {
  return family_of(huggingface::model_type(path)) != nullptr;
}

std::unique_ptr<Seq2Seq> load_seq2seq(const std::string& path, const LoadOptions& options) {
  const huggingface::Folder folder(path, options.config);
  return naming(path, [&] {
    Seq2SeqConfig config = read_seq2seq_config(folder.config());
    set_caches(config, options);
    refuse_named_adapters(options);
    Checkpoint checkpoint(folder, options.lora);
    const Weights weights(checkpoint);
    // T5's configuration says that the head is tied, even where it is not
    if (config.features == 0 && weights["decoder"]["head"].has()) config.decoder.tied = false;
    auto model = std::make_unique<Seq2Seq>(config, weights);
    checkpoint.require_all_read();
    return model;
  });
}

}  // namespace taper::llm
