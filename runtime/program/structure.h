// Checks whether bytes are one of the file's FlatBuffers. FlatBuffers would generate a function for
// each table. Here one function serves all tables, with a list of their fields. This takes a tenth
// of the code. A test compares the list with the schema.
#pragma once
#include <cstddef>
#include <cstdint>

#include "taper/runtime/core/span.h"

namespace taper::internal::structure {

/// The tables of schema/program.fbs that the runtime reads.
enum Table : uint8_t {
  program,
  space,
  kernel,
  delegate,
  option,
  constant,
  encoding,
  state,
  quantization,
  method,
  input,
  output,
  check,
  target,
  debug,
  method_debug,
  table_count,
};

enum class Kind : uint8_t {
  value,    ///< a number or a struct, in the table itself; `content`: its bytes
  string,   ///< zero-terminated
  vector,   ///< of numbers or structs; `content`: the bytes of one
  strings,  ///< a vector of strings
  tables,   ///< a vector of tables; `content`: which
};

struct Field {
  Table owner;
  uint8_t slot;  ///< place in the owner's vtable
  Kind kind;
  uint8_t content;
  bool required;
};

/// All fields, ordered by owner.
Span<const Field> fields();

/// Whether `bytes`, at an address that is a multiple of 8, are a FlatBuffer with this root. If so,
/// accessors read nothing outside. The meaning of the numbers is not checked.
bool is_valid(Span<const std::byte> bytes, Table root);

}  // namespace taper::internal::structure
