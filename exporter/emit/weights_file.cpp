#include "taper/exporter/emit/weights_file.h"

#include <filesystem>

#include "taper/exporter/base/error.h"
#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/sha256.h"
#include "taper/runtime/extension/module/verify.h"
#include "taper/runtime/program/tables.h"

namespace taper::emit {

ContentHash content_hash(const ir::Payload& payload) {
  return sha256({payload.bytes.get(), static_cast<index_t>(payload.size_bytes)});
}

ProgramTables read_weights(const std::string& path) {
  ProgramTables tables;
  if (!std::filesystem::exists(path)) return tables;
  const auto file = std::make_shared<MappedFile>();
  std::string why;
  if (!file->open(path, why)) throw ExportError(why);
  const Result<size_t> size = Program::metadata_bytes(file->bytes());
  std::vector<std::byte> metadata(size.ok() ? size.value() : 64);
  ErrorInfo info;
  LoadOptions options;
  options.info = &info;
  const Result<Program> loaded = Program::load(file->bytes(), {}, metadata, options);
  if (loaded.ok() ? loaded.value().method_count() > 0 : loaded.error() == Error::missing_kernel)
    throw ExportError(path + ": this is a program with methods; write the weights to another file");
  if (!loaded.ok())
    throw ExportError(path + ": this is not a weights file (" + describe(info) +
                      "); write to another file");
  if (verify(loaded.value(), why) != Error::ok) throw ExportError(path + ": " + why);
  const internal::ProgramView& view = loaded.value().data().view;
  for (index_t i = 0; i < view.constants.size(); ++i) {
    const internal::ConstantView c = view.constant(static_cast<uint64_t>(i));
    const internal::PlacedConstant stored = internal::stored_constant(file->bytes(), view, c);
    if (stored.data == nullptr || !has_exact_size(stored.layout) || c.key.empty()) continue;
    ir::Payload payload{c.dtype,
                        {c.sizes.begin(), c.sizes.end()},
                        {file, static_cast<const std::byte*>(stored.data)},
                        stored.bytes,
                        stored.layout};
    tables.constant(c.path != nullptr ? c.path : "",
                    std::make_shared<const ir::Payload>(std::move(payload)));
  }
  return tables;
}

}  // namespace taper::emit
