// Archives of PyTorch: the directory, the program's JSON, its payloads and sizes. The first byte
// chooses a reader: 'J' takes the rest as the JSON of a program, 'E' as a size expression, 'P' as a
// checkpoint; else everything is an archive.
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include "taper/exporter/importers/pt2/archive.h"
#include "taper/exporter/importers/pt2/expression.h"
#include "taper/exporter/io/torch_checkpoint.h"

namespace {

using namespace taper;

void read_program(std::string_view json) {
  const pt2::ExportedProgram program = pt2::parse_program(json, "fuzz");
  for (const auto& [name, meta] : program.graph.tensor_values)
    for (const pt2::SymInt& size : meta.sizes)
      if (const auto* text = std::get_if<std::string>(&size))
        pt2::parse_expression(*text, [](const std::string& s) { return Dim::symbol(s, 1, 64); });
}

void read_archive(std::span<const std::byte> bytes) {
  const pt2::Archive archive(bytes, "fuzz");
  for (const std::string& model : archive.models()) {
    const pt2::ExportedProgram program = pt2::parse_program(archive.program_json(model), "fuzz");
    const pt2::Archive::Payloads payloads = archive.payloads(model);
    for (const pt2::InputSpec& spec : program.inputs)
      if (!spec.target.empty() && spec.kind != pt2::InputSpec::Kind::constant_input) {
        const io::StoredTensor stored = payloads.at(spec.target, false);
        if (io::checked_numel(stored.sizes, 1) <= static_cast<int64_t>(bytes.size()))
          (void)stored.to_array();
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (text.starts_with('J'))
      read_program(text.substr(1));
    else if (text.starts_with('E'))
      pt2::parse_expression(text.substr(1),
                            [](const std::string& s) { return Dim::symbol(s, 1, 64); });
    else if (text.starts_with("P"))
      (void)(text.starts_with("PK") ? (read_archive(bytes), 0)
                                    : (io::parse_torch_checkpoint(bytes.subspan(1), "fuzz"), 0));
    else
      read_archive(bytes);
  } catch (const ExportError&) {  // refused, with a message
  }
  return 0;
}
