// Turns the tables of the file into the tables that run, as far as they never change.
#include "taper/runtime/method/method_data.h"

namespace taper::internal {
namespace {

using format::ArgumentForm;
using format::ArgumentKind;
using format::InstructionKind;

// Whether an instruction binds the symbol, so that it has no value before the first instruction.
bool is_late(const MethodData& m, const format::Symbol& s) {
  switch (s.source()) {
    case format::SymbolSource::input_extent:
    case format::SymbolSource::input_number:
      return false;
    case format::SymbolSource::element: {
      const format::Value& v = m.view.values[s.first()];
      return v.storage() == format::Storage::buffer && !is_input_buffer(m.view, v);
    }
    default:
      return true;
  }
}

void fill_dependences(MethodData& m) {
  int early = 0, late = 0;
  for (index_t i = 0; i < m.view.symbols.size(); ++i) {
    const format::Symbol& s = m.view.symbols[i];
    const bool is_last_early = early == early_bits - 1, is_last_late = late == late_bits - 1;
    if (is_late(m, s)) {
      m.has_late = true;
      m.symbol_bits[i] = Symbols{1} << (early_bits + late);
      if (!is_last_late) ++late;
    } else {
      m.symbol_bits[i] = Symbols{1} << early;
      if (!is_last_early) ++early;
      m.has_elements |= s.source() == format::SymbolSource::element;
    }
  }
  for (index_t i = 0; i < m.view.expressions.size(); ++i) {
    const format::Expression& e = m.view.expressions[i];
    if (e.operation() == format::Operation::literal)
      m.number_bits[i] = 0;
    else if (e.operation() == format::Operation::symbol)
      m.number_bits[i] = m.symbol_bits[e.a()];
    else
      m.number_bits[i] = m.number_bits[e.a()] | m.number_bits[e.b()] | m.number_bits[e.c()];
  }
  for (index_t i = 0; i < m.view.shapes.size(); ++i) {
    const format::Shape& s = m.view.shapes[i];
    m.shape_bits[i] = 0;
    for (const uint32_t d : m.view.dims.part(s.dims_first(), 2 * s.rank()))
      m.shape_bits[i] |= m.number_bits[d];
  }
}

// The symbols of the value's shape and offset; with `moves`, also those of its buffer's place.
Symbols bits_of_value(const MethodData& m, int64_t i, bool moves) {
  if (i < 0) return 0;
  const format::Value& v = m.view.values[static_cast<index_t>(i)];
  const Symbols bits = m.shape_bits[v.shape()] | m.number_bits[v.offset()];
  const bool in_buffer = moves && v.storage() == format::Storage::buffer;
  return in_buffer ? bits | m.blocks[v.storage_index()].bits : bits;
}

Symbols bits_of_argument(const MethodData& m, const format::Argument& a, bool moves) {
  const bool tensors = a.kind() == ArgumentKind::tensor;
  switch (a.form()) {
    case ArgumentForm::literal:
      return tensors ? bits_of_value(m, a.content(), moves) : 0;
    case ArgumentForm::expression:
      return m.number_bits[a.content()];
    case ArgumentForm::list:
    case ArgumentForm::expression_list: {
      Symbols bits = 0;
      if (!tensors && a.form() == ArgumentForm::list) return 0;
      for (const int64_t e :
           m.view.lists.part(static_cast<index_t>(a.content()), static_cast<index_t>(a.count())))
        bits |= tensors ? bits_of_value(m, e, moves) : m.number_bits[e];
      return bits;
    }
    default:
      return 0;
  }
}

Symbols bits_of_instruction(const MethodData& m, index_t i, bool moves) {
  const format::Instruction& in = m.view.instructions[i];
  Symbols bits = 0;
  for (const format::Argument& a :
       m.view.arguments.part(in.arguments_first(), in.arguments_count()))
    bits |= bits_of_argument(m, a, moves);
  return bits;
}

// The symbols that entry `i` of a table depends on, including the place of its memory.
Symbols bits_of(const MethodData& m, Table table, index_t i) {
  switch (table) {
    case Table::expressions:
      return m.number_bits[i];
    case Table::checks:
      return m.number_bits[m.view.checks[i].condition()];
    case Table::buffers:
      return m.blocks[i].bits;
    case Table::shapes:
      return m.shape_bits[i];
    case Table::arguments: {
      const format::Argument& a = m.view.arguments[i];
      return a.kind() == ArgumentKind::tensor ? 0 : bits_of_argument(m, a, false);
    }
    case Table::values:
      return bits_of_value(m, i, true);
    default:
      return bits_of_instruction(m, i, true);
  }
}

// The group of the entries that depend on `bits`.
index_t group_of(Groups& g, Symbols bits) {
  for (index_t i = 0; i < g.count; ++i)
    if (g.bits[i] == bits) return i;
  if (g.count == g.capacity) return g.bits[g.count - 1] |= bits, g.count - 1;
  for (uint32_t* first : g.first) first[g.count] = none;
  g.bits[g.count] = bits;
  return g.count++;
}

void fill_groups(MethodData& m) {
  Groups& g = m.groups;
  g.count = 0;
  for (int t = 0; g.capacity > 0 && t < table_count; ++t)
    for (index_t i = m.groups.sizes[t]; i-- > 0;) {
      const Symbols bits = bits_of(m, static_cast<Table>(t), i);
      if (bits == 0) continue;
      uint32_t& first = g.first[t][group_of(g, bits)];
      g.next[t][i] = first;
      first = static_cast<uint32_t>(i);
    }
}

// A buffer moves if a buffer that lies below it changes. Io buffers keep their places.
void fill_blocks(MethodData& m) {
  for (index_t i = 0; i < m.view.buffers.size(); ++i) {
    const format::Buffer& b = m.view.buffers[i];
    Symbols& bits = m.blocks[i].bits = m.number_bits[b.size_bytes()];
    if (b.region() == format::Region::io) continue;
    for (const uint32_t below : m.view.above.part(b.above_first(), b.above_count()))
      bits |= m.blocks[below].bits;
  }
}

// `pool` is the memory for lists of tensors and of expressions. It is used in the order in which
// take_tables counts it.
void fill_slot(MethodData& m, const format::Argument& a, Slot& s, int64_t*& pool) {
  s.kind = static_cast<Kind>(a.kind());
  s.present = a.form() != ArgumentForm::absent;
  s.size = a.count();
  switch (a.form()) {
    case ArgumentForm::absent:
      s.tensor = nullptr, s.size = 0;
      break;
    case ArgumentForm::literal:
      if (a.kind() == ArgumentKind::tensor)
        s.tensor = &m.values[a.content()];
      else if (a.kind() == ArgumentKind::string) {
        const flatbuffers::String* text =
            m.program->table->strings()->Get(static_cast<uint32_t>(a.content()));
        s.text = text->c_str(), s.size = text->size();
      } else
        s.integer = a.content();
      break;
    case ArgumentForm::expression:
      break;  // fill_numbers fills it
    case ArgumentForm::expression_list:
      s.integers = pool;
      pool += a.count();
      break;
    case ArgumentForm::list: {
      const int64_t* elements = m.view.lists.data() + a.content();
      if (a.kind() != ArgumentKind::tensor) {
        s.integers = elements;  // for reals: their bits
        break;
      }
      const TensorRef** tensors = reinterpret_cast<const TensorRef**>(pool);
      for (uint32_t i = 0; i < a.count(); ++i)
        tensors[i] = elements[i] < 0 ? nullptr : &m.values[elements[i]];
      s.tensors = tensors;
      pool += a.count();
      break;
    }
  }
}

bool uses_pool(const format::Argument& a) {
  return a.form() == ArgumentForm::expression_list ||
         (a.form() == ArgumentForm::list && a.kind() == ArgumentKind::tensor);
}

int space_of_argument(const MethodData& m, const format::Argument& a) {
  return space_of(*m.program, m.view, m.view.values[static_cast<index_t>(a.content())]);
}

// Chains the symbols that show the counter of the loop at instruction `i`. Returns the first.
uint32_t counters_of(MethodData& m, index_t i) {
  uint32_t first = none;
  for (index_t s = m.view.symbols.size(); s-- > 0;) {
    if (m.view.symbols[s].source() != format::SymbolSource::loop_counter ||
        m.view.symbols[s].first() != static_cast<uint64_t>(i))
      continue;
    m.same_counter[s] = first;
    first = static_cast<uint32_t>(s);
  }
  return first;
}

Step step_of(const MethodData& m, const format::Instruction& in) {
  switch (in.kind()) {
    case InstructionKind::kernel:
      return m.program->space_of_queue(in.queue()) == 0 ? Step::kernel : Step::device_kernel;
    case InstructionKind::delegate:
      return Step::delegate;
    case InstructionKind::copy: {
      const format::Argument* a = &m.view.arguments[in.arguments_first()];
      const bool from = space_of_argument(m, a[0]) != 0, to = space_of_argument(m, a[1]) != 0;
      return from ? to ? Step::copy_within : Step::copy_out : to ? Step::copy_in : Step::copy;
    }
    case InstructionKind::bind:
      return Step::bind;
    case InstructionKind::wait:
      return Step::wait;
    case InstructionKind::jump:
      return Step::jump;
    case InstructionKind::jump_unless:
      return Step::jump_unless;
    case InstructionKind::loop_begin:
      return Step::loop_begin;
    default:
      return Step::loop_end;
  }
}

}  // namespace

// Without symbols nothing changes. n symbols give at most 2^n - 1 groups.
index_t group_capacity(index_t symbols) {
  return symbols < 5 ? (index_t{1} << symbols) - 1 : index_t{24};
}

Touched::Touched(const MethodData& m, Table table, Symbols changed)
    : size_(m.groups.sizes[static_cast<int>(table)]),
      next_(m.groups.next[static_cast<int>(table)]) {
  const Groups& g = m.groups;
  if (changed == all_symbols) count_ = all;
  for (index_t i = 0; i < g.count && count_ != all; ++i) {
    const uint32_t first = g.first[static_cast<int>(table)][i];
    if ((g.bits[i] & changed) == 0 || first == none) continue;
    if (count_ == most)
      count_ = all;
    else
      at_[count_++] = first;
  }
}

bool Touched::next() {
  if (count_ == all) return ++entry < size_;
  int least = 0;
  for (int i = 1; i < count_; ++i)
    if (at_[i] < at_[least]) least = i;
  if (count_ == 0 || at_[least] == none) return false;
  entry = static_cast<index_t>(at_[least]);
  at_[least] = next_[entry];
  return true;
}

bool take_tables(Arena& arena, const ProgramData& program, MethodData& m) {
  const MethodView& view = m.view;
  m.symbols = arena.take<int64_t>(view.symbols.size());
  m.symbol_bits = arena.take<Symbols>(view.symbols.size());
  m.numbers = arena.take<int64_t>(view.expressions.size());
  m.number_bits = arena.take<Symbols>(view.expressions.size());
  m.blocks = arena.take<Block>(view.buffers.size());
  m.shapes = arena.take<Shape>(view.shapes.size());
  m.shape_bits = arena.take<Symbols>(view.shapes.size());
  m.values = arena.take<TensorRef>(view.values.size());
  m.slots = arena.take<Slot>(view.arguments.size());
  m.instructions = arena.take<Instruction>(view.instructions.size());
  m.given = arena.take<Given>(view.inputs.size());
  m.same_counter = arena.take<uint32_t>(view.symbols.size());
  const index_t sizes[] = {view.expressions.size(), view.checks.size(),    view.buffers.size(),
                           view.shapes.size(),      view.arguments.size(), view.values.size(),
                           view.instructions.size()};
  std::memcpy(m.groups.sizes, sizes, sizeof sizes);
  m.groups.capacity = group_capacity(view.symbols.size());
  m.groups.bits = arena.take<Symbols>(m.groups.capacity);
  for (int t = 0; m.groups.capacity > 0 && t < table_count; ++t) {
    m.groups.first[t] = arena.take<uint32_t>(m.groups.capacity);
    m.groups.next[t] = arena.take<uint32_t>(m.groups.sizes[t]);
  }
  index_t pooled = 0;
  for (const format::Argument& a : view.arguments)
    pooled += uses_pool(a) ? static_cast<index_t>(a.count()) : 0;
  m.list_pool = arena.take<int64_t>(pooled);
  for (index_t i = 0; i < view.instructions.size(); ++i) {
    const format::Instruction& in = view.instructions[i];
    size_t bytes = 0;
    if (in.kind() == InstructionKind::kernel) {
      bytes = program.kernels[in.target()]->plan_bytes;
    } else if (in.kind() == InstructionKind::delegate) {
      const LoadedDelegate& d = program.delegates[in.target()];
      bytes = d.backend->instance_bytes(d.loaded);
    } else {
      continue;
    }
    void* plan = arena.take<std::byte>(static_cast<index_t>(bytes), alignof(int64_t));
    if (!arena.is_measuring() && !arena.exhausted()) m.instructions[i].plan = plan;
  }
  return !arena.exhausted();
}

Error fill_tables(MethodData& m) {
  fill_dependences(m);
  fill_blocks(m);
  for (index_t i = 0; i < m.view.buffers.size(); ++i) {
    if ((m.number_bits[m.view.buffers[i].size_bytes()] & late_symbols) != 0)
      return m.fail(Error::invalid_program,
                    TAPER_TEXT("the size of buffer {} is not known before the first instruction"),
                    i);
  }
  bool dense = true;
  for (index_t i = 0; i < m.view.values.size(); ++i) {
    const format::Value& v = m.view.values[i];
    m.values[i] = {nullptr, &m.shapes[v.shape()], static_cast<DType>(v.dtype()), Layout::dense};
    if (v.storage() != format::Storage::constant) continue;
    m.values[i].layout = m.program->constants[v.storage_index()].layout;
    dense = dense && (m.values[i].layout == Layout::dense ||
                      m.program->view.constants[v.storage_index()].dtype() == v.dtype());
  }
  // kernels and copies say which layouts they read; nothing else reads any
  const auto is_dense = [&](uint32_t value) {
    return value == none || m.values[value].layout == Layout::dense;
  };
  for (const format::Output& out : m.view.outputs) dense = dense && is_dense(out.value());
  for (const format::Symbol& s : m.view.symbols)
    dense = dense && (s.source() != format::SymbolSource::element || is_dense(s.first()));
  if (!dense)
    return m.fail(Error::invalid_program, TAPER_TEXT("an output, a size or a view in another dtype "
                                                     "is a constant in a layout of kernels"));
  int64_t* pool = m.list_pool;
  for (index_t i = 0; i < m.view.arguments.size(); ++i)
    fill_slot(m, m.view.arguments[i], m.slots[i], pool);

  for (index_t i = 0; i < m.view.instructions.size(); ++i) {
    const format::Instruction& in = m.view.instructions[i];
    Instruction& out = m.instructions[i];
    const Step step = step_of(m, in);
    if (in.kind() == InstructionKind::kernel)
      out.kernel = m.program->kernels[in.target()];
    else if (in.kind() == InstructionKind::delegate)
      out.delegate = &m.program->delegates[in.target()];
    else
      out.control.target = in.target(), out.control.condition = in.condition();
    int space = m.program->space_of_queue(in.queue());
    if (step == Step::wait) space = m.program->space_of_queue(static_cast<int>(in.target()));
    out.space = static_cast<uint8_t>(space & 0x7f);
    if (step == Step::loop_begin) out.control.target = counters_of(m, i);
    out.arguments = m.slots + in.arguments_first();
    out.queue = in.queue();
    out.step = out.fresh = step;
    out.depends = bits_of_instruction(m, i, false);
    if (step == Step::bind && (m.symbol_bits[in.target()] & late_symbols) == 0)
      return m.fail(
          Error::invalid_program,
          TAPER_TEXT("symbol {} is bound before the first instruction and cannot be bound again"),
          in.target());
  }
  fill_groups(m);
  return Error::ok;
}

const char* MethodData::debug_text(index_t i,
                                   uint32_t (format::InstructionDebug::*text)() const) const {
  const format::Debug* debug = program->debug;
  if (debug == nullptr || index >= count_of(debug->methods())) return nullptr;
  const auto instructions =
      span_of(debug->methods()->Get(static_cast<uint32_t>(index))->instructions());
  if (i >= instructions.size()) return nullptr;
  const uint32_t t = (instructions[i].*text)();
  return t < static_cast<uint64_t>(count_of(debug->texts())) ? debug->texts()->Get(t)->c_str()
                                                             : nullptr;
}

#ifdef TAPER_NO_MESSAGES
Error MethodData::named(Error e) { return internal::fail(info, e, nullptr, 0, 0, 0, name()); }
#else
Error MethodData::fail(Error e, const char* message, int64_t a, int64_t b, int64_t c) {
  return internal::fail(info, e, message, a, b, c, name());
}
#endif

void MethodData::clear_info() { info = {}; }

Error MethodData::fail_at(index_t i, Error e) {
  if (info.error != e) info.error = e, info.message = nullptr;
  info.instruction = static_cast<int32_t>(i);
  if (view.instructions[i].kind() == format::InstructionKind::kernel)
    info.subject = program->view.kernels[view.instructions[i].target()].op()->c_str();
  info.source = debug_text(i, &format::InstructionDebug::source);
  return e;
}

}  // namespace taper::internal
