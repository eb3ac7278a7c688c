#include "taper/exporter/emit/emit.h"

#include <algorithm>
#include <cstring>
#include <ostream>

#include "taper/exporter/emit/extras.h"
#include "taper/exporter/emit/method_writer.h"
#include "taper/exporter/emit/program_tables.h"
#include "taper/exporter/io/file.h"
#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::emit {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using Bytes = std::vector<std::byte>;

/// Bytes one behind the other, which belong to others: weights are not copied until they are
/// written.
class Pieces {
 public:
  void add(std::span<const std::byte> bytes) {
    pieces_.push_back(bytes);
    size_ += bytes.size();
  }
  /// `slack` zeros, and as many more as lead to a multiple of `segment_alignment`.
  void pad(size_t slack = 0) {
    static constexpr std::byte zeros[slack_bytes + segment_alignment]{};
    const size_t end =
        (size_ + slack + segment_alignment - 1) / segment_alignment * segment_alignment;
    if (end > size_) add({zeros, end - size_});
  }
  void add(const Pieces& others) {
    for (const auto& piece : others.pieces_) add(piece);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::vector<std::span<const std::byte>>& list() const { return pieces_; }

  /// Of all of them; each begins at a whole word, or with zeros that fill the last one.
  uint64_t checksum() const {
    uint64_t h = checksum_of_nothing;
    size_t at = 0;
    for (const auto& piece : pieces_) {
      const size_t filled = std::min((8 - at % 8) % 8, piece.size());
      h = taper::checksum({piece.data() + filled, static_cast<index_t>(piece.size() - filled)}, h);
      at += piece.size();
    }
    return h;
  }

 private:
  std::vector<std::span<const std::byte>> pieces_;
  size_t size_ = 0;
};

void append(Bytes& bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

std::vector<Offset<String>> strings(FlatBufferBuilder& b, const std::vector<std::string>& texts) {
  std::vector<Offset<String>> offsets;
  for (const std::string& t : texts) offsets.push_back(b.CreateString(t));
  return offsets;
}

/// The constants one behind the other, each at a multiple of 64 with 64 zero bytes behind it.
Pieces constants_segment(const ProgramTables& tables, std::vector<uint64_t>& offsets) {
  Pieces pieces;
  for (const ConstantEntry& c : tables.constants()) {
    offsets.push_back(pieces.size());
    pieces.add({c.payload->bytes.get(), c.payload->size_bytes});
    pieces.pad(slack_bytes);
  }
  return pieces;
}

/// The tensors of tests, likewise.
Pieces assets_segment(const std::vector<io::BundledTest>& tests, std::vector<uint64_t>& offsets) {
  Pieces pieces;
  for (const io::Array* tensor : tensors_of(tests)) {
    offsets.push_back(pieces.size());
    pieces.add(tensor->raw());
    pieces.pad(slack_bytes);
  }
  return pieces;
}

Bytes debug_segment(const ProgramTables& tables, const std::vector<MethodTables>& methods) {
  FlatBufferBuilder b;
  std::vector<Offset<format::MethodDebug>> entries;
  for (const MethodTables& m : methods)
    entries.push_back(
        format::CreateMethodDebugDirect(b, &m.debug_instructions, &m.debug_value_names));
  const auto texts = strings(b, tables.debug_texts());
  b.Finish(format::CreateDebugDirect(b, &texts, &entries));
  Bytes bytes;
  append(bytes, b.GetBufferPointer(), b.GetSize());
  return bytes;
}

Offset<format::Method> method_table(FlatBufferBuilder& b, const MethodTables& m) {
  std::vector<Offset<format::Input>> inputs;
  for (const auto& in : m.inputs)
    inputs.push_back(format::CreateInputDirect(b, in.name.c_str(), in.value, in.symbol));
  std::vector<Offset<format::Output>> outputs;
  for (const auto& o : m.outputs)
    outputs.push_back(format::CreateOutputDirect(b, o.name.c_str(), o.value, o.expression));
  std::vector<Offset<format::Check>> checks;
  for (const auto& c : m.checks)
    checks.push_back(format::CreateCheckDirect(b, c.condition, c.message.c_str()));
  const auto symbol_names = strings(b, m.symbol_names);
  return format::CreateMethodDirect(b, m.name.c_str(), &inputs, &outputs, nullptr, nullptr,
                                    &m.symbols, &symbol_names, &m.expressions, &checks, &m.buffers,
                                    &m.above, &m.shapes, &m.dims, &m.values, &m.arguments, &m.lists,
                                    &m.instructions, static_cast<uint64_t>(m.lower_bound_bytes));
}

struct Segments {
  std::vector<format::Segment> list;
  std::vector<uint64_t> constant_offsets;  // in segment 0
};

Bytes metadata(const ProgramTables& tables, const std::vector<MethodTables>& methods,
               const Segments& segments, const EmitOptions& options) {
  FlatBufferBuilder b;
  std::vector<Offset<format::Kernel>> kernels;
  for (const Signature& s : tables.kernels())
    kernels.push_back(format::CreateKernelDirect(b, std::string(name_of(*s.op)).c_str(),
                                                 schema_hash(*s.op), &s.dtypes));

  std::vector<Offset<format::Constant>> constants;
  for (size_t i = 0; i < tables.constants().size(); ++i) {
    const ConstantEntry& c = tables.constants()[i];
    const auto dtype = static_cast<format::DType>(c.payload->dtype);
    const format::Piece piece(0, segment_alignment, segments.constant_offsets[i],
                              c.payload->size_bytes);
    const std::vector<Offset<format::Encoding>> encodings{
        format::CreateEncodingDirect(b, nullptr, dtype, nullptr, &piece)};
    constants.push_back(format::CreateConstantDirect(b, c.path.empty() ? nullptr : c.path.c_str(),
                                                     dtype, &c.payload->sizes,
                                                     format::ConstantSource::embedded, &encodings));
  }

  std::vector<Offset<format::State>> states;
  for (const StateEntry& s : tables.states())
    states.push_back(
        format::CreateStateDirect(b, s.path.c_str(), static_cast<format::StateKind>(s.kind),
                                  static_cast<format::DType>(s.dtype), &s.sizes, s.initial));

  std::vector<Offset<format::Method>> method_offsets;
  for (const MethodTables& m : methods) method_offsets.push_back(method_table(b, m));
  const auto text_offsets = strings(b, tables.strings()), sets = strings(b, options.kernel_sets);
  const std::vector<Offset<format::Target>> targets{format::CreateTargetDirect(
      b, options.target.empty() ? nullptr : options.target.c_str(), &sets, 0, options.exact)};
  b.Finish(format::CreateProgramDirect(b, options.name.empty() ? nullptr : options.name.c_str(),
                                       "taper 0.1.0", &segments.list, nullptr, nullptr,
                                       &text_offsets, &kernels, nullptr, &constants, &states,
                                       nullptr, &method_offsets, &targets),
           format::ProgramIdentifier());
  Bytes bytes;
  append(bytes, b.GetBufferPointer(), b.GetSize());
  return bytes;
}

/// Every record that a loader may take for the program, in the order of preference.
std::vector<const Kernel*> records_for(const std::vector<Method>& methods,
                                       const std::vector<const Kernel*>& all) {
  std::vector<const Kernel*> found;
  for (const Method& m : methods)
    for (const auto& [node, candidates] : find_all_candidates(*m.graph, all))
      found.insert(found.end(), candidates.records.begin(), candidates.records.end());
  std::vector<const Kernel*> ordered;
  std::ranges::copy_if(all, std::back_inserter(ordered),
                       [&](const Kernel* k) { return std::ranges::find(found, k) != found.end(); });
  return ordered;
}

/// A program's file, ready to be written: what was made for it, and the weights where they lie.
struct Image {
  ProgramTables tables;  // keeps the weights
  Bytes header, table, debug, extras;
  Pieces file;
};

Image make_image(const std::vector<Method>& given, const EmitOptions& options, Report& report) {
  Image image;
  ProgramTables& tables = image.tables;
  std::vector<Method> methods = given;
  std::ranges::sort(methods, {}, &Method::name);
  std::vector<MethodTables> method_tables;
  for (const Method& m : methods) {
    if (std::ranges::count(methods, m.name, &Method::name) > 1)
      throw ExportError("two methods have the name " + m.name);
    method_tables.push_back(
        write_method(m.name, *m.graph, options.kernels, tables, report.methods.emplace_back()));
  }

  Segments segments;
  const Pieces constants = constants_segment(tables, segments.constant_offsets);
  Pieces debug;
  if (options.debug) debug.add(image.debug = debug_segment(tables, method_tables));
  Pieces assets, extras;
  if (!options.tests.empty()) {
    std::vector<uint64_t> offsets;
    assets = assets_segment(options.tests, offsets);
    const uint32_t index = (constants.empty() ? 0 : 1) + (options.debug ? 1 : 0);
    extras.add(image.extras = extras_table(options.tests, index, offsets));
  }
  const uint64_t constants_checksum = constants.checksum(), debug_checksum = debug.checksum(),
                 assets_checksum = assets.checksum(), extras_checksum = extras.checksum();

  // Segments stand behind the metadata, whose size does not depend on their offsets: it is made
  // twice.
  const auto lay_out = [&](uint64_t begin) {
    segments.list.clear();
    const auto segment = [&](const Pieces& pieces, uint64_t sum, format::SegmentKind kind) {
      segments.list.emplace_back(begin, pieces.size(), sum, kind);
      begin =
          (begin + pieces.size() + segment_alignment - 1) / segment_alignment * segment_alignment;
    };
    if (!constants.empty()) segment(constants, constants_checksum, format::SegmentKind::constants);
    if (options.debug) segment(debug, debug_checksum, format::SegmentKind::debug);
    if (!extras.empty()) {  // at the end, so that stripping them only cuts the file
      segment(assets, assets_checksum, format::SegmentKind::assets);
      segment(extras, extras_checksum, format::SegmentKind::extras);
    }
    return metadata(tables, method_tables, segments, options);
  };
  const size_t header_bytes = sizeof(FileHeader);
  const size_t metadata_end = header_bytes + lay_out(0).size();
  image.table =
      lay_out((metadata_end + segment_alignment - 1) / segment_alignment * segment_alignment);

  image.header.resize(header_bytes);
  image.file.add(image.header);
  image.file.add(image.table);
  image.file.pad();
  image.file.add(constants);
  image.file.pad();
  image.file.add(debug);
  if (!extras.empty()) {
    image.file.pad();
    image.file.add(assets);
    image.file.pad();
    image.file.add(extras);
  }
  FileHeader header{};
  std::memcpy(header.magic, file_magic, sizeof file_magic);
  header.version = format_version;
  header.metadata_offset = header_bytes, header.metadata_bytes = image.table.size();
  header.metadata_checksum =
      checksum({image.table.data(), static_cast<index_t>(image.table.size())});
  header.file_bytes = image.file.size();
  std::memcpy(image.header.data(), &header, sizeof header);

  report.file_bytes = static_cast<int64_t>(image.file.size());
  report.metadata_bytes = static_cast<int64_t>(image.table.size());
  report.constant_bytes = static_cast<int64_t>(constants.size());
  report.debug_bytes = static_cast<int64_t>(image.debug.size());
  report.test_bytes = static_cast<int64_t>(assets.size() + extras.size());
  report.tests = static_cast<int>(options.tests.size());
  report.constants = static_cast<int>(tables.constants().size());
  report.states = static_cast<int>(tables.states().size());
  for (const StateEntry& s : tables.states()) {
    int64_t bytes = size_bytes(s.dtype);
    for (int64_t n : s.sizes) bytes *= n;
    report.state_bytes += bytes;
  }
  report.exact = options.exact;
  report.kernels = records_for(methods, options.kernels);
  return image;
}

}  // namespace

Bytes write(const std::vector<Method>& methods, const EmitOptions& options, Report& report) {
  const Image image = make_image(methods, options, report);
  Bytes bytes;
  bytes.reserve(image.file.size());
  for (const auto& piece : image.file.list()) append(bytes, piece.data(), piece.size());
  return bytes;
}

Report write(const std::string& path, const std::vector<Method>& methods,
             const EmitOptions& options) {
  Report report;
  const Image image = make_image(methods, options, report);
  report.path = path;
  if (options.writing) options.writing();
  io::write_file(path, image.file.list());
  return report;
}

}  // namespace taper::emit
