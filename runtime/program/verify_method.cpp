// What may be wrong with a method's tables, but its instructions. See tables.h.
#include "taper/runtime/program/method_verifier.h"

namespace taper::internal {
namespace {

using format::InstructionKind;
using format::NumberType;
using format::Operation;

constexpr int64_t max_inputs = 4096;

template <class T>
bool is_aligned(Span<const T> s) {
  return reinterpret_cast<uintptr_t>(s.data()) % alignof(T) == 0;
}

class TablesVerifier : public MethodVerifier {
 public:
  using MethodVerifier::MethodVerifier;

  Error verify() {
    if (!(is_aligned(m_.symbols) && is_aligned(m_.expressions) && is_aligned(m_.arguments) &&
          is_aligned(m_.lists)))
      return wrong(TAPER_TEXT("a table is not aligned"));
    TAPER_TRY(expressions());
    TAPER_TRY(memory());
    TAPER_TRY(values());
    TAPER_TRY(inputs_and_outputs());
    TAPER_TRY(symbols());
    TAPER_TRY(checks());
    return verify_instructions(*this);
  }

 private:
  // ---- expressions
  // ------------------------------------------------------------------------------------------------------

  Error expressions() {
    for (index_t i = 0; i < m_.expressions.size(); ++i)
      if (!is_valid_expression(i)) return wrong(TAPER_TEXT("expression {} is damaged"), i);
    return Error::ok;
  }

  bool is_valid_expression(index_t i) const {
    const format::Expression& e = m_.expressions[i];
    const NumberType t = e.type();
    constexpr NumberType i64 = NumberType::i64, f64 = NumberType::f64,
                         boolean = NumberType::boolean;
    if (t > boolean || e.operation() > Operation::select) return false;
    if (e.operation() == Operation::literal)
      return t != boolean || e.literal() == 0 || e.literal() == 1;
    if (e.operation() == Operation::symbol)
      return within(e.a(), m_.symbols) && m_.symbols[static_cast<index_t>(e.a())].type() == t;

    // operands that an operation does not use are 0, and so exist too
    const uint32_t own = static_cast<uint32_t>(i);
    if (e.a() >= own || e.b() >= own || e.c() >= own) return false;
    const NumberType a = m_.expressions[e.a()].type(), b = m_.expressions[e.b()].type(),
                     c = m_.expressions[e.c()].type();
    switch (e.operation()) {
      case Operation::add:
      case Operation::subtract:
      case Operation::multiply:
      case Operation::floor_divide:
      case Operation::modulo:
      case Operation::minimum:
      case Operation::maximum:
      case Operation::power:
        return a == t && b == t && t != boolean;
      case Operation::negate:
      case Operation::absolute:
        return a == t && t != boolean;
      case Operation::true_divide:
        return a == f64 && b == f64 && t == f64;
      case Operation::square_root:
        return a == f64 && t == f64;
      case Operation::floor:
      case Operation::ceil:
      case Operation::round:
      case Operation::truncate:
        return a == f64 && t == i64;
      case Operation::to_f64:
        return a != f64 && t == f64;
      case Operation::to_i64:
        return a == boolean && t == i64;
      case Operation::equal:
      case Operation::not_equal:
        return a == b && t == boolean;
      case Operation::less:
      case Operation::less_equal:
        return a == b && a != boolean && t == boolean;
      case Operation::logical_and:
      case Operation::logical_or:
        return a == boolean && b == boolean && t == boolean;
      case Operation::logical_not:
        return a == boolean && t == boolean;
      case Operation::select:
        return a == boolean && b == t && c == t;
      default:
        return false;
    }
  }

  Error symbols() {
    for (index_t i = 0; i < m_.symbols.size(); ++i)
      if (!is_valid_symbol(m_.symbols[i])) return wrong(TAPER_TEXT("symbol {} is damaged"), i);
    return Error::ok;
  }

  bool is_valid_symbol(const format::Symbol& s) const {
    if (s.type() > NumberType::boolean ||
        (s.type() == NumberType::i64 && s.minimum() > s.maximum()))
      return false;
    switch (s.source()) {
      case format::SymbolSource::input_extent: {
        const format::Input* input = input_at(s.first());
        return s.type() == NumberType::i64 && input != nullptr && input->value() != none &&
               s.second() < m_.shapes[m_.values[input->value()].shape()].rank();
      }
      case format::SymbolSource::input_number: {
        const format::Input* input = input_at(s.first());
        return input != nullptr && input->value() == none && input->type() == s.type();
      }
      case format::SymbolSource::element: {
        if (!within(s.first(), m_.values)) return false;
        const format::Value& v = m_.values[s.first()];
        const DType d = static_cast<DType>(v.dtype());
        return space_of(p_, m_, v) == 0 && (s.type() == NumberType::boolean ? d == DType::boolean
                                            : s.type() == NumberType::f64   ? is_floating(d)
                                                                            : is_integral(d));
      }
      case format::SymbolSource::kernel_extent:
        return within(s.first(), m_.values) &&
               s.second() < m_.shapes[m_.values[s.first()].shape()].rank();
      case format::SymbolSource::loop_counter:
        return s.type() == NumberType::i64 && within(s.first(), m_.instructions) &&
               m_.instructions[s.first()].kind() == InstructionKind::loop_begin;
    }
    return false;
  }

  Error checks() {
    for (index_t i = 0; i < count_of(table_.checks()); ++i) {
      const format::Check* c = table_.checks()->Get(static_cast<uint32_t>(i));
      bool valid = is_expression(c->condition(), NumberType::boolean) && count_of(c->values()) <= 3;
      for (const uint32_t v : span_of(c->values())) valid = valid && is_size(v);
      if (!valid) return wrong(TAPER_TEXT("check {} is damaged"), i);
    }
    return Error::ok;
  }

  // ---- memory and values
  // ------------------------------------------------------------------------------------------------

  Error memory() {
    for (index_t i = 0; i < m_.buffers.size(); ++i) {
      const format::Buffer& b = m_.buffers[i];
      bool valid =
          is_size(b.size_bytes()) && b.space() < p_.space_count &&
          (b.region() == format::Region::activations || b.region() == format::Region::io) &&
          within(b.above_first(), b.above_count(), m_.above);
      for (uint32_t k = 0; valid && k < b.above_count(); ++k) {
        const uint32_t below = m_.above[static_cast<index_t>(b.above_first() + k)];
        valid = below < static_cast<uint64_t>(i) && m_.buffers[below].region() == b.region() &&
                m_.buffers[below].space() == b.space();
      }
      if (!valid) return wrong(TAPER_TEXT("buffer {} is damaged"), i);
    }
    for (index_t i = 0; i < m_.shapes.size(); ++i) {
      const format::Shape& s = m_.shapes[i];
      bool valid = s.rank() <= max_rank && within(s.dims_first(), 2u * s.rank(), m_.dims);
      for (index_t k = 0; valid && k < 2 * s.rank(); ++k)
        valid = is_size(m_.dims[s.dims_first() + k]);
      if (!valid) return wrong(TAPER_TEXT("shape {} is damaged"), i);
    }
    return Error::ok;
  }

  Error values() {
    for (index_t i = 0; i < m_.values.size(); ++i)
      if (!is_valid_value(m_.values[i])) return wrong(TAPER_TEXT("value {} is damaged"), i);
    return Error::ok;
  }

  bool is_valid_value(const format::Value& v) const {
    if (!is_valid(static_cast<DType>(v.dtype())) || !is_size(v.offset()) ||
        !within(v.shape(), m_.shapes))
      return false;
    if (v.quantization() != none &&
        v.quantization() >= static_cast<uint64_t>(count_of(p_.table->quantizations())))
      return false;
    switch (v.storage()) {
      case format::Storage::buffer:
        return within(v.storage_index(), m_.buffers);
      case format::Storage::constant:
        return v.storage_index() < static_cast<uint64_t>(count_of(p_.table->constants())) &&
               p_.table->constants()->Get(v.storage_index())->dtype() == v.dtype();
      case format::Storage::state:
        return v.storage_index() < static_cast<uint64_t>(count_of(p_.table->states())) &&
               p_.table->states()->Get(v.storage_index())->dtype() == v.dtype();
    }
    return false;
  }

  Error inputs_and_outputs() {
    if (count_of(table_.inputs()) > max_inputs || count_of(table_.outputs()) > max_inputs)
      return wrong(TAPER_TEXT("there are more than {} inputs or outputs"), max_inputs);
    for (index_t i = 0; i < count_of(table_.inputs()); ++i) {
      const format::Input* in = input_at(static_cast<uint64_t>(i));
      if (in->value() == none) {
        if (in->type() > NumberType::boolean)
          return wrong(TAPER_TEXT("input {} has an unknown type"), i);
        continue;
      }
      if (!within(in->value(), m_.values) || !is_io(m_.values[in->value()]))
        return wrong(TAPER_TEXT("input {} does not lie in an io buffer"), i);
      const format::Expression& offset = m_.expressions[m_.values[in->value()].offset()];
      if (offset.operation() != Operation::literal || offset.literal() != 0)
        return wrong(TAPER_TEXT("input {} does not start its buffer"), i);
    }
    for (index_t i = 0; i < count_of(table_.outputs()); ++i) {
      const format::Output* out = table_.outputs()->Get(static_cast<uint32_t>(i));
      if (out->value() == none) {
        if (!within(out->expression(), m_.expressions))
          return wrong(TAPER_TEXT("output {} does not exist"), i);
        continue;
      }
      if (!within(out->value(), m_.values)) return wrong(TAPER_TEXT("output {} does not exist"), i);
      const format::Value& v = m_.values[out->value()];
      if (v.storage() == format::Storage::buffer && !is_io(v))
        return wrong(TAPER_TEXT("output {} does not outlast the method"), i);
    }
    return Error::ok;
  }
};

}  // namespace

#ifdef TAPER_NO_MESSAGES
__attribute__((noinline)) Error MethodVerifier::damaged() {
  return fail(info_, Error::invalid_program, nullptr, 0, 0, 0, table_.name()->c_str());
}
#else
Error MethodVerifier::wrong(const char* message, int64_t a, int64_t b) {
  return fail(info_, Error::invalid_program, message, a, b, 0, table_.name()->c_str());
}
#endif

Error verify_method(const ProgramData& program, const format::Method& table, ErrorInfo& info) {
  return TablesVerifier(program, table, info).verify();
}

}  // namespace taper::internal
