// What `Program::load` refuses around the tables, and in those that methods share.
#include "everything.h"

namespace taper::test {
namespace {

using Change = std::function<void(WrittenFile&)>;

// A change of the whole file, of the header, of the written tables.
std::function<void(Everything&)> file(Change change) {
  return [change](Everything& e) { e.at_last(change); };
}
template <class T>
std::function<void(Everything&)> header(T FileHeader::*field, T value) {
  return file([=](WrittenFile& f) {
    FileHeader h = f.header();
    h.*field = value;
    f.set_header(h);
  });
}
std::function<void(Everything&)> tables(Change change) {
  return [change](Everything& e) { e.then(change); };
}

template <class T>
std::function<void(Everything&)> segment(T SegmentFields::*field, long long value) {
  return tables([=](WrittenFile& f) { overwrite(*f.program().segments()->Get(0), field, value); });
}
const format::Constant& constant(const WrittenFile& f) { return *f.program().constants()->Get(0); }
const format::Encoding& encoding(const WrittenFile& f) { return *constant(f).encodings()->Get(0); }
template <class T>
std::function<void(Everything&)> piece(T PieceFields::*field, long long value) {
  return tables([=](WrittenFile& f) { overwrite(*encoding(f).data(), field, value); });
}
// Of the segment in which the constants lie.
int64_t segment_bytes(const WrittenFile& f) {
  return static_cast<int64_t>(f.program().segments()->Get(0)->size_bytes());
}

template <class T>
std::function<void(Everything&)> kernel(T ProgramFile::KernelEntry::*field, T value) {
  return [=](Everything& e) { e.file.kernels[0].*field = value; };
}
template <class T>
std::function<void(Everything&)> state(T ProgramFile::StateEntry::*field, T value) {
  return [=](Everything& e) { e.file.states[1].*field = value; };
}
constexpr auto no_dtype = static_cast<DType>(dtype_count);
constexpr uint64_t beyond = uint64_t{1} << 40;
constexpr uint8_t f32 = 8, i64 = 5, absent = 255;

alignas(64) constexpr std::byte zeros[256] = {};

// A slot of four f32, and what is given to it.
void give(Everything& e, Span<const std::byte> bytes) {
  e.file.constants[1].source = format::ConstantSource::slot;
  e.file.constants[1].slot = "adapter";
  e.given.emplace_back("adapter", bytes);
}

}  // namespace

std::vector<Refusal> refusals_of_files() {
  return {
      {"the program must lie at a multiple of {} bytes",
       {{"moved by 8 bytes",
         file([](WrittenFile& f) { f.part = f.part.part(8, f.part.size() - 8); })}},
       Error::invalid_argument},
      {"this is not a Taper program: the file is too short",
       {{"63 bytes", file([](WrittenFile& f) { f.part = f.part.part(0, 63); })},
        {"nothing", file([](WrittenFile& f) { f.part = f.part.part(0, 0); })}}},
      {"this is not a Taper program",
       {{"another first letter", file([](WrittenFile& f) { f.bytes.data()[0] = std::byte{'X'}; })},
        {"another last letter", file([](WrittenFile& f) { f.bytes.data()[7] = std::byte{0}; })}}},
      {"format version {} is unknown; this runtime reads up to {}",
       {{"the next", header(&FileHeader::version, format_version + 1)},
        {"one too old", header(&FileHeader::version, oldest_readable_version - 1)}}},
      {"the file is cut short or damaged: it has {} bytes, and its header says {}",
       {{"the last byte is lost",
         file([](WrittenFile& f) { f.part = f.part.part(0, f.part.size() - 1); })},
        {"more than there are", header(&FileHeader::file_bytes, beyond)},
        {"one less than there are", file([](WrittenFile& f) {
           FileHeader h = f.header();
           h.file_bytes -= 1;
           f.set_header(h);
         })}}},
      {"the header is damaged",
       {{"an unknown flag", header(&FileHeader::flags, 1u)},
        {"tables at no multiple of 64", header(&FileHeader::metadata_offset, uint64_t{72})},
        {"tables in the header", header(&FileHeader::metadata_offset, uint64_t{0})},
        {"tables behind the file", header(&FileHeader::metadata_offset, beyond)},
        {"tables beyond the file", header(&FileHeader::metadata_bytes, beyond)},
        {"tables one byte beyond the file", file([](WrittenFile& f) {
           FileHeader h = f.header();
           h.metadata_bytes = h.file_bytes - h.metadata_offset + 1;
           f.set_header(h);
         })}}},
      {"the metadata's checksum differs: the file is damaged",
       {{"another checksum", header(&FileHeader::metadata_checksum, uint64_t{1})},
        {"another byte", file([](WrittenFile& f) { f.bytes.data()[200] ^= std::byte{1}; })}}},
      {"the metadata's structure is damaged",
       {{"another identifier", tables([](WrittenFile& f) {
           f.bytes.data()[f.header().metadata_offset + 4] ^= std::byte{1};
         })},
        {"a root outside", tables([](WrittenFile& f) {
           std::memset(f.bytes.data() + f.header().metadata_offset, 0x7f, 4);
         })},
        {"a method without a name",
         tables([](WrittenFile& f) { drop_field(&f.method(), format::Method::VT_NAME); })}}},
      {"the debug segment is damaged",
       {{"a root outside", tables([](WrittenFile& f) {
           std::memset(f.bytes.data() + f.program().segments()->Get(1)->offset(), 0x7f, 4);
         })}}},
      {"the checksum of segment {} differs: the file is damaged",
       {{"a byte of the weights", tables([](WrittenFile& f) {
           f.bytes.data()[f.program().segments()->Get(0)->offset()] ^= std::byte{1};
         })}}},
      {"{} bytes of metadata are too few",
       {EDIT("64 bytes less", e.withheld = 64)},
       Error::out_of_memory},
      {"the program needs a device that was not given",
       {EDIT("another name", e.file.spaces[1] = "third"),
        EDIT("the start of its name", e.file.spaces[1] = "firs"),
        {"the second of this name", tables([](WrittenFile& f) {
           overwrite_field(f.program().spaces()->Get(1), format::Space::VT_ORDINAL, 1u);
         })}},
       Error::not_supported},
      {"no linked kernel fits this operator with the program's dtypes",
       {{"another operator", kernel<std::string>(&ProgramFile::KernelEntry::op, "test::subtract")},
        {"the start of its name", kernel<std::string>(&ProgramFile::KernelEntry::op, "test::ad")},
        EDIT("another schema", e.file.kernels[0].hash ^= 1),
        {"another dtype of an argument",
         kernel(&ProgramFile::KernelEntry::dtypes, {i64, f32, f32})},
        {"another dtype of the result", kernel(&ProgramFile::KernelEntry::dtypes, {f32, f32, i64})},
        {"a dtype too few", kernel(&ProgramFile::KernelEntry::dtypes, {f32, f32})},
        {"a dtype too many", kernel(&ProgramFile::KernelEntry::dtypes, {f32, f32, f32, f32})},
        {"an argument absent", kernel(&ProgramFile::KernelEntry::dtypes, {f32, absent, f32})}},
       Error::missing_kernel},
      {"the device memory for constants is too small",
       {EDIT("one byte less", e.withheld_device = 1)},
       Error::out_of_memory},
      {"constant {} was given {} bytes, or at an odd address; with the slack behind it, it has {}",
       {EDIT("without slack", give(e, {zeros, 16})),
        EDIT("an element too few", give(e, {zeros, 12 + 64})),
        EDIT("an element too many", give(e, {zeros, 20 + 64})), EDIT("nothing", give(e, {})),
        EDIT("moved by a byte", give(e, {zeros + 1, 16 + 64}))},
       Error::invalid_argument},
      {"the packed constants are not of this program and its kernels",
       {EDIT("zeros", e.packed = {zeros, 256}), EDIT("too few", e.packed = {zeros, 8}),
        EDIT("moved by 8 bytes", e.packed = {zeros + 8, 128})},
       Error::invalid_argument},
      {"copying a constant failed",
       {EDIT("the device refuses", e.devices[0].refuses_copies = true)},
       Error::device_failed},
      {"copying constants to space {} failed",
       {EDIT("the device fails later", e.devices[0].fail_next())},
       Error::device_failed},
  };
}

std::vector<Refusal> refusals_of_programs() {
  using P = format::Program;
  return {
      {"the segments are not aligned",
       {{"4 bytes later", tables([](WrittenFile& f) { misalign(&f.program(), P::VT_SEGMENTS); })}}},
      {"segment {} does not lie in the file",
       {{"at no multiple of 64", segment(&SegmentFields::offset, 72)},
        {"behind the file", segment(&SegmentFields::offset, 1 << 20)},
        {"beyond the file", segment(&SegmentFields::size_bytes, 1 << 20)},
        {"of 2^64 - 1 bytes", segment(&SegmentFields::size_bytes, -1)},
        {"of an unknown kind", segment(&SegmentFields::kind, 5)}}},
      {"the program uses {} memory spaces, at most {} work here",
       {EDIT("one too many", e.file.spaces.resize(max_spaces + 1, "third"))},
       Error::not_supported},
      {"queue 0 must be the host's",
       {EDIT("of a device", e.file.queues[0] = format::Queue(1)),
        EDIT("256 queues", e.file.queues.resize(256)),
        {"a list without queues", tables([](WrittenFile& f) {
           const uint32_t nothing = 0;
           std::memcpy(const_cast<uint8_t*>(f.program().queues()->Data()) - 4, &nothing, 4);
         })}}},
      {"queue {} has no memory space",
       {EDIT("the next space", e.file.queues[2] = format::Queue(3))}},
      {"kernel {} is damaged",
       {{"no such space", kernel(&ProgramFile::KernelEntry::space, 3)},
        {"no such dtype", kernel(&ProgramFile::KernelEntry::dtypes, {f32, f32, dtype_count})}}},
      {"quantization {} is damaged",
       {EDIT("no such scheme",
             e.file.quantizations[0].scheme = static_cast<format::QuantizationScheme>(3)),
        EDIT("no such axis", e.file.quantizations[0].axis = max_rank),
        EDIT("no such scales", e.file.quantizations[0].scales = 2),
        EDIT("no such zero points", e.file.quantizations[0].zero_points = 2)}},
      {"constant {} has no valid type",
       {EDIT("no such dtype", e.file.constants[0].dtype = no_dtype),
        EDIT("a negative size", e.file.constants[0].sizes = {-4}),
        EDIT("nine dimensions", e.file.constants[0].sizes = {4, 1, 1, 1, 1, 1, 1, 1, 1}),
        EDIT("more than can be counted", e.file.constants[0].sizes = {int64_t{1} << 62}),
        EDIT("more than can be counted beside an empty dimension",
             e.file.constants[0].sizes = {0, int64_t{1} << 40, 1 << 30}),
        {"sizes that are not aligned",
         tables([](WrittenFile& f) { misalign(&constant(f), format::Constant::VT_SIZES); })}}},
      {"constant {} is damaged",
       {{"an unknown source", tables([](WrittenFile& f) {
           overwrite_field(&constant(f), format::Constant::VT_SOURCE, uint8_t{3});
         })},
        EDIT("no such space", e.file.constants[0].space = 3),
        EDIT("17 encodings", e.file.constants[0].encodings = 17),
        EDIT("in another file, without a hash",
             e.file.constants[1].source = format::ConstantSource::external),
        EDIT("in another file, with a hash of 31 bytes",
             e.file.constants[1].source = format::ConstantSource::external,
             e.file.constants[1].hash.assign(31, 7)),
        EDIT("a slot without a name", e.file.constants[1].source = format::ConstantSource::slot,
             e.file.constants[1].hash.assign(32, 7))}},
      {"the data of constant {} does not lie in the file",
       {{"no piece",
         tables([](WrittenFile& f) { drop_field(&encoding(f), format::Encoding::VT_DATA); })},
        {"no such segment", piece(&PieceFields::segment, 2)},
        {"alignment 0", piece(&PieceFields::alignment, 0)},
        {"an alignment that is no power of two", piece(&PieceFields::alignment, 48)},
        {"an alignment above that of segments", piece(&PieceFields::alignment, 128)},
        {"an offset that its alignment excludes", piece(&PieceFields::offset, 4)},
        {"an offset behind the segment", piece(&PieceFields::offset, 1 << 20)},
        {"an offset at the segment's end", tables([](WrittenFile& f) {
           overwrite(*encoding(f).data(), &PieceFields::offset, segment_bytes(f));
         })},
        {"larger than the segment", piece(&PieceFields::size_bytes, 1 << 20)},
        {"of 2^64 - 1 bytes", piece(&PieceFields::size_bytes, -1)},
        {"without its slack", tables([](WrittenFile& f) {
           overwrite(*encoding(f).data(), &PieceFields::size_bytes,
                     segment_bytes(f) - static_cast<int64_t>(slack_bytes) + 1);
         })}}},
      {"an encoding of constant {} is damaged",
       {{"no such dtype", tables([](WrittenFile& f) {
           overwrite_field(&encoding(f), format::Encoding::VT_DTYPE, uint8_t{dtype_count});
         })},
        {"no such quantization", tables([](WrittenFile& f) {
           overwrite_field(&encoding(f), format::Encoding::VT_QUANTIZATION, 2u);
         })}}},
      {"constant {} has another size than its type, or a layout that it cannot have",
       {EDIT("an element too many", e.file.constants[0].sizes = {5}),
        EDIT("an element too few", e.file.constants[0].sizes = {3}),
        EDIT("integers in blocks", e.file.constants[1].layout = format::Layout::q4_0),
        EDIT("in halves, with the bytes of f32",
             e.file.constants[0].layout = format::Layout::dense_bf16),
        EDIT("packed on a device", e.file.constants[1].layout = format::Layout::panels_of_first,
             e.file.constants[1].space = 1)}},
      {"state {} is damaged",
       {{"no such dtype", state(&ProgramFile::StateEntry::dtype, no_dtype)},
        {"a negative size", state(&ProgramFile::StateEntry::sizes, {-1})},
        {"no such space", state(&ProgramFile::StateEntry::space, 3)},
        {"an unknown kind", tables([](WrittenFile& f) {
           overwrite_field(f.program().states()->Get(1), format::State::VT_KIND, uint8_t{5});
         })}}},
      {"the states are larger than memory can be",
       {{"one of 2^62 bytes", state(&ProgramFile::StateEntry::sizes, {int64_t{1} << 60})},
        {"three of 2^60 bytes",
         [](Everything& e) {
           for (int i = 0; i < 3; ++i) e.file.state("large", {int64_t{1} << 58}, DType::f32);
         }}}},
      {"state {} and its initial value differ in type, or that lies on a device",
       {EDIT("no such constant", e.file.states[0].initial = 2),
        EDIT("on a device", e.file.constants[0].space = 1),
        EDIT("another dtype of the same size",
             e.file.states.push_back({"whole", DType::i32, {4}, 0, 0})),
        EDIT("more elements", e.file.states[0].sizes = {5}),
        EDIT("fewer elements", e.file.states[0].sizes = {3})}},
      {"delegate {} has no blob",
       {{"no piece", tables([](WrittenFile& f) {
           drop_field(f.program().delegates()->Get(0), format::Delegate::VT_BLOB);
         })},
        {"no such segment", tables([](WrittenFile& f) {
           overwrite(*f.program().delegates()->Get(0)->blob(), &PieceFields::segment, 2);
         })}}},
  };
}

}  // namespace taper::test
