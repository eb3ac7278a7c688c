#include "taper/exporter/emit/emit.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <ostream>
#include <unordered_set>

#include "taper/exporter/emit/constant_layouts.h"
#include "taper/exporter/emit/extras.h"
#include "taper/exporter/emit/method_writer.h"
#include "taper/exporter/emit/pieces.h"
#include "taper/exporter/emit/program_tables.h"
#include "taper/exporter/emit/sources.h"
#include "taper/exporter/emit/weights_file.h"
#include "taper/exporter/io/file.h"
#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::emit {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using Bytes = std::vector<std::byte>;

void append(Bytes& bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

std::vector<Offset<String>> strings(FlatBufferBuilder& b, const std::vector<std::string>& texts) {
  std::vector<Offset<String>> offsets;
  for (const std::string& t : texts) offsets.push_back(b.CreateString(t));
  return offsets;
}

/// How a file stores a constant.
struct Stored {
  std::string outside;                   ///< the name of the other file in which it lies
  std::optional<ContentHash> key;        ///< only for constants outside, and in weights files
  std::optional<PackedConstant> packed;  ///< nullopt: its dense elements

  bool is_outside() const { return !outside.empty(); }
  size_t size_bytes(const ConstantEntry& c) const {
    return packed ? packed->size_bytes : c.payload->size_bytes;
  }
};

/// The constants in order, each at a multiple of 64 and followed by 64 zero bytes.
/// Constants that share their elements, as f32 in halves and as halves, lie there once.
Pieces constants_segment(const ProgramTables& tables, const std::vector<Stored>& stored,
                         std::vector<uint64_t>& offsets) {
  Pieces pieces;
  std::map<const std::byte*, uint64_t> place_of;
  for (size_t i = 0; i < stored.size(); ++i) {
    const ConstantEntry& c = tables.constants()[i];
    offsets.push_back(pieces.size());
    if (stored[i].is_outside() || c.is_slot) continue;
    if (const auto& packed = stored[i].packed) {
      pieces.add(packed->size_bytes, packed->write_into);
    } else {
      const auto [at, is_new] = place_of.try_emplace(c.payload->bytes.get(), pieces.size());
      offsets.back() = at->second;
      if (!is_new) continue;
      pieces.add({c.payload->bytes.get(), c.payload->size_bytes});
    }
    pieces.pad(slack_bytes);
  }
  return pieces;
}

/// The blobs of delegates, laid out in the same way.
Pieces blobs_segment(const ProgramTables& tables, std::vector<uint64_t>& offsets) {
  Pieces pieces;
  for (const DelegateEntry& d : tables.delegates()) {
    offsets.push_back(pieces.size());
    pieces.add(d.blob);
    pieces.pad(slack_bytes);
  }
  return pieces;
}

/// The tensors of tests and the assets, laid out in the same way.
Pieces assets_segment(const Extras& extras, std::vector<uint64_t>& offsets) {
  Pieces pieces;
  for (const std::span<const std::byte> bytes : bytes_of(extras)) {
    offsets.push_back(pieces.size());
    pieces.add(bytes);
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
  uint32_t delegates;                      // the segment of their blobs
  std::vector<uint64_t> blob_offsets;
};

Offset<format::Delegate> delegate_table(FlatBufferBuilder& b, const DelegateEntry& d,
                                        uint32_t segment, uint64_t offset) {
  const format::Piece blob(segment, segment_alignment, offset, d.blob.size());
  const auto nodes = strings(b, d.nodes);
  return format::CreateDelegateDirect(b, d.backend.c_str(), d.version, &blob, nullptr, &nodes);
}

Offset<format::Constant> constant_table(FlatBufferBuilder& b, const ConstantEntry& c,
                                        const Stored& stored, uint64_t offset) {
  const auto dtype = static_cast<format::DType>(c.payload->dtype);
  const char* path = c.path.empty() ? nullptr : c.path.c_str();
  const format::Piece piece(0, segment_alignment, offset, stored.size_bytes(c));
  const Layout layout = stored.packed ? stored.packed->layout : c.payload->layout;
  const std::vector<int64_t>* sizes =
      stored.packed && stored.packed->sizes != c.payload->sizes ? &stored.packed->sizes : nullptr;
  std::vector<Offset<format::Encoding>> encodings;
  std::vector<uint8_t> hash;
  if (!stored.is_outside() && !c.is_slot)
    encodings.push_back(format::CreateEncodingDirect(b, dtype, sizes, &piece, none,
                                                     static_cast<format::Layout>(layout)));
  if (stored.key)
    for (const std::byte byte : *stored.key) hash.push_back(static_cast<uint8_t>(byte));
  return format::CreateConstantDirect(b, path, dtype, &c.payload->sizes,
                                      c.is_slot             ? format::ConstantSource::slot
                                      : stored.is_outside() ? format::ConstantSource::external
                                                            : format::ConstantSource::embedded,
                                      &encodings, hash.empty() ? nullptr : &hash,
                                      stored.is_outside() ? stored.outside.c_str() : nullptr,
                                      c.is_slot ? path : nullptr);
}

Bytes metadata(const ProgramTables& tables, const std::vector<MethodTables>& methods,
               const Segments& segments, const std::vector<Stored>& stored,
               const EmitOptions& options) {
  FlatBufferBuilder b;
  std::vector<Offset<format::Kernel>> kernels;
  for (const Signature& s : tables.kernels())
    kernels.push_back(format::CreateKernelDirect(b, std::string(name_of(*s.op)).c_str(),
                                                 schema_hash(*s.op), &s.dtypes));

  std::vector<Offset<format::Delegate>> delegates;
  for (size_t i = 0; i < tables.delegates().size(); ++i)
    delegates.push_back(
        delegate_table(b, tables.delegates()[i], segments.delegates, segments.blob_offsets[i]));

  std::vector<Offset<format::Constant>> constants;
  for (size_t i = 0; i < stored.size(); ++i)
    constants.push_back(
        constant_table(b, tables.constants()[i], stored[i], segments.constant_offsets[i]));

  std::vector<Offset<format::State>> states;
  for (const StateEntry& s : tables.states())
    states.push_back(
        format::CreateStateDirect(b, s.path.c_str(), static_cast<format::StateKind>(s.kind),
                                  static_cast<format::DType>(s.dtype), &s.sizes, s.initial));

  std::vector<Offset<format::Method>> method_offsets;
  for (const MethodTables& m : methods) method_offsets.push_back(method_table(b, m));
  const auto text_offsets = strings(b, tables.strings()),
             sets = strings(b, options.target.kernel_sets);
  const std::vector<Offset<format::Target>> targets{format::CreateTargetDirect(
      b, options.target.name.empty() ? nullptr : options.target.name.c_str(), &sets,
      static_cast<uint64_t>(options.target.memory_bytes), options.exact)};
  b.Finish(
      format::CreateProgramDirect(b, options.name.empty() ? nullptr : options.name.c_str(),
                                  "taper 0.1.0", &segments.list, nullptr, nullptr, &text_offsets,
                                  &kernels, delegates.empty() ? nullptr : &delegates, &constants,
                                  &states, nullptr, &method_offsets, &targets),
      format::ProgramIdentifier());
  Bytes bytes;
  append(bytes, b.GetBufferPointer(), b.GetSize());
  return bytes;
}

/// Every record that a loader may choose for the program, in order of preference.
std::vector<const Kernel*> records_for(const std::vector<Method>& methods,
                                       const target::KernelTable& kernels) {
  std::unordered_set<const Kernel*> found;
  for (const Method& m : methods)
    for (const auto& [node, candidates] : target::find_all_candidates(*m.graph, kernels))
      found.insert(candidates.records.begin(), candidates.records.end());
  std::vector<const Kernel*> ordered;
  std::ranges::copy_if(kernels.all(), std::back_inserter(ordered),
                       [&](const Kernel* k) { return found.contains(k); });
  return ordered;
}

std::string weights_name(const EmitOptions& options) {
  return std::filesystem::path(options.weights).filename().string();
}

size_t aligned(size_t at) {
  return (at + segment_alignment - 1) / segment_alignment * segment_alignment;
}

/// A program's file: the parts that were made for it, and the weights where they lie. The head
/// (header and metadata) holds the checksums of the segments that follow it. The checksum of the
/// constants reads all weights, so it is computed while they are written, and packed.
class Image {
 public:
  Image(const std::vector<Method>& given, const EmitOptions& options, Report& report)
      : options_(options),
        kernels_(options.target),
        tables_(options.slots),
        layouts_(kernels_, tables_) {
    std::vector<Method> methods = given;
    std::ranges::sort(methods, {}, &Method::name);
    for (const Method& m : methods) {
      if (std::ranges::count(methods, m.name, &Method::name) > 1)
        throw ExportError("two methods have the name " + m.name);
      methods_.push_back(
          write_method(m.name, *m.graph, kernels_, tables_, report.methods.emplace_back()));
    }
    store_constants(methods, report);
    make_segments();
    write_sizes(report);
    require_memory(report);
    place_segments();
    write_report(methods, report);
  }

  /// Makes a weights file with these constants.
  Image(ProgramTables tables, const EmitOptions& options)
      : options_(options),
        kernels_(options.target),
        tables_(std::move(tables)),
        layouts_(kernels_, tables_) {
    for (const ConstantEntry& c : tables_.constants())
      stored_.push_back({"", content_hash(*c.payload), {}});
    make_segments();
    place_segments();
  }

  /// Adds to `weights` the constants that are not stored in the program.
  void add_outside(ProgramTables& weights) const {
    for (size_t i = 0; i < stored_.size(); ++i)
      if (stored_[i].outside == weights_name(options_))
        weights.constant(tables_.constants()[i].path, tables_.constants()[i].payload);
  }

  size_t head_bytes() const { return aligned(sizeof(FileHeader) + metadata_bytes_); }
  size_t size() const { return head_bytes() + constants_.size() + rest_.size(); }

  /// Calls `take` with all that follows the head, in order.
  void write_behind_head(const io::Sink& take) {
    PieceChecksum sum;
    constants_.for_each([&](std::span<const std::byte> bytes) {
      constexpr size_t large = 1 << 16;
      const auto policy = bytes.size() < large ? std::launch::deferred : std::launch::async;
      const std::future<void> added = std::async(policy, [&] { sum.add(bytes); });
      take(bytes);
      added.wait();
    });
    constants_checksum_ = sum.value();
    rest_.for_each(take);
  }

  /// The header and the metadata. Call it behind `write_behind_head`.
  Bytes head() const {
    const Bytes table = lay_out(constants_checksum_);
    FileHeader header{};
    std::memcpy(header.magic, file_magic, sizeof file_magic);
    header.version = format_version;
    header.metadata_offset = sizeof header, header.metadata_bytes = table.size();
    header.metadata_checksum = checksum({table.data(), static_cast<index_t>(table.size())});
    header.file_bytes = size();
    Bytes head;
    append(head, &header, sizeof header);
    append(head, table.data(), table.size());
    head.resize(head_bytes());
    return head;
  }

 private:
  struct Segment {
    format::SegmentKind kind;
    Pieces pieces;
    size_t place = 0;  // in the file
  };

  /// Whether the program stores a constant packed, and does not leave it to a load.
  bool is_stored(const PackedConstant& packed) const {
    if (options_.dense) return false;
    const bool is_left = packed.layout == Layout::winograd_panels || is_in_blocks(packed.layout);
    return !options_.target.name.empty() || !is_left;
  }

  void store_constants(const std::vector<Method>& methods, Report& report) {
    constexpr size_t least_outside = 1024;
    const Sources sources(options_.sources);
    for (const Method& m : methods) layouts_.add(*m.graph);
    for (uint32_t i = 0; i < tables_.constants().size(); ++i) {
      const ir::Payload& payload = *tables_.constants()[i].payload;
      Stored& stored = stored_.emplace_back();
      const bool is_large = payload.size_bytes >= least_outside;
      if (const auto place = is_large ? sources.find(payload) : std::nullopt)
        stored = {place->file, place->key, {}};
      else if (is_large && !options_.weights.empty())
        stored = {weights_name(options_), content_hash(payload), {}};
      if (stored.is_outside()) {
        report.outside_bytes += static_cast<int64_t>(payload.size_bytes);
        report.packed_at_load += layouts_.asks_for(i);
      } else if (tables_.is_kept_dense(i)) {
        continue;
      } else if (std::optional<PackedConstant> packed = layouts_.packed(i); !packed) {
        continue;
      } else if (!is_stored(*packed)) {
        ++report.packed_at_load;
      } else {
        ++report.packed_constants;
        report.packed_bytes += static_cast<int64_t>(packed->size_bytes);
        stored.packed = std::move(packed);
      }
    }
    if (report.outside_bytes > 0) report.weights = options_.weights;
  }

  void place_segments() {
    // the size of the metadata does not depend on places and checksums of segments
    metadata_bytes_ = lay_out(0).size();
    size_t place = head_bytes();
    for (Segment& s : segments_) {
      s.place = place;
      place = aligned(place + s.pieces.size());
    }
    for (const Segment& s : segments_) {
      if (s.kind == format::SegmentKind::constants) continue;
      rest_.pad();
      rest_.add(s.pieces);
    }
  }

  void make_segments() {
    using Kind = format::SegmentKind;
    constants_ = constants_segment(tables_, stored_, constant_offsets_);
    if (!constants_.empty()) segments_.push_back({Kind::constants, constants_});
    if (!tables_.delegates().empty()) {
      delegates_segment_ = static_cast<uint32_t>(segments_.size());
      segments_.push_back({Kind::delegate, blobs_segment(tables_, blob_offsets_)});
    }
    if (options_.debug) {
      Pieces debug;
      debug.add(debug_ = debug_segment(tables_, methods_));
      segments_.push_back({Kind::debug, debug});
    }
    const Extras extras{options_.tests, options_.assets};
    if (extras.empty()) return;
    // at the end, so that cutting the file strips them
    std::vector<uint64_t> offsets;
    const Pieces assets = assets_segment(extras, offsets);
    Pieces table;
    table.add(extras_ = extras_table(extras, static_cast<uint32_t>(segments_.size()), offsets));
    segments_.push_back({Kind::assets, assets});
    segments_.push_back({Kind::extras, table});
  }

  Bytes lay_out(uint64_t constants_checksum) const {
    Segments segments{{}, constant_offsets_, delegates_segment_, blob_offsets_};
    for (const Segment& s : segments_)
      segments.list.emplace_back(
          s.place, s.pieces.size(),
          s.kind == format::SegmentKind::constants ? constants_checksum : s.pieces.checksum(),
          s.kind);
    return metadata(tables_, methods_, segments, stored_, options_);
  }

  void write_sizes(Report& report) const {
    report.constants = static_cast<int>(tables_.constants().size());
    report.states = static_cast<int>(tables_.states().size());
    for (const StateEntry& s : tables_.states()) {
      int64_t bytes = size_bytes(s.dtype);
      for (int64_t n : s.sizes) bytes *= n;
      report.state_bytes += bytes;
    }
  }

  void require_memory(const Report& report) const {
    const int64_t limit = options_.target.memory_bytes;
    for (const MethodReport& m : report.methods)
      if (const int64_t bytes = m.activation_bytes + m.io_bytes + report.state_bytes;
          limit > 0 && bytes > limit)
        throw ExportError(m.name + ": activations, inputs, outputs and states take " +
                          std::to_string(bytes) +
                          " bytes at the largest sizes, but the target has " +
                          std::to_string(limit) + "; give the sizes narrower bounds (--dim)");
  }

  void write_report(const std::vector<Method>& methods, Report& report) const {
    report.file_bytes = static_cast<int64_t>(size());
    report.metadata_bytes = static_cast<int64_t>(metadata_bytes_);
    report.constant_bytes = static_cast<int64_t>(constants_.size());
    report.debug_bytes = static_cast<int64_t>(debug_.size());
    for (const io::Asset& asset : options_.assets)
      report.asset_bytes += static_cast<int64_t>(asset.bytes.size());
    for (const Segment& s : segments_)
      if (s.kind == format::SegmentKind::assets || s.kind == format::SegmentKind::extras)
        report.test_bytes += static_cast<int64_t>(s.pieces.size());
    report.test_bytes = options_.tests.empty() ? 0 : report.test_bytes - report.asset_bytes;
    report.tests = static_cast<int>(options_.tests.size());
    report.assets = static_cast<int>(options_.assets.size());
    report.exact = options_.exact;
    report.kernels = records_for(methods, kernels_);
  }

  const EmitOptions& options_;
  const target::KernelTable kernels_;
  ProgramTables tables_;  // keeps the weights alive
  ConstantLayouts layouts_;
  std::vector<MethodTables> methods_;
  std::vector<Stored> stored_;  // one for each constant
  std::vector<uint64_t> constant_offsets_, blob_offsets_;
  uint32_t delegates_segment_ = 0;
  Bytes debug_, extras_;  // pieces point into these
  Pieces constants_;      // the first segment, if there are any
  Pieces rest_;           // the other ones
  std::vector<Segment> segments_;
  size_t metadata_bytes_ = 0;
  uint64_t constants_checksum_ = checksum_of_nothing;
};

void write_file(const std::string& path, Image& image) {
  io::write_file(
      path, image.head_bytes(), [&] { return image.head(); },
      [&](const io::Sink& take) { image.write_behind_head(take); });
}

// Adds the program's constants to its weights file, before the program names that file.
void write_weights(const Image& program, const EmitOptions& options) {
  if (options.weights.empty()) return;
  ProgramTables tables = read_weights(options.weights);
  const size_t before = tables.constants().size();
  program.add_outside(tables);
  if (tables.constants().size() == before) return;
  EmitOptions plain;
  plain.debug = false;
  Image image(std::move(tables), plain);
  write_file(options.weights, image);
}

}  // namespace

Bytes write(const std::vector<Method>& methods, const EmitOptions& options, Report& report) {
  Image image(methods, options, report);
  write_weights(image, options);
  Bytes bytes(image.head_bytes());
  bytes.reserve(image.size());
  image.write_behind_head([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  std::ranges::copy(image.head(), bytes.begin());
  return bytes;
}

Report write(const std::string& path, const std::vector<Method>& methods,
             const EmitOptions& options) {
  Report report;
  Image image(methods, options, report);
  report.path = path;
  if (options.writing) options.writing();
  write_weights(image, options);
  write_file(path, image);
  return report;
}

}  // namespace taper::emit
