#include "taper/exporter/llm/adapter_slots.h"

#include <cstring>
#include <filesystem>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/io/backends.h"
#include "taper/exporter/llm/adapter.h"
#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/program/tables.h"

namespace taper::llm {
namespace {

using Slots = std::map<std::string, OwnedTensor>;

/// Zeros for all slots of a program.
Slots empty_slots(const std::string& path) {
  MappedFile file;
  std::string why;
  if (!file.open(path, why)) throw ExportError(why);
  ErrorInfo info;
  LoadOptions options;
  options.backends = io::backends(), options.info = &info;
  const Result<size_t> size = Program::metadata_bytes(file.bytes());
  // `load` says better what is wrong
  std::vector<std::byte> metadata(size.ok() ? size.value() : 64);
  Result<Program> program = Program::load(file.bytes(), default_kernels(), metadata, options);
  if (!program.ok()) throw ExportError(path + ": " + describe(info));
  Slots slots;
  const internal::ProgramView& view = program.value().data().view;
  for (index_t i = 0; i < view.constants.size(); ++i) {
    const internal::ConstantView c = view.constant(static_cast<uint64_t>(i));
    if (c.source == format::ConstantSource::slot && c.has_type)
      slots[reinterpret_cast<const char*>(c.key.data())] = {
          c.dtype, {c.sizes.begin(), c.sizes.end()}, std::vector<std::byte>(c.bytes)};
  }
  static_cast<void>(program.value().close());  // backends unload their parts; no method is open
  return slots;
}

/// Copies `from` to the first rows and columns of a slot, which may be in halves.
void put(const eager::Tensor& from, OwnedTensor& slot) {
  const eager::Tensor elements = from.to(slot.dtype).contiguous();
  const auto element_bytes = static_cast<size_t>(size_bytes(slot.dtype)),
             rows = static_cast<size_t>(from.size(0).value()),
             columns_bytes = static_cast<size_t>(from.size(1).value()) * element_bytes,
             row_bytes = static_cast<size_t>(slot.sizes[1]) * element_bytes;
  const auto* const bytes = static_cast<const std::byte*>(elements.ref().data);
  for (size_t i = 0; i < rows; ++i)
    std::memcpy(slot.bytes.data() + i * row_bytes, bytes + i * columns_bytes, columns_bytes);
}

void fill(Slots& slots, const std::string& path) {
  Adapter adapter(path);
  const std::string down_end = ".lora_A.weight", up_end = ".lora_B.weight";
  for (auto& [name, down] : slots) {
    if (!name.ends_with(down_end)) continue;
    const std::string module = name.substr(0, name.size() - down_end.size());
    const auto up = slots.find(module + up_end);
    if (up == slots.end() || down.sizes.size() != 2 || up->second.sizes.size() != 2) continue;
    const LowRank of = adapter.of(module + ".weight", up->second.sizes[0], down.sizes[1]);
    if (!of.down.defined()) continue;
    if (const int64_t rank = of.down.size(0).value(); rank > down.sizes[0])
      throw ExportError("adapter " + path + " has the rank " + std::to_string(rank) +
                        ", and the program has room for " + std::to_string(down.sizes[0]) +
                        "; export it again with --lora-slots " + std::to_string(rank));
    put(of.down, down), put(of.up, up->second);
  }
  if (const std::string name = adapter.unused(); !name.empty())
    throw ExportError("adapter " + path + ": the program has no slot for " + name +
                      "; slots are in the layers. Export the model again, with --lora");
}

}  // namespace

std::map<std::string, OwnedTensor> adapter_slots(const std::string& program,
                                                 const std::string& adapter) {
  Slots slots = empty_slots(program);
  if (adapter.empty()) return slots;
  if (slots.empty())
    throw ExportError(program +
                      " has no room for an adapter; export it again with --lora, or with "
                      "--lora-slots for adapters that are given later");
  fill(slots, adapter);
  return slots;
}

}  // namespace taper::llm
