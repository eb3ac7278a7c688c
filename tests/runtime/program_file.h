// Writes small programs by hand, for tests of the runtime: every table can be reached, and so be
// made wrong.
#pragma once
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "taper/kernels/kernel.h"
#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::test {

using format::ArgumentForm;
using format::ArgumentKind;
using format::InstructionKind;
using format::NumberType;
using format::Operation;
using format::Region;
using format::Storage;
using format::SymbolSource;

inline constexpr uint32_t none = 0xffffffffu;

/// Bytes at a multiple of 64.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size = 0) : lines_((size + 63) / 64), size_(size) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  size_t size() const { return size_; }
  operator Span<std::byte>() { return {data(), static_cast<index_t>(size_)}; }
  operator Span<const std::byte>() const { return {data(), static_cast<index_t>(size_)}; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  size_t size_;
};

/// A method's tables. Functions return the index of what they add.
struct MethodTables {
  std::string name = "forward";
  std::vector<format::Symbol> symbols;
  std::vector<format::Expression> expressions;
  std::vector<format::Buffer> buffers;
  std::vector<uint32_t> above, dims;
  std::vector<format::Shape> shapes;
  std::vector<format::Value> values;
  std::vector<format::Argument> arguments;
  std::vector<int64_t> lists;
  std::vector<format::Instruction> instructions;
  struct Port {
    std::string name;
    uint32_t value, other;
    NumberType type;
  };
  std::vector<Port> inputs, outputs;  // `other`: a symbol or an expression
  struct Condition {
    uint32_t condition;
    std::string message;
    std::vector<uint32_t> values;
  };
  std::vector<Condition> checks;
  std::vector<std::string> symbol_names;  // beside `symbols`

  uint32_t symbol(SymbolSource source, uint32_t first, uint32_t second, int64_t low, int64_t high,
                  NumberType type = NumberType::i64) {
    symbols.emplace_back(low, high, first, second, source, type);
    return size(symbols) - 1;
  }
  uint32_t literal(int64_t v, NumberType type = NumberType::i64) {
    return node(Operation::literal, type, 0, 0, 0, v);
  }
  uint32_t of_symbol(uint32_t s, NumberType type = NumberType::i64) {
    return node(Operation::symbol, type, s);
  }
  uint32_t node(Operation op, NumberType type, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0,
                int64_t literal = 0) {
    expressions.emplace_back(literal, a, b, c, op, type);
    return size(expressions) - 1;
  }
  uint32_t times(uint32_t a, uint32_t b) {
    return node(Operation::multiply, NumberType::i64, a, b);
  }

  uint32_t buffer(uint32_t bytes, std::vector<uint32_t> below = {},
                  Region region = Region::activations, int space = 0) {
    buffers.emplace_back(bytes, size(above), size(below), region, static_cast<uint8_t>(space));
    above.insert(above.end(), below.begin(), below.end());
    return size(buffers) - 1;
  }
  uint32_t shape(std::vector<uint32_t> sizes, std::vector<uint32_t> strides) {
    shapes.emplace_back(size(dims), static_cast<uint8_t>(sizes.size()));
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    dims.insert(dims.end(), strides.begin(), strides.end());
    return size(shapes) - 1;
  }
  /// With dense strides.
  uint32_t shape(std::vector<uint32_t> sizes) {
    std::vector<uint32_t> strides(sizes.size());
    uint32_t stride = literal(1);
    for (size_t i = sizes.size(); i-- > 0;) strides[i] = stride, stride = times(stride, sizes[i]);
    return shape(sizes, strides);
  }
  uint32_t value(Storage storage, uint32_t index, uint32_t shape, DType dtype = DType::f32,
                 int64_t offset = 0) {
    values.emplace_back(index, literal(offset), shape, none, storage,
                        static_cast<format::DType>(dtype));
    return size(values) - 1;
  }

  static format::Argument tensor(uint32_t v) {
    return {v, 0, ArgumentKind::tensor, ArgumentForm::literal};
  }
  static format::Argument absent() { return {0, 0, ArgumentKind::tensor, ArgumentForm::absent}; }
  static format::Argument integer(int64_t v) {
    return {v, 0, ArgumentKind::integer, ArgumentForm::literal};
  }
  static format::Argument number(uint32_t expression) {
    return {expression, 0, ArgumentKind::integer, ArgumentForm::expression};
  }
  static format::Argument real(double v) {
    int64_t bits;
    std::memcpy(&bits, &v, 8);
    return {bits, 0, ArgumentKind::real, ArgumentForm::literal};
  }
  format::Argument tensors(std::vector<int64_t> v) {
    return list(v, ArgumentKind::tensor, ArgumentForm::list);
  }
  format::Argument list(std::vector<int64_t> v, ArgumentKind kind, ArgumentForm form) {
    lists.insert(lists.end(), v.begin(), v.end());
    return {static_cast<int64_t>(lists.size() - v.size()), size(v), kind, form};
  }
  uint32_t instruction(InstructionKind kind, uint32_t target,
                       std::vector<format::Argument> args = {}, uint32_t condition = 0,
                       int queue = 0) {
    instructions.emplace_back(target, size(arguments), static_cast<uint16_t>(args.size()),
                              static_cast<uint16_t>(0), condition, static_cast<uint8_t>(queue),
                              kind);
    arguments.insert(arguments.end(), args.begin(), args.end());
    return size(instructions) - 1;
  }
  uint32_t delegate(uint32_t delegate, std::vector<format::Argument> args, uint16_t results,
                    uint32_t constants = 0) {
    instructions.emplace_back(delegate, size(arguments), static_cast<uint16_t>(args.size()),
                              results, constants, static_cast<uint8_t>(0),
                              InstructionKind::delegate);
    arguments.insert(arguments.end(), args.begin(), args.end());
    return size(instructions) - 1;
  }
  uint32_t run(uint32_t kernel, std::vector<format::Argument> args, int queue = 0) {
    return instruction(InstructionKind::kernel, kernel, args, 0, queue);
  }
  void input(std::string name, uint32_t value) {
    inputs.push_back({name, value, none, NumberType::i64});
  }
  void output(std::string name, uint32_t value) {
    outputs.push_back({name, value, none, NumberType::i64});
  }

  template <class T>
  static uint32_t size(const std::vector<T>& v) {
    return static_cast<uint32_t>(v.size());
  }
};

/// A program's shared tables and its methods; `bytes()` writes the file.
struct ProgramFile {
  struct KernelEntry {
    std::string op;
    uint64_t hash;
    std::vector<uint8_t> dtypes;
    int space;
  };
  struct ConstantEntry {
    std::string path;
    DType dtype;
    std::vector<int64_t> sizes;
    std::vector<std::byte> data;
    format::ConstantSource source = format::ConstantSource::embedded;
    int space = 0;
    int unknown = 0;    // encodings in a layout of a newer version; they come first
    int encodings = 1;  // equal ones
    format::Layout layout = format::Layout::dense;  // of the encodings
    std::vector<int64_t> encoded;                   // their sizes; empty: those of the constant
    std::vector<uint8_t> hash;                      // of the dense bytes; empty: not written
    std::string external_file, slot;
  };
  struct QuantizationEntry {
    format::QuantizationScheme scheme;
    uint32_t axis, scales, zero_points;
  };
  struct StateEntry {
    std::string path;
    DType dtype;
    std::vector<int64_t> sizes;
    uint32_t initial;
    int space;
  };
  std::vector<KernelEntry> kernels;
  std::vector<ConstantEntry> constants;
  std::vector<StateEntry> states;
  std::vector<QuantizationEntry> quantizations;
  std::vector<MethodTables> methods;
  std::vector<std::string> spaces, strings, delegates;
  std::vector<std::byte> blob;  // of each delegate
  std::vector<format::Queue> queues;
  std::vector<std::vector<std::string>> sources;  // per method, per instruction: the debug segment
  bool all_fields = false;  // writes fields that equal their default, too: they can be overwritten

  uint32_t kernel(const Operator& op, std::vector<DType> dtypes, int space = 0) {
    std::vector<uint8_t> d;
    for (DType t : dtypes) d.push_back(static_cast<uint8_t>(t));
    kernels.push_back({std::string(name_of(op)), schema_hash(op), d, space});
    return static_cast<uint32_t>(kernels.size()) - 1;
  }
  template <class T>
  uint32_t constant(std::string path, std::vector<int64_t> sizes, std::vector<T> data) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    constants.push_back(
        {path, dtypes_of<T>::dtype, sizes, {bytes, bytes + data.size() * sizeof(T)}});
    return static_cast<uint32_t>(constants.size()) - 1;
  }
  uint32_t state(std::string path, std::vector<int64_t> sizes, DType dtype, uint32_t initial = none,
                 int space = 0) {
    states.push_back({path, dtype, sizes, initial, space});
    return static_cast<uint32_t>(states.size()) - 1;
  }
  AlignedBytes bytes() const;
};

/// Writes the checksum that fits the metadata, after a test changed it.
void fix_checksum(AlignedBytes& file);

}  // namespace taper::test
