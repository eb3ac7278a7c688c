// The loader's view of a program: FlatBuffers' vectors as spans, and the data that `Program::load`
// adds. Only the loader, sessions and methods include this. Applications use program.h.
#pragma once
#include <atomic>

#include "taper/kernels/kernel.h"
#include "taper/runtime/core/error.h"
#include "taper/runtime/device/backend.h"
#include "taper/runtime/device/device.h"
#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::internal {

/// "No such thing", for an index.
inline constexpr uint32_t none = 0xffffffffu;

template <class T>
Span<const T> span_of(const flatbuffers::Vector<const T*>* structs) {
  // an empty vector may lie at any address
  if (structs == nullptr || structs->size() == 0) return {};
  return {reinterpret_cast<const T*>(structs->Data()), static_cast<index_t>(structs->size())};
}
template <class T>
Span<const T> span_of(const flatbuffers::Vector<T>* scalars) {
  if (scalars == nullptr || scalars->size() == 0) return {};
  return {reinterpret_cast<const T*>(scalars->Data()), static_cast<index_t>(scalars->size())};
}
template <class T>
index_t count_of(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : static_cast<index_t>(vector->size());
}
inline const char* text_of(const flatbuffers::String* s) {
  return s == nullptr ? nullptr : s->c_str();
}

/// A vector of tables as a range.
template <class T>
class Tables {
 public:
  Tables() = default;
  Tables(const flatbuffers::Vector<flatbuffers::Offset<T>>* vector)
      : first_(vector == nullptr ? nullptr : vector->Data()), size_(count_of(vector)) {}
  Tables(const uint8_t* first, index_t size) : first_(first), size_(size) {}

  index_t size() const { return size_; }
  bool has(uint64_t i) const { return i < static_cast<uint64_t>(size_); }
  const T& operator[](index_t i) const { return *Iterator{first_ + i * step}; }

  struct Iterator {
    const uint8_t* at;
    const T& operator*() const {
      return *reinterpret_cast<const T*>(at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at));
    }
    Iterator& operator++() { return at += step, *this; }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() const { return {first_}; }
  Iterator end() const { return {first_ + size_ * step}; }

 private:
  static constexpr index_t step = sizeof(flatbuffers::uoffset_t);
  const uint8_t* first_ = nullptr;
  index_t size_ = 0;
};

/// A constant's fields. One function reads them, because accessors in many places take more code.
struct ConstantView {
  explicit ConstantView(const format::Constant&);

  const char* path;  ///< may be nullptr
  Span<const int64_t> sizes;
  Tables<format::Encoding> encodings;
  /// The key of a constant that is not embedded: the name of its slot, or its SHA-256. Empty if it
  /// has none.
  Span<const std::byte> key;
  DType dtype;
  format::ConstantSource source;
  uint8_t space;
  bool has_type;  ///< the dtype and sizes are valid
  size_t bytes;   ///< of its dense elements, if it has a type

  bool is_embedded() const { return source == format::ConstantSource::embedded; }
};

/// The tables that methods share. The views point into the file; reading one costs only a load.
struct ProgramView {
  explicit ProgramView(const format::Program& p);

  ConstantView constant(uint64_t i) const {
    return ConstantView(constants[static_cast<index_t>(i)]);
  }

  Span<const format::Segment> segments;
  Span<const format::Queue> queues;
  Tables<format::Kernel> kernels;
  Tables<format::Constant> constants;
  Tables<format::State> states;
};

/// The tables of a method.
struct MethodView {
  explicit MethodView(const format::Method& m);  // not inline, which keeps the runtime small

  Tables<format::Input> inputs;
  Tables<format::Output> outputs;
  Tables<format::Check> checks;
  Span<const format::Symbol> symbols;
  Span<const format::Expression> expressions;
  Span<const format::Buffer> buffers;
  Span<const uint32_t> above;
  Span<const format::Shape> shapes;
  Span<const uint32_t> dims;
  Span<const format::Value> values;
  Span<const format::Argument> arguments;
  Span<const int64_t> lists;
  Span<const format::Instruction> instructions;
};

/// The beginning of the memory for packed constants. Then comes an entry for each constant, then
/// the constants themselves.
struct PackedConstants {
  uint64_t key;    ///< packing_key of the program
  uint64_t bytes;  ///< of the whole memory

  struct Entry {
    uint64_t place;  ///< from the start of the memory
    uint64_t bytes;
    Layout layout;  ///< dense: not packed
    uint8_t unused[7];
  };
  Entry& of(index_t constant) { return reinterpret_cast<Entry*>(this + 1)[constant]; }
  const Entry& of(index_t constant) const {
    return const_cast<PackedConstants*>(this)->of(constant);
  }
  /// The bytes of this beginning, with the entries.
  static constexpr size_t bytes_of(index_t constants) {
    return sizeof(PackedConstants) + static_cast<size_t>(constants) * sizeof(Entry);
  }
};

/// Where and how the elements of a constant lie.
struct PlacedConstant {
  const void* data;  ///< nullptr: not in this file, or in no form that this runtime reads
  size_t bytes;
  Layout layout;

  bool is_packed() const { return layout != Layout::dense; }
};

/// A part of a program that a backend runs.
struct LoadedDelegate {
  Backend* backend;  ///< nullptr: none was given that reads it, so no instruction may use it
  void* loaded;      ///< what the backend made of the blob
};

/// A loaded program, at the start of the caller's metadata. After `load`, only its count of
/// sessions changes.
struct ProgramData {
  Span<const std::byte> file;
  const format::Program* table;
  ProgramView view;
  const format::Debug* debug;  ///< nullptr: stripped
  const Kernel** kernels;      ///< one for each entry of table->kernels()
  PlacedConstant* constants;
  LoadedDelegate* delegates;    ///< one for each entry of table->delegates()
  Device* devices[max_spaces];  ///< of each space; nullptr: the host
  int space_count;
  mutable std::atomic<uint32_t> sessions{0};  ///< number of open ones, or `closed`

  static constexpr uint32_t closed = UINT32_MAX;
  bool is_open() const { return sessions.load(std::memory_order_relaxed) != closed; }
  /// Counts one more session. False: the program is closed.
  bool add_session() const {
    uint32_t open = sessions.load(std::memory_order_relaxed);
    while (open != closed && !sessions.compare_exchange_weak(open, open + 1)) {
    }
    return open != closed;
  }
  /// Tells the devices that `user` ends, once they have nothing left to do. Even if a device
  /// reports an error, `user` ends.
  Error end_on_devices(DeviceUser user, const void* which) const;
  /// Unloads the first `count` delegates, as far as they have a backend.
  void unload_delegates(index_t count) const;

  const format::Method* method(index_t i) const {
    return table->methods()->Get(static_cast<uint32_t>(i));
  }
  /// The space of a queue. A program without queues has queue 0, on the host.
  int space_of_queue(int queue) const {
    return view.queues.empty() ? 0 : view.queues[queue].space();
  }
};

/// The space in which a value of the method lies.
int space_of(const ProgramData& p, const MethodView& m, const format::Value& v);

/// Whether a value, whose storage is a buffer, lies in the buffer of an input. The inputs have been
/// verified.
bool is_input_buffer(const MethodView& m, const format::Value& v);

/// Rounds up to a multiple of 64, where buffers, states and regions start. `bytes` is far below
/// SIZE_MAX.
constexpr size_t rounded_up(size_t bytes) {
  return (bytes + segment_alignment - 1) / segment_alignment * segment_alignment;
}

/// Fills `info` and returns the error.
Error fail(ErrorInfo& info, Error error, const char* message, int64_t a, int64_t b, int64_t c,
           const char* subject);
#ifdef TAPER_NO_MESSAGES
/// For builds without message texts, in which the numbers would mean nothing. Not passing them
/// saves a kilobyte.
Error fail(ErrorInfo& info, Error error);
inline Error fail(ErrorInfo& info, Error error, const char*, int64_t = 0, int64_t = 0,
                  int64_t = 0) {
  return fail(info, error);
}
#else
inline Error fail(ErrorInfo& info, Error error, const char* message, int64_t a = 0, int64_t b = 0,
                  int64_t c = 0) {
  return fail(info, error, message, a, b, c, nullptr);
}
#endif

/// The size of a dense tensor: elements * size_bytes(dtype). False if a size is negative or the
/// product exceeds memory.
bool dense_bytes(Span<const int64_t> sizes, DType dtype, size_t& bytes);

/// Verifies what FlatBuffers' verifier does not: every index, offset, count, enumerator, type and
/// order. The first function verifies the program's tables. The second verifies its methods, after
/// the kernels were found. Afterwards only sizes need checks.
Error verify_program(Span<const std::byte> file, const format::Program&, const ProgramView&,
                     ErrorInfo&);
Error verify_method(const ProgramData&, const format::Method&, ErrorInfo&);

/// The key of packed constants. It depends on the file's metadata and on the records that were
/// taken.
uint64_t packing_key(const ProgramData&);

/// The first encoding of a constant that is in the file, has the constant's dtype, and lies at a
/// multiple of the element size.
PlacedConstant stored_constant(Span<const std::byte> file, const ProgramView&, const ConstantView&);

/// Says why constant `i` cannot be read: not_supported, or invalid_argument if it was not given.
Error missing_constant(ErrorInfo&, const ProgramView&, uint32_t i);

/// Refuses memory of a device that does not start at a multiple of 64: invalid_argument.
Error check_device_memory(Span<std::byte> memory, int space, ErrorInfo& info);

}  // namespace taper::internal
