// A program that has everything the format has, and ways to make one thing of it wrong.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fake_backend.h"
#include "fake_device.h"
#include "program_file.h"
#include "taper/runtime/program/program.h"

namespace taper::test {

namespace ops {
/// Arguments of every kind that `add`, `join` and `fill` lack.
inline constexpr Operator many{"many", Category::kernel,
                               "test::many(Tensor? first, Tensor?[] rest, int count, float scale, "
                               "bool flag, ScalarType dtype, float[] factors) -> Tensor"};
}  // namespace ops

/// A fake device with a name of its own, which can refuse to copy.
class NamedDevice : public FakeDevice {
 public:
  explicit NamedDevice(const char* name) : FakeDevice(1 << 14), name_(name) {}
  const char* name() const override { return name_; }
  Error copy_in(void* device, const void* host, size_t bytes) override {
    return refuses_copies ? Error::device_failed : FakeDevice::copy_in(device, host, bytes);
  }
  bool refuses_copies = false;

 private:
  const char* name_;
};

/// A file between its writing and its loading.
struct WrittenFile {
  AlignedBytes bytes;
  Span<const std::byte> part;  ///< what is loaded

  FileHeader header() const;
  void set_header(const FileHeader& h) { std::memcpy(bytes.data(), &h, sizeof h); }
  const format::Program& program() const;
  const format::Method& method() const { return *program().methods()->Get(0); }
};

/// What became of a program: `message` of the first step that refused it.
struct Outcome {
  Error error = Error::ok;
  std::string message;
};

/// forward(x: f32[n, t], k, flag, real, index: i64[2], spare: f32[2, n]): lists, a loop, jumps,
/// states, texts, expressions of all types, two devices with a queue each, constants, copies, late
/// symbols. The indices of what edits refer to stand here.
struct Everything {
  Everything();
  MethodTables& method() { return file.methods[0]; }

  ProgramFile file;
  // expressions: a literal of each type, and one that is no literal
  uint32_t one, half, yes, n;
  // symbols
  uint32_t first, late;
  // values; `a`, `q`, `copied`: activations; `on_first`, `on_second`: of devices
  uint32_t x, index, spare, y, a, q, copied, on_first, on_second, weights, device_weights, total;
  // instructions
  uint32_t add, loop_begin, loop_end, jump_unless, jump, join, fill, many, copy, to_first,
      device_add, wait, bind;

  FakeBackend backend;  // of no instruction; an edit adds one
  NamedDevice devices[2] = {NamedDevice("first"), NamedDevice("second")};
  std::vector<const Kernel*> kernels;
  size_t withheld = 0;               ///< bytes of metadata that `load` lacks
  size_t withheld_device = 0;        ///< the same of the first device's memory for constants
  std::vector<GivenConstant> given;  ///< what `load` gets for constants that are not in the file
  Span<const std::byte> packed;      ///< what `load` gets as packed constants

  /// Adds an instruction of the fake backend: result = 3 (first + second).
  void add_delegate(uint32_t first, uint32_t second, uint32_t result, uint16_t results = 1) {
    file.delegates = {"fake"}, file.blob = {std::byte{3}};
    const auto tensor = MethodTables::tensor;
    method().delegate(0, {tensor(first), tensor(second), tensor(result)}, results);
  }
  /// The arguments of an instruction.
  format::Argument& argument(uint32_t instruction, uint32_t i) {
    return method().arguments[method().instructions[instruction].arguments_first() + i];
  }
  /// Changes to the written tables; their checksum is written again.
  void then(std::function<void(WrittenFile&)> change) { table_changes.push_back(change); }
  /// Changes after which nothing is mended.
  void at_last(std::function<void(WrittenFile&)> change) { last_changes.push_back(change); }

  std::vector<std::function<void(WrittenFile&)>> table_changes, last_changes;
};

/// The program as a file, with all changes.
WrittenFile write(const Everything& e);
/// Loads, looks at the segments, creates the session and the method, executes with the largest
/// sizes, and with the smallest and a bound input.
Outcome run(Everything& e);

// ---- the fields of the schema's structs, which the generated classes only read ----

struct SegmentFields {
  uint64_t offset, size_bytes, checksum;
  format::SegmentKind kind;
};
struct PieceFields {
  uint32_t segment, alignment;
  uint64_t offset, size_bytes;
};
struct SymbolFields {
  int64_t minimum, maximum;
  uint32_t first, second;
  format::SymbolSource source;
  format::NumberType type;
};
struct ExpressionFields {
  int64_t literal;
  uint32_t a, b, c;
  format::Operation operation;
  format::NumberType type;
};
struct BufferFields {
  uint32_t size_bytes, above_first, above_count;
  format::Region region;
  uint8_t space;
};
struct ShapeFields {
  uint32_t dims_first;
  uint8_t rank;
};
struct ValueFields {
  uint32_t storage_index, offset, shape, quantization;
  format::Storage storage;
  format::DType dtype;
};
struct ArgumentFields {
  int64_t content;
  uint32_t count;
  format::ArgumentKind kind;
  format::ArgumentForm form;
};
struct InstructionFields {
  uint32_t target, arguments_first;
  uint16_t arguments_count, results;
  uint32_t condition;
  uint8_t queue;
  format::InstructionKind kind;
};

/// set(m.buffers[0], &BufferFields::space, 9); an enumerator may be any number.
template <class Struct, class Fields, class T>
void set(Struct& s, T Fields::*field, long long value) {
  static_assert(sizeof(Fields) == sizeof(Struct));
  Fields fields;
  std::memcpy(&fields, &s, sizeof fields);
  fields.*field = static_cast<T>(value);
  std::memcpy(static_cast<void*>(&s), &fields, sizeof fields);
}
/// The same in a written file.
template <class Struct, class Fields, class T>
void overwrite(const Struct& s, T Fields::*field, long long value) {
  set(const_cast<Struct&>(s), field, value);
}

/// Writes over the number in a field of a written table.
template <class T>
void overwrite_field(const void* table, flatbuffers::voffset_t field, T value) {
  auto* t = static_cast<flatbuffers::Table*>(const_cast<void*>(table));
  std::memcpy(t->GetAddressOf(field), &value, sizeof value);
}
/// Takes a field out of a written table.
void drop_field(const void* table, flatbuffers::voffset_t field);
/// Lets a vector of structs begin 4 bytes later, with one element.
void misalign(const void* table, flatbuffers::voffset_t field);

// ---- rules ----

/// One change and what it is.
struct Edit {
  const char* what;
  std::function<void(Everything&)> make;
};
/// An Edit by expressions of `e`, and of its method's tables `m`.
#define EDIT(what, ...)                      \
  Edit {                                     \
    what, [](Everything& e) {                \
      [[maybe_unused]] auto& m = e.method(); \
      __VA_ARGS__;                           \
    }                                        \
  }
/// A refusal in the source, by its message, and all that must meet it.
struct Refusal {
  const char* message;
  std::vector<Edit> edits;
  Error error = Error::invalid_program;
};

std::vector<Refusal> refusals_of_files();         // runtime/program/program.cpp
std::vector<Refusal> refusals_of_programs();      // runtime/program/verify_program.cpp
std::vector<Refusal> refusals_of_methods();       // runtime/program/verify_method.cpp
std::vector<Refusal> refusals_of_instructions();  // the same, from `lists` on
std::vector<Refusal> refusals_of_sizes();         // runtime/method/tables.cpp, update.cpp

}  // namespace taper::test
