#include "taper/runtime/program/program.h"

#include "taper/runtime/core/arena.h"
#include "taper/runtime/program/format.h"
#include "taper/runtime/program/structure.h"
#include "taper/runtime/program/tables.h"

namespace taper {

Error internal::check_device_memory(Span<std::byte> memory, int space, ErrorInfo& info) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(memory.data());
  if (place % segment_alignment == 0) return Error::ok;
  return fail(info, Error::invalid_argument,
              TAPER_TEXT("the memory of space {} must lie at a multiple of {} bytes"), space,
              segment_alignment);
}

Error internal::missing_constant(ErrorInfo& info, const ProgramView& p, uint32_t i) {
  const ConstantView c = p.constant(i);
  switch (c.source) {
    case format::ConstantSource::embedded:
      break;
    case format::ConstantSource::external:
      return fail(info, Error::invalid_argument,
                  TAPER_TEXT("constant {} lies in another file, which was not given"), i, 0, 0,
                  c.path);
    case format::ConstantSource::slot:
      return fail(info, Error::invalid_argument,
                  TAPER_TEXT("constant {} is a slot to which nothing was given"), i, 0, 0, c.path);
  }
  return fail(info, Error::not_supported,
              TAPER_TEXT("constant {} is not in the file in a form that kernels here read"), i, 0,
              0, c.path);
}

namespace {

using internal::count_of;
using internal::fail;
using internal::ProgramData;

Error invalid(ErrorInfo& info, const char* message, int64_t a = 0, int64_t b = 0) {
  return fail(info, Error::invalid_program, message, a, b);
}

// Checks the header, the checksum and the FlatBuffers structure.
Error open(Span<const std::byte> file, const format::Program*& table, ErrorInfo& info) {
  if (reinterpret_cast<uintptr_t>(file.data()) % file_alignment != 0)
    return fail(info, Error::invalid_argument,
                TAPER_TEXT("the program must lie at a multiple of {} bytes"), file_alignment);
  FileHeader h;
  if (static_cast<size_t>(file.size()) < sizeof h)
    return invalid(info, TAPER_TEXT("this is not a Taper program: the file is too short"));
  std::memcpy(&h, file.data(), sizeof h);
  if (std::memcmp(h.magic, file_magic, sizeof h.magic) != 0)
    return invalid(info, TAPER_TEXT("this is not a Taper program"));
  if (h.version < oldest_readable_version || h.version > format_version)
    return invalid(info, TAPER_TEXT("format version {} is unknown; this runtime reads up to {}"),
                   h.version, format_version);
  const uint64_t size = static_cast<uint64_t>(file.size());
  if (h.file_bytes != size)
    return invalid(
        info,
        TAPER_TEXT("the file is cut short or damaged: it has {} bytes, and its header says {}"),
        file.size(), static_cast<int64_t>(h.file_bytes));
  if (h.flags != 0 || h.metadata_offset % segment_alignment != 0 || h.metadata_offset < sizeof h ||
      h.metadata_offset > size || h.metadata_bytes > size - h.metadata_offset)
    return invalid(info, TAPER_TEXT("the header is damaged"));
  const auto metadata =
      file.part(static_cast<index_t>(h.metadata_offset), static_cast<index_t>(h.metadata_bytes));
  if (checksum(metadata) != h.metadata_checksum)
    return invalid(info, TAPER_TEXT("the metadata's checksum differs: the file is damaged"));

  if (!internal::structure::is_valid(metadata, internal::structure::program) ||
      !format::ProgramBufferHasIdentifier(metadata.data()))
    return invalid(info, TAPER_TEXT("the metadata's structure is damaged"));
  table = format::GetProgram(metadata.data());
  return internal::verify_program(file, *table, internal::ProgramView(*table), info);
}

// Finds the debug segment, if there is one.
Error open_debug(Span<const std::byte> file, const format::Program& table,
                 const format::Debug*& debug, ErrorInfo& info) {
  for (const format::Segment& s : internal::span_of(table.segments())) {
    if (s.kind() != format::SegmentKind::debug) continue;
    const auto bytes =
        file.part(static_cast<index_t>(s.offset()), static_cast<index_t>(s.size_bytes()));
    if (!internal::structure::is_valid(bytes, internal::structure::debug))
      return invalid(info, TAPER_TEXT("the debug segment is damaged"));
    debug = flatbuffers::GetRoot<format::Debug>(bytes.data());
    return Error::ok;
  }
  return Error::ok;
}

// Whether the operator has this name, which is its schema up to the parenthesis.
bool has_name(const Operator& op, const flatbuffers::String& name) {
  return std::strncmp(op.text, name.c_str(), name.size()) == 0 && op.text[name.size()] == '(';
}

/// Whether a record has the stored operator, schema and dtypes.
bool fits(const Kernel& k, const format::Kernel& wanted) {
  if (!has_name(*k.op, *wanted.op()) || schema_hash(*k.op) != wanted.schema_hash()) return false;
  const Span<const uint8_t> dtypes = internal::span_of(wanted.dtypes());
  index_t next = 0;
  for (int i = 0; i < k.expected_count; ++i) {
    const Expected& e = k.expected[i];
    if (e.kind != Kind::tensor) continue;
    if (next == dtypes.size()) return false;
    const uint8_t d = dtypes[next++];
    const bool may_be_none = e.optional | e.list;  // a list may be empty
    if (d == 255 ? !may_be_none : (e.dtypes & one(static_cast<DType>(d))) == 0) return false;
  }
  return next == dtypes.size();
}

Error find_devices(ProgramData& p, const LoadOptions& options, ErrorInfo& info) {
  p.space_count =
      count_of(p.table->spaces()) > 0 ? static_cast<int>(count_of(p.table->spaces())) : 1;
  for (int i = 1; i < p.space_count; ++i) {
    const format::Space* s = p.table->spaces()->Get(static_cast<uint32_t>(i));
    for (Device* d : options.devices)
      if (s->name()->string_view() == d->name() && d->ordinal() == s->ordinal()) p.devices[i] = d;
    if (p.devices[i] == nullptr)
      return fail(info, Error::not_supported,
                  TAPER_TEXT("the program needs a device that was not given"), i, 0, 0,
                  s->name()->c_str());
  }
  return Error::ok;
}

// Finds a record for each kernel of the program. `next` has one number for each of them.
Error find_kernels(ProgramData& p, KernelSet host, const LoadOptions& options, uint32_t* next,
                   ErrorInfo& info) {
  // Goes through each set only once. The wanted kernels are chained by the hash of their operator.
  constexpr uint32_t chains = 64;
  uint32_t first[chains];
  for (uint32_t& f : first) f = internal::none;
  for (index_t i = 0; i < p.view.kernels.size(); ++i) {
    uint32_t& f = first[p.view.kernels[i].schema_hash() % chains];
    next[i] = f, f = static_cast<uint32_t>(i), p.kernels[i] = nullptr;
  }
  for (int space = 0; space < p.space_count; ++space)
    for (const Kernel* k : space == 0 ? host : p.devices[space]->kernels())
      for (uint32_t i = first[k->hash % chains]; i != internal::none; i = next[i]) {
        const format::Kernel& wanted = p.view.kernels[i];
        if (k->hash == static_cast<uint32_t>(wanted.schema_hash()) && p.kernels[i] == nullptr &&
            wanted.space() == space && options.cpu.has(k->needs) && fits(*k, wanted))
          p.kernels[i] = k;
      }
  for (index_t i = 0; i < p.view.kernels.size(); ++i) {
    const format::Kernel& wanted = p.view.kernels[i];
    if (p.kernels[i] != nullptr) continue;
    const Span<const uint8_t> d = internal::span_of(wanted.dtypes());
    return fail(info, Error::missing_kernel,
                TAPER_TEXT("no linked kernel fits this operator with the program's dtypes"),
                d.size() > 0 ? d[0] : -1, d.size() > 1 ? d[1] : -1, d.size() > 2 ? d[2] : -1,
                wanted.op()->c_str());
  }
  return Error::ok;
}

// Finds the elements of a constant that is not in the file. `placed` stays as it is if they were
// not given.
Error find_given(const internal::ConstantView& c, index_t i, const LoadOptions& options,
                 internal::PlacedConstant& placed, ErrorInfo& info) {
  index_t wrong = -1;  // the bytes of one that does not fit
  for (const GivenConstant& g : options.constants) {
    if (g.key.size() != c.key.size() ||
        std::memcmp(g.key.data(), c.key.data(), static_cast<size_t>(c.key.size())) != 0)
      continue;
    // halves, and f32 in halves, may have the same bytes, and so the same hash
    const size_t bytes = stored_bytes(c.bytes, g.layout);
    wrong = g.bytes.size();
    if (static_cast<size_t>(wrong) != bytes + slack_bytes ||
        reinterpret_cast<uintptr_t>(g.bytes.data()) % static_cast<size_t>(size_bytes(c.dtype)) != 0)
      continue;
    placed = {g.bytes.data(), bytes, g.layout};
    return Error::ok;
  }
  if (wrong < 0) return Error::ok;
  return fail(info, Error::invalid_argument,
              TAPER_TEXT("constant {} was given {} bytes, or at an odd address; with the slack "
                         "behind it, it has {}"),
              i, wrong, static_cast<int64_t>(c.bytes + slack_bytes), c.path);
}

// Constants stay in the file, or where the caller has them. Constants of a device are copied to its
// memory.
Error place_constants(ProgramData& p, const LoadOptions& options, ErrorInfo& info) {
  size_t used[max_spaces] = {};
  for (index_t i = 0; i < p.view.constants.size(); ++i) {
    const internal::ConstantView c = p.view.constant(i);
    const int space = c.space;
    internal::PlacedConstant& placed = p.constants[i];
    placed = internal::stored_constant(p.file, p.view, c);
    if (!c.is_embedded()) TAPER_TRY(find_given(c, i, options, placed, info));
    if (space == 0 || placed.data == nullptr) continue;
    const size_t bytes = placed.bytes;
    const Span<std::byte> memory = space <= options.device_memory.size()
                                       ? options.device_memory[space - 1]
                                       : Span<std::byte>();
    TAPER_TRY(internal::check_device_memory(memory, space, info));
    const size_t begin = used[space], capacity = static_cast<size_t>(memory.size());
    if (begin > capacity || bytes + slack_bytes > capacity - begin)
      return fail(info, Error::out_of_memory,
                  TAPER_TEXT("the device memory for constants is too small"), memory.size());
    used[space] = internal::rounded_up(begin + bytes + slack_bytes);
    std::byte* place = memory.data() + begin;
    if (Error e = p.devices[space]->copy_in(place, placed.data, bytes); e != Error::ok)
      return fail(info, e, TAPER_TEXT("copying a constant failed"), i);
    placed.data = place;
  }
  for (int s = 1; s < p.space_count; ++s)
    if (Error e = p.devices[s]->wait(); e != Error::ok)
      return fail(info, e, TAPER_TEXT("copying constants to space {} failed"), s);
  return Error::ok;
}

// Uses the packed constants in `memory`, if they were packed for these kernels.
Error take_packed(ProgramData& p, Span<const std::byte> memory, ErrorInfo& info) {
  const auto* packed = reinterpret_cast<const internal::PackedConstants*>(memory.data());
  const size_t size = static_cast<size_t>(memory.size());
  const index_t count = p.view.constants.size();
  if (reinterpret_cast<uintptr_t>(packed) % segment_alignment != 0 ||
      size < internal::PackedConstants::bytes_of(count) || packed->bytes > size ||
      packed->key != internal::packing_key(p))
    return fail(info, Error::invalid_argument,
                TAPER_TEXT("the packed constants are not of this program and its kernels"));
  for (index_t i = 0; i < count; ++i)
    if (const auto& entry = packed->of(i); entry.layout != Layout::dense)
      p.constants[i] = {memory.data() + entry.place, static_cast<size_t>(entry.bytes),
                        entry.layout};
  return Error::ok;
}

// Finds a backend for each delegate. An instruction whose delegate has none is refused later.
void find_backends(ProgramData& p, const LoadOptions& options) {
  for (index_t i = 0; i < count_of(p.table->delegates()); ++i) {
    const format::Delegate& d = *p.table->delegates()->Get(static_cast<uint32_t>(i));
    p.delegates[i] = {nullptr, nullptr};
    for (Backend* b : options.backends)
      if (d.backend()->string_view() == b->name() && b->reads(d.version()))
        p.delegates[i].backend = b;
  }
}

// Hands each backend its blobs. If one is refused, all that were loaded are unloaded.
Error load_delegates(ProgramData& p, ErrorInfo& info) {
  Context context{nullptr, 0, nullptr, &info};
  for (index_t i = 0; i < count_of(p.table->delegates()); ++i) {
    internal::LoadedDelegate& d = p.delegates[i];
    if (d.backend == nullptr) continue;
    const format::Delegate& table = *p.table->delegates()->Get(static_cast<uint32_t>(i));
    const format::Piece& blob = *table.blob();
    const uint64_t begin = p.view.segments[blob.segment()].offset() + blob.offset();
    const Error e = d.backend->load(
        p.file.part(static_cast<index_t>(begin), static_cast<index_t>(blob.size_bytes())), context,
        d.loaded);
    if (e == Error::ok) continue;
    p.unload_delegates(i);
    info.error = e, info.subject = table.backend()->c_str();
    return e;
  }
  return Error::ok;
}

// Finds all that the program needs, and verifies its methods.
Error complete(ProgramData& p, KernelSet kernels, const LoadOptions& options, uint32_t* next,
               ErrorInfo& info) {
  TAPER_TRY(find_devices(p, options, info));
  TAPER_TRY(find_kernels(p, kernels, options, next, info));
  find_backends(p, options);
  for (index_t i = 0; i < count_of(p.table->methods()); ++i)
    TAPER_TRY(internal::verify_method(p, *p.method(i), info));
  Error e = place_constants(p, options, info);
  if (e == Error::ok && !options.packed.empty()) e = take_packed(p, options.packed, info);
  if (e == Error::ok) e = load_delegates(p, info);
  if (e != Error::ok) (void)p.end_on_devices(DeviceUser::program, &p);
  return e;
}

// The memory that `load` takes from the metadata, always in this order; the same when measuring.
struct Parts {
  ProgramData* data;
  const Kernel** kernels;
  internal::PlacedConstant* constants;
  internal::LoadedDelegate* delegates;
  uint32_t* next;  ///< one for each kernel, only while kernels are looked for

  Parts(Arena& arena, const format::Program& table)
      : data(arena.take<ProgramData>(1)),
        kernels(arena.take<const Kernel*>(count_of(table.kernels()))),
        constants(arena.take<internal::PlacedConstant>(count_of(table.constants()))),
        delegates(arena.take<internal::LoadedDelegate>(count_of(table.delegates()))),
        next(arena.take<uint32_t>(count_of(table.kernels()))) {}
};

}  // namespace

uint64_t internal::packing_key(const ProgramData& p) {
  uint64_t key;
  std::memcpy(&key, p.file.data() + offsetof(FileHeader, metadata_checksum), sizeof key);
  // so that memory packed by older versions, whose entries lack `bytes`, has another key
  key = ~key;
  for (index_t i = 0; i < p.view.kernels.size(); ++i) {
    const char* name = p.kernels[i]->name;
    key = checksum(
        {reinterpret_cast<const std::byte*>(name), static_cast<index_t>(std::strlen(name))}, key);
  }
  return key;
}

Result<Program> Program::load(Span<const std::byte> file, KernelSet kernels,
                              Span<std::byte> metadata, const LoadOptions& options) {
  ErrorInfo unread;
  ErrorInfo& info = options.info != nullptr ? *options.info : unread;
  const format::Program* table = nullptr;
  const format::Debug* debug = nullptr;
  TAPER_TRY(open(file, table, info));
  TAPER_TRY(open_debug(file, *table, debug, info));

  Arena arena(metadata);
  Parts parts(arena, *table);
  if (arena.exhausted())
    return fail(info, Error::out_of_memory, TAPER_TEXT("{} bytes of metadata are too few"),
                metadata.size());
  ProgramData& p = *new (parts.data) ProgramData{file,
                                                 table,
                                                 internal::ProgramView(*table),
                                                 debug,
                                                 parts.kernels,
                                                 parts.constants,
                                                 parts.delegates,
                                                 {},
                                                 1};
  const Error e = complete(p, kernels, options, parts.next, info);
  if (e != Error::ok) return p.sessions = ProgramData::closed, e;
  return Program(&p);
}

Result<size_t> Program::metadata_bytes(Span<const std::byte> file) {
  ErrorInfo info;
  const format::Program* table = nullptr;
  TAPER_TRY(open(file, table, info));
  Arena arena = Arena::measuring();
  Parts parts(arena, *table);
  return arena.used() + alignof(ProgramData);  // the caller's memory may have any alignment
}

index_t Program::method_count() const {
  return data_->is_open() ? count_of(data_->table->methods()) : 0;
}

const char* Program::method_name(index_t i) const {
  return i >= 0 && i < method_count() ? data_->method(i)->name()->c_str() : nullptr;
}

Result<index_t> Program::find_method(const char* name) const {
  for (index_t i = 0; i < method_count(); ++i)
    if (std::strcmp(method_name(i), name) == 0) return i;
  return Error::invalid_argument;
}

Error Program::verify_segments(ErrorInfo* info) const {
  TAPER_REQUIRE(data_->is_open(), invalid_argument);
  ErrorInfo unread;
  index_t i = 0;
  for (const format::Segment& s : internal::span_of(data_->table->segments())) {
    const auto bytes =
        data_->file.part(static_cast<index_t>(s.offset()), static_cast<index_t>(s.size_bytes()));
    if (s.checksum() != 0 && s.checksum() != checksum(bytes))
      return invalid(info != nullptr ? *info : unread,
                     TAPER_TEXT("the checksum of segment {} differs: the file is damaged"), i);
    ++i;
  }
  return Error::ok;
}

const format::Program& Program::table() const { return *data_->table; }
Span<const std::byte> Program::file() const {
  return data_->is_open() ? data_->file : Span<const std::byte>();
}
const Kernel& Program::kernel(index_t i) const { return *data_->kernels[i]; }

}  // namespace taper
