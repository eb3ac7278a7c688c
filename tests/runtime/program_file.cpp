#include "program_file.h"

namespace taper::test {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

size_t rounded(size_t n) { return (n + 63) / 64 * 64; }

auto ports(FlatBufferBuilder& b, const std::vector<MethodTables::Port>& ports) {
  std::vector<Offset<format::Input>> offsets;
  for (const auto& p : ports)
    offsets.push_back(format::CreateInputDirect(b, p.name.c_str(), p.value, p.other, p.type));
  return b.CreateVector(offsets);
}

Offset<format::Method> write(FlatBufferBuilder& b, const MethodTables& m) {
  const auto name = b.CreateString(m.name);
  const auto inputs = ports(b, m.inputs);
  std::vector<Offset<format::Output>> outputs;
  for (const auto& p : m.outputs)
    outputs.push_back(format::CreateOutputDirect(b, p.name.c_str(), p.value, p.other));
  std::vector<Offset<format::Check>> checks;
  for (const auto& c : m.checks)
    checks.push_back(format::CreateCheckDirect(b, c.condition, c.message.c_str(), &c.values));
  const auto outputs_ = b.CreateVector(outputs);
  const auto checks_ = b.CreateVector(checks);
  const auto symbols = b.CreateVectorOfStructs(m.symbols);
  const auto expressions = b.CreateVectorOfStructs(m.expressions);
  const auto buffers = b.CreateVectorOfStructs(m.buffers);
  const auto above = b.CreateVector(m.above);
  const auto shapes = b.CreateVectorOfStructs(m.shapes);
  const auto dims = b.CreateVector(m.dims);
  const auto values = b.CreateVectorOfStructs(m.values);
  const auto arguments = b.CreateVectorOfStructs(m.arguments);
  const auto lists = b.CreateVector(m.lists);
  const auto instructions = b.CreateVectorOfStructs(m.instructions);
  const auto symbol_names = b.CreateVectorOfStrings(m.symbol_names);
  return format::CreateMethod(b, name, inputs, outputs_, 0, 0, symbols, symbol_names, expressions,
                              checks_, buffers, above, shapes, dims, values, arguments, lists,
                              instructions);
}

std::vector<std::byte> debug_segment(const std::vector<std::vector<std::string>>& sources) {
  FlatBufferBuilder b;
  std::vector<Offset<flatbuffers::String>> texts;
  std::vector<Offset<format::MethodDebug>> methods;
  for (const auto& method : sources) {
    std::vector<format::InstructionDebug> instructions;
    for (const auto& s : method) {
      instructions.emplace_back(static_cast<uint32_t>(texts.size()), none, none);
      texts.push_back(b.CreateString(s));
    }
    methods.push_back(format::CreateMethodDebugDirect(b, &instructions));
  }
  const auto root = format::CreateDebug(b, b.CreateVector(texts), b.CreateVector(methods));
  b.Finish(root);
  const auto* bytes = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {bytes, bytes + b.GetSize()};
}

}  // namespace

AlignedBytes ProgramFile::bytes() const {
  // pieces of the constants' segment
  std::vector<std::byte> data;
  std::vector<format::Piece> pieces;
  for (const auto& c : constants) {
    pieces.emplace_back(0u, 64u, data.size(), c.data.size());
    data.insert(data.end(), c.data.begin(), c.data.end());
    data.resize(rounded(data.size() + slack_bytes));
  }
  const size_t blob_place = data.size();
  data.insert(data.end(), blob.begin(), blob.end());
  data.resize(rounded(data.size() + slack_bytes));
  const std::vector<std::byte> debug =
      sources.empty() ? std::vector<std::byte>() : debug_segment(sources);

  const auto checksum_of = [](const std::vector<std::byte>& bytes) {
    return checksum({bytes.data(), static_cast<index_t>(bytes.size())});
  };

  // offsets of segments depend on the metadata's size, which does not depend on them: write it
  // twice
  std::vector<uint8_t> metadata;
  const auto write_metadata = [&](size_t first) {
    FlatBufferBuilder b;
    b.ForceDefaults(all_fields);
    std::vector<format::Segment> segments = {
        {first, data.size(), checksum_of(data), format::SegmentKind::constants}};
    if (!debug.empty())
      segments.emplace_back(first + rounded(data.size()), debug.size(), checksum_of(debug),
                            format::SegmentKind::debug);
    std::vector<Offset<format::Space>> space_offsets;
    for (const auto& s : spaces) space_offsets.push_back(format::CreateSpaceDirect(b, s.c_str()));
    std::vector<Offset<format::Kernel>> kernel_offsets;
    for (const auto& k : kernels)
      kernel_offsets.push_back(format::CreateKernelDirect(b, k.op.c_str(), k.hash, &k.dtypes,
                                                          static_cast<uint8_t>(k.space)));
    std::vector<Offset<format::Delegate>> delegate_offsets;
    const format::Piece piece(0, 64, blob_place, blob.size());
    for (const auto& d : delegates)
      delegate_offsets.push_back(format::CreateDelegateDirect(b, d.c_str(), 1, &piece));
    std::vector<Offset<format::Constant>> constant_offsets;
    for (size_t i = 0; i < constants.size(); ++i) {
      const auto& c = constants[i];
      const auto dtype = static_cast<format::DType>(c.dtype);
      std::vector<Offset<format::Encoding>> encodings;
      const int count = c.source == format::ConstantSource::embedded ? c.unknown + c.encodings : 0;
      for (int k = 0; k < count; ++k)
        encodings.push_back(format::CreateEncodingDirect(
            b, dtype, c.encoded.empty() ? nullptr : &c.encoded, &pieces[i], 0xffffffff,
            k < c.unknown ? static_cast<format::Layout>(layout_count) : c.layout));
      constant_offsets.push_back(format::CreateConstantDirect(
          b, c.path.c_str(), dtype, &c.sizes, c.source, &encodings,
          c.hash.empty() ? nullptr : &c.hash,
          c.external_file.empty() ? nullptr : c.external_file.c_str(),
          c.slot.empty() ? nullptr : c.slot.c_str(), static_cast<uint8_t>(c.space)));
    }
    std::vector<Offset<format::State>> state_offsets;
    for (const auto& s : states)
      state_offsets.push_back(format::CreateStateDirect(
          b, s.path.c_str(), format::StateKind::parameter, static_cast<format::DType>(s.dtype),
          &s.sizes, s.initial, static_cast<uint8_t>(s.space)));
    std::vector<Offset<format::Quantization>> quantization_offsets;
    for (const auto& q : quantizations)
      quantization_offsets.push_back(
          format::CreateQuantization(b, q.scheme, 1, 0, q.axis, 0, q.scales, q.zero_points));
    std::vector<Offset<format::Method>> method_offsets;
    for (const auto& m : methods) method_offsets.push_back(write(b, m));
    const auto strings_ = b.CreateVectorOfStrings(strings);
    const auto segments_ = b.CreateVectorOfStructs(segments);
    const auto queues_ = queues.empty() ? 0 : b.CreateVectorOfStructs(queues);
    const auto root = format::CreateProgram(
        b, b.CreateString("test"), 0, segments_, b.CreateVector(space_offsets), queues_, strings_,
        b.CreateVector(kernel_offsets), b.CreateVector(delegate_offsets),
        b.CreateVector(constant_offsets), b.CreateVector(state_offsets),
        b.CreateVector(quantization_offsets), b.CreateVector(method_offsets));
    format::FinishProgramBuffer(b, root);
    metadata.assign(b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize());
  };
  write_metadata(0);
  const size_t first = 64 + rounded(metadata.size());
  write_metadata(first);

  AlignedBytes file(first + rounded(data.size()) + rounded(debug.size()));
  FileHeader h{};
  std::memcpy(h.magic, file_magic, sizeof h.magic);
  h.version = format_version;
  h.metadata_offset = 64;
  h.metadata_bytes = metadata.size();
  h.file_bytes = file.size();
  std::memcpy(file.data(), &h, sizeof h);
  std::memcpy(file.data() + 64, metadata.data(), metadata.size());
  if (!data.empty()) std::memcpy(file.data() + first, data.data(), data.size());
  if (!debug.empty())
    std::memcpy(file.data() + first + rounded(data.size()), debug.data(), debug.size());
  fix_checksum(file);
  return file;
}

void fix_checksum(AlignedBytes& file) {
  FileHeader h;
  std::memcpy(&h, file.data(), sizeof h);
  if (h.metadata_offset > file.size() || h.metadata_bytes > file.size() - h.metadata_offset) return;
  h.metadata_checksum =
      checksum({file.data() + h.metadata_offset, static_cast<index_t>(h.metadata_bytes)});
  std::memcpy(file.data(), &h, sizeof h);
}

}  // namespace taper::test
