#include "taper/exporter/emit/emit.h"

#include <algorithm>
#include <cstring>
#include <ostream>

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

void pad(Bytes& bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}
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
Bytes constants_segment(const ProgramTables& tables, std::vector<uint64_t>& offsets) {
  Bytes bytes;
  for (const ConstantEntry& c : tables.constants()) {
    pad(bytes, segment_alignment);
    offsets.push_back(bytes.size());
    append(bytes, c.payload->bytes.get(), c.payload->size_bytes);
    bytes.resize(bytes.size() + slack_bytes);
  }
  pad(bytes, segment_alignment);
  return bytes;
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

}  // namespace

Bytes write(const std::vector<Method>& given, const EmitOptions& options, Report& report) {
  std::vector<Method> methods = given;
  std::ranges::sort(methods, {}, &Method::name);
  ProgramTables tables;
  std::vector<MethodTables> method_tables;
  for (const Method& m : methods) {
    if (std::ranges::count(methods, m.name, &Method::name) > 1)
      throw ExportError("two methods have the name " + m.name);
    method_tables.push_back(
        write_method(m.name, *m.graph, options.kernels, tables, report.methods.emplace_back()));
  }

  Segments segments;
  const Bytes constants = constants_segment(tables, segments.constant_offsets);
  const Bytes debug = options.debug ? debug_segment(tables, method_tables) : Bytes{};

  // Segments stand behind the metadata, whose size does not depend on their offsets: it is made
  // twice.
  const auto lay_out = [&](uint64_t begin) {
    segments.list.clear();
    const auto segment = [&](const Bytes& bytes, format::SegmentKind kind) {
      segments.list.emplace_back(
          begin, bytes.size(), checksum({bytes.data(), static_cast<index_t>(bytes.size())}), kind);
      begin =
          (begin + bytes.size() + segment_alignment - 1) / segment_alignment * segment_alignment;
    };
    if (!constants.empty()) segment(constants, format::SegmentKind::constants);
    if (options.debug) segment(debug, format::SegmentKind::debug);
    return metadata(tables, method_tables, segments, options);
  };
  const size_t header_bytes = sizeof(FileHeader);
  const size_t metadata_end = header_bytes + lay_out(0).size();
  const Bytes table =
      lay_out((metadata_end + segment_alignment - 1) / segment_alignment * segment_alignment);

  Bytes file(header_bytes);
  append(file, table.data(), table.size());
  for (const Bytes* segment : {&constants, &debug}) {
    pad(file, segment_alignment);
    append(file, segment->data(), segment->size());
  }
  FileHeader header{};
  std::memcpy(header.magic, file_magic, sizeof file_magic);
  header.version = format_version;
  header.metadata_offset = header_bytes, header.metadata_bytes = table.size();
  header.metadata_checksum = checksum({table.data(), static_cast<index_t>(table.size())});
  header.file_bytes = file.size();
  std::memcpy(file.data(), &header, sizeof header);

  report.file_bytes = static_cast<int64_t>(file.size());
  report.metadata_bytes = static_cast<int64_t>(table.size());
  report.constant_bytes = static_cast<int64_t>(constants.size());
  report.debug_bytes = static_cast<int64_t>(debug.size());
  report.constants = static_cast<int>(tables.constants().size());
  report.states = static_cast<int>(tables.states().size());
  for (const StateEntry& s : tables.states()) {
    int64_t bytes = size_bytes(s.dtype);
    for (int64_t n : s.sizes) bytes *= n;
    report.state_bytes += bytes;
  }
  report.exact = options.exact;
  report.kernels = records_for(methods, options.kernels);
  return file;
}

Report write(const std::string& path, const std::vector<Method>& methods,
             const EmitOptions& options) {
  Report report;
  const Bytes bytes = write(methods, options, report);
  report.path = path;
  io::write_file(path, bytes);
  return report;
}

}  // namespace taper::emit
