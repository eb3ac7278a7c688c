#include "taper/runtime/program/structure.h"

#include "taper/schema/program_generated.h"

namespace taper::internal::structure {
namespace {

using namespace format;

constexpr uint8_t offset_bytes = sizeof(flatbuffers::uoffset_t);

constexpr Field all[] = {
    {program, Program::VT_NAME, Kind::string, 0, false},
    {program, Program::VT_PRODUCER, Kind::string, 0, false},
    {program, Program::VT_SEGMENTS, Kind::vector, sizeof(Segment), false},
    {program, Program::VT_SPACES, Kind::tables, space, false},
    {program, Program::VT_QUEUES, Kind::vector, sizeof(Queue), false},
    {program, Program::VT_STRINGS, Kind::strings, 0, false},
    {program, Program::VT_KERNELS, Kind::tables, kernel, false},
    {program, Program::VT_DELEGATES, Kind::tables, delegate, false},
    {program, Program::VT_CONSTANTS, Kind::tables, constant, false},
    {program, Program::VT_STATES, Kind::tables, state, false},
    {program, Program::VT_QUANTIZATIONS, Kind::tables, quantization, false},
    {program, Program::VT_METHODS, Kind::tables, method, false},
    {program, Program::VT_TARGETS, Kind::tables, target, false},

    {space, Space::VT_NAME, Kind::string, 0, true},
    {space, Space::VT_ORDINAL, Kind::value, 4, false},

    {kernel, Kernel::VT_OP, Kind::string, 0, true},
    {kernel, Kernel::VT_SCHEMA_HASH, Kind::value, 8, false},
    {kernel, Kernel::VT_DTYPES, Kind::vector, 1, false},
    {kernel, Kernel::VT_SPACE, Kind::value, 1, false},

    {delegate, Delegate::VT_BACKEND, Kind::string, 0, true},
    {delegate, Delegate::VT_VERSION, Kind::value, 4, false},
    {delegate, Delegate::VT_BLOB, Kind::value, sizeof(Piece), false},
    {delegate, Delegate::VT_OPTIONS, Kind::tables, option, false},
    {delegate, Delegate::VT_NODES, Kind::strings, 0, false},

    {option, Option::VT_KEY, Kind::string, 0, true},
    {option, Option::VT_VALUE, Kind::string, 0, true},

    {constant, Constant::VT_PATH, Kind::string, 0, false},
    {constant, Constant::VT_DTYPE, Kind::value, 1, false},
    {constant, Constant::VT_SIZES, Kind::vector, 8, false},
    {constant, Constant::VT_SOURCE, Kind::value, 1, false},
    {constant, Constant::VT_ENCODINGS, Kind::tables, encoding, false},
    {constant, Constant::VT_CONTENT_HASH, Kind::vector, 1, false},
    {constant, Constant::VT_EXTERNAL_FILE, Kind::string, 0, false},
    {constant, Constant::VT_SLOT, Kind::string, 0, false},
    {constant, Constant::VT_SPACE, Kind::value, 1, false},

    {encoding, Encoding::VT_DTYPE, Kind::value, 1, false},
    {encoding, Encoding::VT_SIZES, Kind::vector, 8, false},
    {encoding, Encoding::VT_DATA, Kind::value, sizeof(Piece), false},
    {encoding, Encoding::VT_QUANTIZATION, Kind::value, 4, false},
    {encoding, Encoding::VT_LAYOUT, Kind::value, 1, false},

    {state, State::VT_PATH, Kind::string, 0, true},
    {state, State::VT_KIND, Kind::value, 1, false},
    {state, State::VT_DTYPE, Kind::value, 1, false},
    {state, State::VT_SIZES, Kind::vector, 8, false},
    {state, State::VT_INITIAL, Kind::value, 4, false},
    {state, State::VT_SPACE, Kind::value, 1, false},

    {quantization, Quantization::VT_SCHEME, Kind::value, 1, false},
    {quantization, Quantization::VT_SCALE, Kind::value, 8, false},
    {quantization, Quantization::VT_ZERO_POINT, Kind::value, 8, false},
    {quantization, Quantization::VT_AXIS, Kind::value, 4, false},
    {quantization, Quantization::VT_GROUP, Kind::value, 4, false},
    {quantization, Quantization::VT_SCALES, Kind::value, 4, false},
    {quantization, Quantization::VT_ZERO_POINTS, Kind::value, 4, false},
    {quantization, Quantization::VT_QUANT_MIN, Kind::value, 8, false},
    {quantization, Quantization::VT_QUANT_MAX, Kind::value, 8, false},

    {method, Method::VT_NAME, Kind::string, 0, true},
    {method, Method::VT_INPUTS, Kind::tables, input, false},
    {method, Method::VT_OUTPUTS, Kind::tables, output, false},
    {method, Method::VT_INPUT_TREE, Kind::string, 0, false},
    {method, Method::VT_OUTPUT_TREE, Kind::string, 0, false},
    {method, Method::VT_SYMBOLS, Kind::vector, sizeof(Symbol), false},
    {method, Method::VT_SYMBOL_NAMES, Kind::strings, 0, false},
    {method, Method::VT_EXPRESSIONS, Kind::vector, sizeof(Expression), false},
    {method, Method::VT_CHECKS, Kind::tables, check, false},
    {method, Method::VT_BUFFERS, Kind::vector, sizeof(Buffer), false},
    {method, Method::VT_ABOVE, Kind::vector, 4, false},
    {method, Method::VT_SHAPES, Kind::vector, sizeof(Shape), false},
    {method, Method::VT_DIMS, Kind::vector, 4, false},
    {method, Method::VT_VALUES, Kind::vector, sizeof(Value), false},
    {method, Method::VT_ARGUMENTS, Kind::vector, sizeof(Argument), false},
    {method, Method::VT_LISTS, Kind::vector, 8, false},
    {method, Method::VT_INSTRUCTIONS, Kind::vector, sizeof(Instruction), false},
    {method, Method::VT_LOWER_BOUND_BYTES, Kind::value, 8, false},

    {input, Input::VT_NAME, Kind::string, 0, true},
    {input, Input::VT_VALUE, Kind::value, 4, false},
    {input, Input::VT_SYMBOL, Kind::value, 4, false},
    {input, Input::VT_TYPE, Kind::value, 1, false},

    {output, Output::VT_NAME, Kind::string, 0, true},
    {output, Output::VT_VALUE, Kind::value, 4, false},
    {output, Output::VT_EXPRESSION, Kind::value, 4, false},

    {check, Check::VT_CONDITION, Kind::value, 4, false},
    {check, Check::VT_MESSAGE, Kind::string, 0, true},
    {check, Check::VT_VALUES, Kind::vector, 4, false},

    {target, Target::VT_NAME, Kind::string, 0, false},
    {target, Target::VT_KERNEL_SETS, Kind::strings, 0, false},
    {target, Target::VT_MEMORY_BYTES, Kind::value, 8, false},
    {target, Target::VT_EXACT, Kind::value, 1, false},

    {debug, Debug::VT_TEXTS, Kind::strings, 0, false},
    {debug, Debug::VT_METHODS, Kind::tables, method_debug, false},

    {method_debug, MethodDebug::VT_INSTRUCTIONS, Kind::vector, sizeof(InstructionDebug), false},
    {method_debug, MethodDebug::VT_VALUE_NAMES, Kind::vector, 4, false},
};
constexpr uint8_t field_count = sizeof all / sizeof *all;

// The fields of table t begin at all[first.of[t]] and end before all[first.of[t + 1]].
struct Firsts {
  uint8_t of[table_count + 1] = {};
};
constexpr Firsts first = [] {
  Firsts f;
  for (const Field& field : all)
    for (int later = field.owner + 1; later <= table_count; ++later) ++f.of[later];
  return f;
}();
constexpr bool is_ordered() {
  for (int i = 1; i < field_count; ++i)
    if (all[i - 1].owner > all[i].owner) return false;
  return true;
}
static_assert(is_ordered());

class Structure {
 public:
  explicit Structure(Span<const std::byte> bytes)
      : bytes_(reinterpret_cast<const uint8_t*>(bytes.data())),
        verifier_(bytes_, static_cast<size_t>(bytes.size())),
        left_(static_cast<size_t>(bytes.size())) {}

  bool has_root(Table root) { return is_target(0, Kind::tables, root); }

 private:
  // Whether `place` holds a valid offset to what the field says. For a vector of tables or strings,
  // `place` is an element of the vector.
  bool is_target(size_t place, Kind kind, uint8_t content) {
    const flatbuffers::uoffset_t offset = verifier_.VerifyOffset(place);
    if (offset == 0) return false;
    const size_t at = place + offset;
    if (kind == Kind::string)
      return verifier_.VerifyString(reinterpret_cast<const flatbuffers::String*>(bytes_ + at));
    return kind == Kind::tables ? is_table(at, content)
                                : verifier_.VerifyVectorOrString(bytes_ + at, content) &&
                                      takes(size_t{content} * count_at(at));
  }

  // Writers give each vector its own bytes, so all vectors together are smaller than the file.
  // Without this limit, a file of a megabyte could use one long vector in many tables. Verifying
  // such a file would take hours.
  bool takes(size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  flatbuffers::uoffset_t count_at(size_t vector) const {
    return flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes_ + vector);
  }

  bool is_vector(size_t place, Kind kind, uint8_t content) {
    if (!is_target(place, Kind::vector, offset_bytes)) return false;
    const size_t at = place + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes_ + place);
    const size_t count = count_at(at);
    for (size_t i = 1; i <= count; ++i)
      if (!is_target(at + i * offset_bytes, kind, content)) return false;
    return true;
  }

  bool is_table(size_t at, uint8_t which) {
    const auto* table = reinterpret_cast<const flatbuffers::Table*>(bytes_ + at);
    if (!verifier_.VerifyTableStart(bytes_ + at)) return false;
    for (const Field* f = all + first.of[which]; f != all + first.of[which + 1]; ++f) {
      const flatbuffers::voffset_t offset = table->GetOptionalFieldOffset(f->slot);
      if (offset == 0 ? f->required : !is_field(at + offset, *f)) return false;
    }
    return verifier_.EndTable();
  }

  bool is_field(size_t at, const Field& f) {
    switch (f.kind) {
      case Kind::value:  // the alignment of a field: the largest power of two that divides its size
        return verifier_.VerifyAlignment(at, f.content & -f.content) &&
               verifier_.Verify(at, f.content);
      case Kind::strings:
        return is_vector(at, Kind::string, 0);
      case Kind::tables:
        return is_vector(at, Kind::tables, f.content);
      default:
        return is_target(at, f.kind, f.content);
    }
  }

  const uint8_t* bytes_;
  flatbuffers::Verifier verifier_;
  size_t left_;  // bytes that vectors may still take
};

}  // namespace

Span<const Field> fields() { return all; }

bool is_valid(Span<const std::byte> bytes, Table root) {
  return bytes.size() >= 16 && static_cast<uint64_t>(bytes.size()) < FLATBUFFERS_MAX_BUFFER_SIZE &&
         Structure(bytes).has_root(root);
}

}  // namespace taper::internal::structure
