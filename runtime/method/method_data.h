// The data of a Method, and the steps that fill it. Only methods include this.
#pragma once
#include "taper/runtime/core/arena.h"
#include "taper/runtime/method/instruction.h"
#include "taper/runtime/method/session_data.h"
#include "taper/runtime/profile/profiler.h"
#include "taper/runtime/program/tables.h"

namespace taper::internal {

/// A set of symbols, as bits. Symbols that are bound before the first instruction never share a bit
/// with those that instructions bind ("late" ones). If there are more symbols than bits, some share
/// a bit. Then an entry that depends on one of them is computed again when any of them changes.
using Symbols = uint32_t;
inline constexpr int early_bits = 24, late_bits = 8;
inline constexpr Symbols late_symbols = ~Symbols{0} << early_bits;
inline constexpr Symbols all_symbols = ~Symbols{0};  ///< "everything, literals too"

/// Whether an entry that depends on `bits` must be computed again.
inline bool needs(Symbols bits, Symbols changed) {
  return changed == all_symbols || (bits & changed) != 0;
}

/// The place of a buffer in its region.
struct Block {
  size_t place, bytes;
  size_t capacity;   ///< io: the bytes at the maximum of every symbol; never changes
  std::byte* bound;  ///< io: the caller's memory, used instead; see Method::bind_input
  Symbols bits;      ///< of its size and its place
};

/// The tables whose entries are computed again when symbols change, in this order.
enum class Table : uint8_t {
  expressions,
  checks,
  buffers,
  shapes,
  arguments,
  values,
  instructions,
};
inline constexpr int table_count = 7;

/// Which entries of each table depend on which symbols. Entries that depend on the same symbols are
/// a group: a chain of ascending indices that ends with `none`. If there are more groups than
/// places, the last one takes all others. Each of its entries then counts as dependent on all
/// symbols of the group.
struct Groups {
  index_t sizes[table_count];  ///< entries of each table
  index_t count, capacity;
  Symbols* bits;                 ///< of each group
  uint32_t* first[table_count];  ///< of each group
  uint32_t* next[table_count];   ///< of each entry
};

struct MethodData;

/// Goes through the entries of a table that may depend on `changed`, in ascending order:
///
///   for (Touched t(m, Table::shapes, changed); t.next();) fill_shape(m, t.entry);
class Touched {
 public:
  Touched(const MethodData& m, Table table, Symbols changed);
  bool next();
  index_t entry = -1;

 private:
  static constexpr int most = 8;  // so many groups are merged; for more, the whole table is taken
  int count_ = 0;                 // `all`: the whole table
  static constexpr int all = -1;
  index_t size_;
  const uint32_t* next_;
  uint32_t at_[most];
};

/// An input as the caller set it.
struct Given {
  Shape shape;     ///< of a tensor; dense
  int64_t number;  ///< an i64, a boolean, or the bits of an f64
};

enum RegionIndex { activations = 0, io = 1, region_count = 2 };

/// The part of a space that a method uses.
struct RegionMemory {
  std::byte* base = nullptr;
  size_t capacity = 0;
  size_t peak = 0;  ///< where the topmost buffer ends, with the current symbols
};

struct MethodData {
  const ProgramData* program;
  SessionData* session;         ///< nullptr while only measuring
  const format::Method* table;  ///< nullptr: the method is closed
  MethodView view;
  index_t index;  ///< of the method in the program

  // one for each symbol, expression, buffer, shape, value, argument, instruction
  int64_t* symbols;
  Symbols* symbol_bits;
  int64_t* numbers;  ///< values of expressions
  Symbols* number_bits;
  Block* blocks;
  Shape* shapes;
  Symbols* shape_bits;
  TensorRef* values;
  Slot* slots;
  int64_t* list_pool;  ///< lists of tensors and of expressions that slots point to
  Instruction* instructions;
  Given* given;            ///< one for each input
  uint32_t* same_counter;  ///< the next symbol that shows the counter of the same loop
  Groups groups;

  RegionMemory regions[max_spaces][region_count];
  Context context;
  ErrorInfo info;
  Profiler* profiler;
  bool inputs_changed;  ///< a shape or number was given since the last `execute`
  bool consistent;      ///< false: an update failed half-way, and everything must be computed again
  bool placed;  ///< regions exist; `context.scratch_bytes` is the size we have, no longer the size
                ///< we need
  bool has_elements;  ///< some early symbols are elements of tensors, read at every `execute`
  bool has_late;      ///< there are late symbols
  Symbols unbound;    ///< late symbols that no instruction has bound in this `execute`, and
                      ///< elements of inputs that are not read yet

#ifdef TAPER_NO_MESSAGES
  Error fail(Error e, const char*, int64_t = 0, int64_t = 0, int64_t = 0) { return named(e); }
  Error named(Error e);
#else
  Error fail(Error e, const char* message, int64_t a = 0, int64_t b = 0, int64_t c = 0);
#endif
  void clear_info();
  /// Records in `info` that instruction `i` failed, with its source from the debug table.
  Error fail_at(index_t i, Error e);
  /// The method's name; nullptr if the method is closed.
  const char* name() const { return table != nullptr ? table->name()->c_str() : nullptr; }
  /// A text of the debug table about instruction `i`; nullptr if there is none.
  const char* debug_text(index_t i, uint32_t (format::InstructionDebug::*text)() const) const;
};

/// Takes the tables of a method, all zeros, from an arena that clears its pieces. False if memory
/// does not suffice. While the arena measures, nothing is written.
bool take_tables(Arena&, const ProgramData&, MethodData&);

/// Fills the parts of the tables that do not change: dependences, dtypes, arguments, kernels.
/// invalid_program if the size of a buffer depends on a late symbol.
Error fill_tables(MethodData&);

/// Gives every symbol its maximum, computes all sizes, and prepares every instruction. Tensors have
/// no addresses yet. Afterwards `regions[…].peak` and `context.scratch_bytes` say how much memory
/// is needed, and `consistent` says whether a call may have these sizes.
Error prepare_at_maximum(MethodData&);

/// Checks that symbol `i` may have this value: "batch = 20 is outside 1..16".
Error check_range(MethodData&, index_t i, int64_t value);

/// Binds the symbols that inputs and states decide, and updates the entries that depend on changed
/// symbols.
Error bind_inputs(MethodData&);

/// Reads a late symbol from its tensor, or sets it to `counter`, and marks the entries that depend
/// on it.
Error bind_late(MethodData&, uint32_t symbol, int64_t counter = 0);

/// Computes the address of a value, and checks that the value lies within its storage. That of a
/// constant is known before the method has memory.
Error place_value(MethodData&, index_t value);
/// Computes the addresses of values again, from regions and places, and checks that values lie
/// within their storage.
Error place_values(MethodData&, Symbols changed);

/// The bytes from the first element to the end of the last one. False if they cannot be counted.
bool extent_bytes(const TensorRef&, size_t& bytes);

/// Checks that no result of an instruction overlaps another argument, unless its kernel allows it.
Error check_overlaps(MethodData&, index_t instruction);

/// Runs the shape rule, checks the strides, and calls `prepare`.
Error prepare(MethodData&, index_t instruction);

/// Calls `end` for all plans that were prepared.
void end_plans(MethodData&);

}  // namespace taper::internal
