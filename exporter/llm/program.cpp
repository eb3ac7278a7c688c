#include "taper/exporter/llm/program.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

namespace {

constexpr int64_t most_images = 64;  // of a call

/// The new tokens of a call.
Dim tokens_of(const Config& config, int64_t longest) {
  const int64_t chunk = std::min(longest, config.capacity);
  if (chunk < 1) throw ExportError("a chunk must have at least one token");
  return chunk == 1 ? Dim(1) : Dim::symbol("n", 1, chunk);
}

/// Calls a decoder, or a model that has one.
using Run = std::function<Tensor(const Tensor& ids, const Tensor& start, const DecoderOptions&)>;

/// A method that takes ids (batch, n). With `by_row` it also takes their rows of the caches; and
/// their adapters, if there are some to choose among.
void add_method(Exporter& exporter, const char* name, const Config& config, const Dim& batch,
                const Dim& n, bool by_row, const DecoderOptions& of_call, const char* result,
                const Run& run) {
  std::vector<InputSpec> inputs = {input("ids", {batch, n}, DType::i64),
                                   input("start", {batch}, DType::i64)};
  if (by_row) inputs.push_back(input("rows", {batch}, DType::i64));
  const bool by_adapter = !config.adapters.empty();
  if (by_adapter) inputs.push_back(input("adapters", {batch}, DType::i64));
  exporter.method(name,
                  [=](const std::vector<Tensor>& given) {
                    const eager::NoGrad guard;
                    DecoderOptions options = of_call;
                    if (by_row) options.batch = given[2];
                    if (by_adapter) options.adapters = given.back();
                    return run(given[0], given[1], options);
                  },
                  inputs, {result});
}

void add_logits_methods(Exporter& exporter, const Config& config, const ProgramOptions& options,
                        const Run& run) {
  const Dim batch(options.by_row ? 1 : config.batch);
  const auto add = [&](const char* name, const Dim& rows, const Dim& n, bool all) {
    DecoderOptions of_call;
    of_call.all_logits = all;
    add_method(exporter, name, config, rows, n, options.by_row, of_call, "logits", run);
  };
  add("forward", batch, tokens_of(config, options.chunk), false);
  if (options.by_row)
    add("decode", config.batch == 1 ? Dim(1) : Dim::symbol("batch", 1, config.batch), 1, false);
  const int64_t chunk_of_all = options.all_logits_chunk;
  if (options.all_logits)
    add("forward_all", batch, tokens_of(config, chunk_of_all > 0 ? chunk_of_all : options.chunk),
        true);
}

void refuse_rows(const ProgramOptions& options) {
  if (options.by_row)
    throw ExportError("a model that reads a source or images has caches for one text");
}

}  // namespace

void add_methods(Exporter& exporter, Decoder& decoder, const ProgramOptions& options) {
  const Config& config = decoder.config;
  add_logits_methods(exporter, config, options,
                     [&](const Tensor& ids, const Tensor& start, const DecoderOptions& of_call) {
                       return decoder(ids, start, of_call).logits;
                     });
  if (!options.states) return;
  DecoderOptions of_call;
  of_call.all_logits = of_call.keep_hidden = true;
  add_method(exporter, "states", config, options.by_row ? 1 : config.batch,
             tokens_of(config, options.chunk), options.by_row, of_call, "states",
             [&](const Tensor& ids, const Tensor& start, const DecoderOptions& with) {
               return decoder(ids, start, with).hidden.back();
             });
}

void add_methods(Exporter& exporter, Seq2Seq& model, const ProgramOptions& options) {
  refuse_rows(options);
  const Config& source = model.config.encoder;
  const Dim batch(source.batch);
  if (model.config.features > 0)
    exporter.method("encode", [&](const Tensor& features) { return model.encode(features).last; },
                    {input("features", {batch, model.config.features, model.config.frames()})},
                    {"last"});
  else
    exporter.method(
        "encode",
        [&](const Tensor& ids, const Tensor& lengths) { return model.encode(ids, lengths).last; },
        {input("ids", {batch, Dim::symbol("m", 1, source.capacity)}, DType::i64),
         input("lengths", {batch}, DType::i64)},
        {"last"});
  add_logits_methods(exporter, model.config.decoder, options,
                     [&](const Tensor& ids, const Tensor& start, const DecoderOptions& of_call) {
                       return model(ids, start, of_call).logits;
                     });
}

void add_methods(Exporter& exporter, VisionLanguage& model, const ProgramOptions& options) {
  refuse_rows(options);
  Decoder& decoder = *model.decoder;
  add_methods(exporter, decoder, options);
  const ImageConfig& image = model.config.image;
  exporter.method("embed_image", [&](const Tensor& pixels) { return model.embed_image(pixels); },
                  {input("pixels", {Dim::symbol("images", 1, most_images), image.channels,
                                    image.image, image.image})},
                  {"features"});
  const Dim n = tokens_of(decoder.config, options.chunk), batch(decoder.config.batch),
            m = Dim::symbol("m", 1, decoder.config.capacity * decoder.config.batch);
  const auto add = [&](const char* name, bool all) {
    exporter.method(name,
                    [&decoder, all](const Tensor& ids, const Tensor& start, const Tensor& given) {
                      const eager::NoGrad guard;
                      DecoderOptions of_call;
                      of_call.all_logits = all, of_call.features = given;
                      return decoder(ids, start, of_call).logits;
                    },
                    {input("ids", {batch, n}, DType::i64), input("start", {batch}, DType::i64),
                     input("features", {m, decoder.config.hidden})},
                    {"logits"});
  };
  add("forward_features", false);
  if (options.all_logits) add("forward_features_all", true);
}

void add_methods(Exporter& exporter, Encoder& encoder, int64_t batch) {
  const Dim rows = Dim::symbol("batch", 1, batch), n = Dim::symbol("n", 1, encoder.config.context);
  const auto ids = [&](const char* name) { return input(name, {rows, n}, DType::i64); };
  exporter.method("forward",
                  [&encoder](const Tensor& ids, const Tensor& mask, const Tensor& types) {
                    return encoder(ids, mask, types).last;
                  },
                  {ids("ids"), ids("mask"), ids("types")}, {"last"});
  exporter.method("embed",
                  [&encoder](const Tensor& ids, const Tensor& mask) {
                    return mean_embedding(encoder(ids, mask).last, mask);
                  },
                  {ids("ids"), ids("mask")}, {"embedding"});
}

struct MemoryProgram::Parts {
  std::vector<std::byte> bytes;  // at a multiple of 16, as operator new gives them
  std::optional<Module> module;
};

MemoryProgram::MemoryProgram(std::vector<std::byte> program, const Threads* threads)
    : parts_(std::make_unique<Parts>()) {
  parts_->bytes = std::move(program);
  std::string why;
  ModuleOptions options;
  options.threads = threads, options.message = &why;
  Result<Module> module = Module::load(
      Span<const std::byte>(parts_->bytes.data(), static_cast<index_t>(parts_->bytes.size())),
      options);
  if (!module.ok()) throw ExportError("load: " + why);
  parts_->module.emplace(std::move(*module));
}
MemoryProgram::~MemoryProgram() = default;

std::vector<Tensor> MemoryProgram::execute(const std::string& method,
                                           const std::vector<Tensor>& inputs) {
  std::vector<Input> given;
  for (const Tensor& t : inputs) given.emplace_back(t.ref());
  const Result<std::vector<OwnedTensor>> results = parts_->module->execute(method, given);
  if (!results.ok()) throw ExportError("execute: " + parts_->module->message());
  std::vector<Tensor> tensors;
  for (const OwnedTensor& t : results.value())
    tensors.push_back(Tensor::from_bytes(t.bytes.data(), t.bytes.size(), t.dtype,
                                         {t.sizes.begin(), t.sizes.end()}));
  return tensors;
}

namespace {

Tensor logits_of(MemoryProgram& program, const std::vector<int64_t>& ids, int64_t start, bool all) {
  return program.execute(all ? "forward_all" : "forward", {row_of(ids), row_of({start})[0]})[0][0];
}

}  // namespace

Tensor ProgramRunner::logits(const std::vector<int64_t>& ids, int64_t start, bool all) {
  return logits_of(program_, ids, start, all);
}

Tensor ProgramSeq2SeqRunner::logits(const std::vector<int64_t>& ids, int64_t start, bool all) {
  return logits_of(program_, ids, start, all);
}

Seq2SeqRunner::Read ProgramSeq2SeqRunner::encode(const Tensor& source) {
  std::vector<Tensor> inputs = {source};
  if (source.dtype() == DType::i64) inputs.push_back(row_of({source.size(1).value()})[0]);
  return {program_.execute("encode", inputs)[0], {}};
}

Tensor ProgramVisionRunner::embed_image(const Tensor& pixels) {
  return program_.execute("embed_image", {pixels})[0];
}

Tensor ProgramVisionRunner::logits_with(const std::vector<int64_t>& ids, int64_t start, bool all,
                                        const Tensor& features) {
  if (!features.defined()) return logits_of(program_, ids, start, all);
  return program_.execute(all ? "forward_features_all" : "forward_features",
                          {row_of(ids), row_of({start})[0], features})[0][0];
}

}  // namespace taper::llm
