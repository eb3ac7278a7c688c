// Computes everything that depends on symbols again, when a size changes.
#include "taper/runtime/method/method_data.h"
#include "taper/runtime/program/expressions.h"

namespace taper::internal {
namespace {

using format::NumberType;

RegionIndex region_of(const format::Buffer& b) {
  return b.region() == format::Region::io ? io : activations;
}

int64_t size_at(const MethodData& m, uint32_t expression) { return m.numbers[expression]; }

// Whether a tensor in panels fits into `bytes`. No product can overflow: there are at most as many
// rows of panels as elements.
bool holds_panels(size_t bytes, const TensorRef& t) {
  const Shape& s = *t.shape;
  index_t across = s.sizes[t.layout == Layout::panels_of_last];
  if (s.rank < 2 || across <= 0) return false;
  const bool is_stack = s.rank == 3 && is_in_blocks(t.layout);
  if (is_stack) {  // each of its matrices fills whole panels
    if (s.sizes[1] % panel_width != 0 || s.numel() <= 0) return false;
    across = s.numel() / s.sizes[2];
  }
  const BlockSize block = block_of(t.layout);
  const index_t depth = s.numel() / across, panels = (across - 1) / panel_width + 1;
  const index_t row = panel_width * block.bytes;                       // bytes
  const index_t rows = (depth + block.elements - 1) / block.elements;  // of one panel
  index_t room = static_cast<index_t>(bytes) / row;                    // rows
  if (is_in_blocks(t.layout)) {
    if ((s.rank != 2 && !is_stack) || depth % block.elements != 0 || rows > room) return false;
    // a panel begins at a multiple of 64, and the last one ends at one
    const index_t panel = (rows * row + 63) / 64 * 64;
    return panel == 0 || panels <= static_cast<index_t>(bytes) / panel;
  }
  if (t.layout == Layout::winograd_panels) room = room / 16 * 9;  // elements of a filter
  return rows * panels <= room;
}

// Whether blocks do not reach from one row of the tensor into the next.
bool holds_blocks(const TensorRef& t) {
  const Shape& s = *t.shape;
  return s.rank > 0 && s.is_dense() && s.sizes[s.rank - 1] % block_of(t.layout).elements == 0;
}

// The bytes of a constant as views count them, which is 4 for an f32 element. 0: it does not hold
// `t`.
size_t bytes_as_f32(const PlacedConstant& c, const TensorRef& t, int64_t offset) {
  if (c.layout == Layout::dense) return c.bytes;
  if (offset != 0) return 0;
  const BlockSize block = block_of(c.layout);
  if (!has_exact_size(c.layout)) {
    if (!holds_panels(c.bytes, t)) return 0;
  } else if (is_in_blocks(c.layout) && !holds_blocks(t)) {
    return 0;
  }
  return c.bytes / block.bytes * block.elements * sizeof(float);
}

Error evaluate_numbers(MethodData& m, Symbols changed) {
  for (Touched t(m, Table::expressions, changed); t.next();)
    if (!evaluate(m.view.expressions.data(), static_cast<size_t>(t.entry), m.symbols, m.numbers,
                  m.numbers[t.entry]))
      return m.fail(Error::invalid_argument,
                    TAPER_TEXT("expression {} overflows or divides by zero for these sizes"),
                    t.entry);
  return Error::ok;
}

Error test_checks(MethodData& m, Symbols changed) {
  for (Touched t(m, Table::checks, changed); t.next();) {
    const format::Check& c = m.view.checks[t.entry];
    const uint32_t condition = c.condition();
    const Symbols bits = m.number_bits[condition];
    if (!needs(bits, changed) || (bits & m.unbound) != 0 || m.numbers[condition] != 0) continue;
    int64_t values[3] = {};
    index_t k = 0;
    for (const uint32_t v : span_of(c.values())) values[k++] = m.numbers[v];
    return m.fail(Error::invalid_argument, c.message()->c_str(), values[0], values[1], values[2]);
  }
  return Error::ok;
}

// The end of the topmost buffer of a region.
size_t peak_of(const MethodData& m, int space, RegionIndex region) {
  size_t peak = 0;
  for (index_t i = 0; i < m.view.buffers.size(); ++i) {
    const format::Buffer& b = m.view.buffers[i];
    const size_t end = m.blocks[i].place + m.blocks[i].bytes;
    if (b.space() == space && region_of(b) == region && end > peak) peak = end;
  }
  return peak;
}

// A buffer starts where the highest of the buffers below it ends. Io buffers keep the places that
// they had at the maximum, because they keep their content.
Error place_buffers(MethodData& m, Symbols changed, bool at_maximum) {
  int full = -1;  // a space whose activation memory is too small
  for (Touched t(m, Table::buffers, changed); t.next();) {
    const index_t i = t.entry;
    const format::Buffer& b = m.view.buffers[i];
    Block& block = m.blocks[i];
    const int64_t size = size_at(m, b.size_bytes());
    if (size < 0 || size > PTRDIFF_MAX / 2)
      return m.fail(Error::invalid_program, TAPER_TEXT("buffer {} has {} bytes"), i, size);
    block.bytes = static_cast<size_t>(size);
    const RegionIndex region = region_of(b);
    if (region == io && !at_maximum) {
      if (block.bytes > block.capacity)
        return m.fail(
            Error::out_of_memory,
            TAPER_TEXT("buffer {} needs {} bytes, more than at the maximum of every symbol"), i,
            size);
      continue;
    }
    size_t place = 0;
    for (const uint32_t below : m.view.above.part(b.above_first(), b.above_count())) {
      const size_t end = m.blocks[below].place + m.blocks[below].bytes;
      if (end > place) place = end;
    }
    block.place = rounded_up(place);
    if (at_maximum) block.capacity = block.bytes;
    const size_t end = block.place + block.bytes;
    if (end > PTRDIFF_MAX / 4)
      return m.fail(Error::out_of_memory, TAPER_TEXT("buffers are larger than memory can be"));
    if (end > 0 && end + slack_bytes > m.regions[b.space()][activations].capacity) full = b.space();
  }
  for (int s = 0; at_maximum && s < m.program->space_count; ++s)
    for (const RegionIndex r : {activations, io}) m.regions[s][r].peak = peak_of(m, s, r);
  if (full < 0 || at_maximum) return Error::ok;
  return m.fail(Error::out_of_memory,
                TAPER_TEXT("these sizes need {} bytes of activations, {} are there"),
                static_cast<int64_t>(peak_of(m, full, activations) + slack_bytes),
                static_cast<int64_t>(m.regions[full][activations].capacity));
}

Error fill_shapes(MethodData& m, Symbols changed) {
  for (Touched t(m, Table::shapes, changed); t.next();) {
    const index_t i = t.entry;
    const format::Shape& s = m.view.shapes[i];
    Shape& shape = m.shapes[i];
    shape.rank = s.rank();
    index_t product = 1;
    bool empty = false;
    for (index_t k = 0; k < s.rank(); ++k) {
      int64_t size = size_at(m, m.view.dims[s.dims_first() + k]);
      int64_t stride = size_at(m, m.view.dims[s.dims_first() + s.rank() + k]);
      // such as n - 1, while n is not known yet
      if ((m.shape_bits[i] & m.unbound) != 0) {
        if (size < 0) size = 0;
        if (stride < 0) stride = 0;
      }
      // counts elements even where a stride is 0, and limits the count even if another extent is 0
      if (size < 0 || size > PTRDIFF_MAX || stride < 0 || stride > PTRDIFF_MAX ||
          __builtin_mul_overflow(product, static_cast<index_t>(size > 0 ? size : 1), &product))
        return m.fail(Error::invalid_program,
                      TAPER_TEXT("shape {} has an extent {} with stride {}"), i, size, stride);
      shape.sizes[k] = static_cast<index_t>(size), shape.strides[k] = static_cast<index_t>(stride);
      empty |= size == 0;
    }
    // Without elements the strides of the file may be anything. But kernels still step by them, so
    // they become dense.
    product = 1;
    for (int k = shape.rank; empty && k-- > 0;) {
      shape.strides[k] = product;
      if (shape.sizes[k] > 0) product *= shape.sizes[k];
    }
  }
  return Error::ok;
}

void fill_numbers(MethodData& m, Symbols changed) {
  for (Touched t(m, Table::arguments, changed); t.next();) {
    const format::Argument& a = m.view.arguments[t.entry];
    Slot& s = m.slots[t.entry];
    if (a.form() == format::ArgumentForm::expression) {
      s.integer = m.numbers[a.content()];
    } else if (a.form() == format::ArgumentForm::expression_list) {
      int64_t* numbers = const_cast<int64_t*>(s.integers);  // points into list_pool
      for (uint32_t k = 0; k < a.count(); ++k)
        numbers[k] = m.numbers[m.view.lists[static_cast<index_t>(a.content() + k)]];
    }
  }
}

// Computes everything that follows from symbols, except `prepare`. All early symbols are bound.
Error update(MethodData& m, Symbols changed, bool at_maximum) {
  TAPER_TRY(evaluate_numbers(m, changed));
  if (!at_maximum) TAPER_TRY(test_checks(m, changed));
  TAPER_TRY(place_buffers(m, changed, at_maximum));
  TAPER_TRY(fill_shapes(m, changed));
  fill_numbers(m, changed);
  return at_maximum ? Error::ok : place_values(m, changed);
}

bool has_arguments_to_prepare(const Instruction& i) {
  return i.fresh == Step::kernel || (i.fresh >= Step::device_kernel && i.fresh < Step::bind);
}

// Gives symbol `i` a value. If the value is new, adds the symbol's bit to `changed`.
Error set_symbol(MethodData& m, index_t i, int64_t value, Symbols& changed) {
  TAPER_TRY(check_range(m, i, value));
  if (m.symbols[i] != value)
    m.symbols[i] = value, changed |= m.symbol_bits[i], m.consistent = false;
  return Error::ok;
}

int64_t least(const format::Symbol& s) { return s.type() == NumberType::i64 ? s.minimum() : 0; }

// Reads an element of a host tensor as a number of the symbol's type.
Error read_element(MethodData& m, const format::Symbol& s, int64_t& result) {
  const TensorRef& t = m.values[s.first()];
  if (!t.shape->is_dense() || static_cast<int64_t>(s.second()) >= t.shape->numel())
    return m.fail(Error::invalid_program, TAPER_TEXT("element {} of value {} does not exist"),
                  s.second(), s.first());
  const std::byte* at = static_cast<const std::byte*>(t.data) +
                        size_t{s.second()} * static_cast<size_t>(size_bytes(t.dtype));
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (t.dtype) {
    case DType::boolean:
      result = as(uint8_t{}) != 0;
      break;
    case DType::u8:
      result = as(uint8_t{});
      break;
    case DType::i8:
      result = as(int8_t{});
      break;
    case DType::i16:
      result = as(int16_t{});
      break;
    case DType::i32:
      result = as(int32_t{});
      break;
    case DType::i64:
      result = as(int64_t{});
      break;
    case DType::f16:
      result = bits_of(static_cast<double>(static_cast<float>(as(Half{}))));
      break;
    case DType::bf16:
      result = bits_of(static_cast<double>(static_cast<float>(as(BFloat16{}))));
      break;
    case DType::f32:
      result = bits_of(static_cast<double>(as(float{})));
      break;
    case DType::f64:
      result = as(int64_t{});
      break;
    default:  // `load` lets no other dtype through
      result = 0;
  }
  return Error::ok;
}

Error update_and_prepare(MethodData& m, Symbols changed) {
  m.consistent = false;
  TAPER_TRY(update(m, changed, false));
  for (Touched t(m, Table::instructions, changed); t.next();) {
    const index_t i = t.entry;
    if (!has_arguments_to_prepare(m.instructions[i])) continue;
    if ((m.instructions[i].depends & (late_symbols | m.unbound)) != 0) {
      m.instructions[i].step = Step::stale;
      continue;
    }
    TAPER_TRY(check_overlaps(m, i));  // perhaps its buffers have only moved
    if (needs(m.instructions[i].depends, changed)) TAPER_TRY(prepare(m, i));
  }
  m.consistent = true;
  return Error::ok;
}

// Sets late symbols, and with `elements` also elements of inputs, to their minimum until they are
// bound. Then views whose sizes depend on them fit into their storage, whatever the other sizes
// are.
Error forget(MethodData& m, bool elements, Symbols& changed) {
  for (index_t i = 0; i < m.view.symbols.size(); ++i) {
    const format::Symbol& s = m.view.symbols[i];
    if ((m.symbol_bits[i] & late_symbols) == 0 &&
        !(elements && s.source() == format::SymbolSource::element))
      continue;
    m.unbound |= m.symbol_bits[i];
    TAPER_TRY(set_symbol(m, i, least(s), changed));
  }
  return Error::ok;
}

// Compares the shape given for each input with the shape that its value has now. No value may read
// behind memory that the caller bound.
Error compare_inputs(MethodData& m) {
  for (index_t i = 0; i < m.view.inputs.size(); ++i) {
    const format::Input& in = m.view.inputs[i];
    if (in.value() == none) continue;
    const Shape &given = m.given[i].shape, &expected = *m.values[in.value()].shape;
    for (int k = 0; k < given.rank; ++k)
      if (given.sizes[k] != expected.sizes[k])
        return fail(
            m.info, Error::invalid_argument,
            TAPER_TEXT("dimension {} of an input is {}, and must be {} beside the other inputs"), k,
            given.sizes[k], expected.sizes[k], in.name()->c_str());
    if (!expected.is_dense())
      return fail(m.info, Error::invalid_program, TAPER_TEXT("input {} is not dense"), i, 0, 0,
                  in.name()->c_str());
    const TensorRef& t = m.values[in.value()];
    const Block& block = m.blocks[m.view.values[in.value()].storage_index()];
    if (block.bound != nullptr && block.bytes > static_cast<size_t>(t.size_bytes()))
      return fail(m.info, Error::invalid_program,
                  TAPER_TEXT("input {} cannot be bound: its buffer is larger"), i, 0, 0,
                  in.name()->c_str());
  }
  return Error::ok;
}

}  // namespace

bool extent_bytes(const TensorRef& t, size_t& bytes) {
  index_t last = 0;
  for (int i = 0; i < t.shape->rank; ++i) {
    index_t step;
    if (t.shape->sizes[i] == 0) return bytes = 0, true;
    if (__builtin_mul_overflow(t.shape->sizes[i] - 1, t.shape->strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  index_t total;
  if (__builtin_add_overflow(last, index_t{1}, &last) ||
      __builtin_mul_overflow(last, index_t{size_bytes(t.dtype)}, &total))
    return false;
  bytes = static_cast<size_t>(total);
  return true;
}

Error check_range(MethodData& m, index_t i, int64_t value) {
  const format::Symbol& s = m.view.symbols[i];
  if (s.type() != NumberType::i64 || (value >= s.minimum() && value <= s.maximum()))
    return Error::ok;
  const char* name = i < count_of(m.table->symbol_names())
                         ? m.table->symbol_names()->Get(static_cast<uint32_t>(i))->c_str()
                         : nullptr;
  return fail(m.info, Error::invalid_argument,
              name != nullptr ? TAPER_TEXT("{subject} = {} is outside {}..{}")
                              : TAPER_TEXT("a size is {}, and must lie in {}..{}"),
              value, s.minimum(), s.maximum(), name);
}

Error place_value(MethodData& m, index_t i) {
  const format::Value& v = m.view.values[i];
  TensorRef& t = m.values[i];
  const uint32_t at = v.storage_index();
  const int64_t elements = size_at(m, v.offset());
  std::byte* base = nullptr;
  size_t available = 0;
  switch (v.storage()) {
    case format::Storage::buffer: {
      const format::Buffer& b = m.view.buffers[at];
      const Block& block = m.blocks[at];
      const RegionMemory& region = m.regions[b.space()][region_of(b)];
      base = block.bound != nullptr ? block.bound : region.base + block.place;
      available = block.bytes;
      break;
    }
    case format::Storage::constant: {
      const PlacedConstant& c = m.program->constants[at];
      // never written: load has checked this
      base = static_cast<std::byte*>(const_cast<void*>(c.data));
      if (base == nullptr) return missing_constant(m.info, m.program->view, at);
      available = bytes_as_f32(c, t, elements);
      break;
    }
    case format::Storage::state:
      base = static_cast<std::byte*>(m.session->states[at]);
      available = m.session->state_bytes[at];
      break;
  }
  size_t extent, offset;
  if (elements < 0 || elements > PTRDIFF_MAX || !extent_bytes(t, extent) ||
      __builtin_mul_overflow(static_cast<size_t>(elements),
                             static_cast<size_t>(size_bytes(t.dtype)), &offset))
    return m.fail(Error::invalid_program, TAPER_TEXT("value {} has an offset that cannot be"), i);
  if (extent == 0) offset = 0;  // without elements its place does not matter
  t.data = nullptr;
  // a view may have another dtype than its storage, whose address then suits other elements
  const size_t alignment =
      is_complex(t.dtype) ? alignof(Complex64) : static_cast<size_t>(size_bytes(t.dtype));
  const bool is_aligned = reinterpret_cast<uintptr_t>(base) % alignment == 0;
  if (is_aligned && offset <= available && extent <= available - offset)
    t.data = base + offset;
  else if (m.placed || m.unbound != all_symbols)
    return m.fail(Error::invalid_program,
                  TAPER_TEXT("value {} does not lie aligned in its storage of {} bytes"), i,
                  static_cast<int64_t>(available));
  // else checks exclude these sizes: nothing runs until values are placed again
  return Error::ok;
}

Error place_values(MethodData& m, Symbols changed) {
  for (Touched t(m, Table::values, changed); t.next();) TAPER_TRY(place_value(m, t.entry));
  return Error::ok;
}

Error prepare_at_maximum(MethodData& m) {
  // First at the minimum: if a size shrinks when a symbol grows, the most scratch is needed there.
  // Sizes that are impossible there are no error, because no call has them.
  for (const bool at_maximum : {false, true}) {
    for (index_t i = 0; i < m.view.symbols.size(); ++i) {
      const format::Symbol& s = m.view.symbols[i];
      m.symbols[i] = at_maximum && s.type() == NumberType::i64 ? s.maximum() : least(s);
    }
    // Checks may exclude that all symbols have their maximum at the same time. An example: a
    // position and a length whose sum stays below a limit. Then some shapes may be negative.
    // Instructions with such shapes are prepared when the sizes are known.
    m.unbound = 0;
    const bool possible = at_maximum && evaluate_numbers(m, all_symbols) == Error::ok &&
                          test_checks(m, all_symbols) == Error::ok;
    if (!possible) m.unbound = all_symbols;
    if (const Error e = update(m, all_symbols, true); e != Error::ok) {
      if (at_maximum) return e;
      continue;
    }
    // otherwise nothing runs before everything is prepared for the actual sizes
    m.consistent = possible;
    for (index_t i = 0; i < m.view.instructions.size(); ++i) {
      const bool fixed = m.instructions[i].depends == 0;
      if (!has_arguments_to_prepare(m.instructions[i]) || (fixed && !at_maximum)) continue;
      if (const Error e = prepare(m, i); e != Error::ok && (possible || fixed)) return e;
    }
  }
  for (index_t i = 0; i < m.view.inputs.size(); ++i) {
    const uint32_t value = m.view.inputs[i].value();
    if (value == none) continue;
    // The caller may write the largest possible input before any sizes are checked.
    const TensorRef& t = m.values[value];
    size_t bytes = 0;
    if (!t.shape->is_dense() || !extent_bytes(t, bytes) ||
        bytes > m.blocks[m.view.values[value].storage_index()].capacity)
      return m.fail(Error::invalid_program, TAPER_TEXT("input {} does not lie in its buffer"), i);
    m.given[i].shape = *t.shape;
  }
  m.clear_info();
  return Error::ok;
}

Error bind_inputs(MethodData& m) {
  Symbols changed = m.consistent ? 0 : all_symbols;
  m.unbound = 0;
  TAPER_TRY(forget(m, false, changed));
  Symbols elements = 0;  // bits of the elements that must be read again
  if (m.inputs_changed || !m.consistent) {
    for (index_t i = 0; i < m.view.symbols.size(); ++i) {
      const format::Symbol& s = m.view.symbols[i];
      if (s.source() == format::SymbolSource::input_extent)
        TAPER_TRY(set_symbol(m, i, m.given[s.first()].shape.sizes[s.second()], changed));
      if (s.source() == format::SymbolSource::input_number)
        TAPER_TRY(set_symbol(m, i, m.given[s.first()].number, changed));
    }
    // the new sizes decide where the values lie that elements are read from
    if (changed != 0) {
      TAPER_TRY(forget(m, true, changed));
      elements = m.unbound & ~late_symbols;
      TAPER_TRY(update_and_prepare(m, changed));
      m.unbound &= late_symbols;
    }
    TAPER_TRY(compare_inputs(m));
    m.inputs_changed = false;
  }
  if (!m.has_elements) return Error::ok;
  changed = elements;
  m.consistent = m.consistent && elements == 0;
  for (index_t i = 0; i < m.view.symbols.size(); ++i) {
    const format::Symbol& s = m.view.symbols[i];
    if (s.source() != format::SymbolSource::element || (m.symbol_bits[i] & late_symbols) != 0)
      continue;
    int64_t value = 0;
    TAPER_TRY(read_element(m, s, value));
    TAPER_TRY(set_symbol(m, i, value, changed));
  }
  if (changed == 0) return Error::ok;
  TAPER_TRY(update_and_prepare(m, changed));
  m.consistent = false;  // the required shape of an input may depend on an element
  TAPER_TRY(compare_inputs(m));
  m.consistent = true;
  return Error::ok;
}

Error bind_late(MethodData& m, uint32_t symbol, int64_t counter) {
  const format::Symbol& s = m.view.symbols[symbol];
  Symbols changed = 0;
  int64_t value = counter;
  if (s.source() == format::SymbolSource::element) TAPER_TRY(read_element(m, s, value));
  TAPER_TRY(set_symbol(m, symbol, value, changed));
  m.unbound &= ~m.symbol_bits[symbol];
  if (changed == 0) return test_checks(m, m.symbol_bits[symbol]);
  TAPER_TRY(update(m, changed, false));
  for (Touched t(m, Table::instructions, changed); t.next();)
    if ((m.instructions[t.entry].depends & changed) != 0 &&
        has_arguments_to_prepare(m.instructions[t.entry]))
      m.instructions[t.entry].step = Step::stale;
  m.consistent = true;
  return Error::ok;
}

}  // namespace taper::internal
