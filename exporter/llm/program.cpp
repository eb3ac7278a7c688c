#include "taper/exporter/llm/program.h"

#include <algorithm>

#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

void add_methods(Exporter& exporter, Decoder& decoder, const ProgramOptions& options) {
  const int64_t chunk = std::min(options.chunk, decoder.config.capacity);
  if (chunk < 1) throw ExportError("a chunk must have at least one token");
  const Dim n = chunk == 1 ? Dim(1) : Dim::symbol("n", 1, chunk), batch(decoder.config.batch);
  const auto add = [&](const char* name, bool all) {
    exporter.method(name,
                    [&decoder, all](const Tensor& ids, const Tensor& start) {
                      const eager::NoGrad guard;
                      return decoder(ids, start, DecoderOptions{.all_logits = all}).logits;
                    },
                    {input("ids", {batch, n}, DType::i64), input("start", {batch}, DType::i64)},
                    {"logits"});
  };
  add("forward", false);
  if (options.all_logits) add("forward_all", true);
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

struct ProgramRunner::Parts {
  std::vector<std::byte> bytes;  // at a multiple of 16, as operator new gives them
  std::optional<Module> module;
};

ProgramRunner::ProgramRunner(std::vector<std::byte> program, const Threads* threads)
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
ProgramRunner::~ProgramRunner() = default;

Tensor ProgramRunner::logits(const std::vector<int64_t>& ids, int64_t start, bool all) {
  const auto count = static_cast<index_t>(ids.size());
  const Result<std::vector<OwnedTensor>> results = parts_->module->execute(
      all ? "forward_all" : "forward", {Input(ids.data(), {1, count}), Input(&start, {1})});
  if (!results.ok()) throw ExportError("execute: " + parts_->module->message());
  const OwnedTensor& logits = results.value()[0];
  return Tensor::from_bytes(logits.bytes.data(), logits.bytes.size(), logits.dtype,
                            {logits.sizes[1], logits.sizes[2]});
}

}  // namespace taper::llm
