// Verifies a method's tables. See tables.h.
#include "taper/runtime/program/tables.h"

namespace taper::internal {
namespace {

using format::ArgumentForm;
using format::ArgumentKind;
using format::InstructionKind;
using format::NumberType;
using format::Operation;

// Several arguments may share a list, so a small file could ask for very many elements.
constexpr int64_t max_list_elements = int64_t{1} << 22;
constexpr int64_t max_inputs = 4096;

template <class T>
bool is_aligned(Span<const T> s) {
  return reinterpret_cast<uintptr_t>(s.data()) % alignof(T) == 0;
}
template <class T>
bool within(uint64_t index, Span<const T> s) {
  return index < static_cast<uint64_t>(s.size());
}
template <class T>
bool within(uint64_t first, uint64_t count, Span<const T> s) {
  return first <= static_cast<uint64_t>(s.size()) &&
         count <= static_cast<uint64_t>(s.size()) - first;
}

class MethodVerifier {
 public:
  MethodVerifier(const ProgramData& p, const format::Method& table, ErrorInfo& info)
      : p_(p), table_(table), m_(table), info_(info) {}

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
    TAPER_TRY(lists());
    return instructions();
  }

 private:
#ifdef TAPER_NO_MESSAGES
  Error wrong(const char*, int64_t = 0, int64_t = 0) { return damaged(); }
  Error damaged();
#else
  Error wrong(const char* message, int64_t a = 0, int64_t b = 0);
#endif

  bool is_expression(uint64_t i, NumberType type) const {
    return within(i, m_.expressions) && m_.expressions[static_cast<index_t>(i)].type() == type;
  }
  bool is_size(uint64_t i) const { return is_expression(i, NumberType::i64); }

  // ---- expressions ----

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

    // operands that an operation does not use are 0, so they exist, too
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
    index_t i = 0;
    for (const format::Check& c : m_.checks) {
      const Span<const uint32_t> values = span_of(c.values());
      bool valid = is_expression(c.condition(), NumberType::boolean) && values.size() <= 3;
      for (const uint32_t v : values) valid = valid && is_size(v);
      if (!valid) return wrong(TAPER_TEXT("check {} is damaged"), i);
      ++i;
    }
    return Error::ok;
  }

  // ---- memory and values ----

  Error memory() {
    uint64_t listed = 0;  // each buffer has its own list, so all lists together fit into `above`
    for (index_t i = 0; i < m_.buffers.size(); ++i) {
      const format::Buffer& b = m_.buffers[i];
      bool valid =
          is_size(b.size_bytes()) && b.space() < p_.space_count &&
          (b.region() == format::Region::activations || b.region() == format::Region::io) &&
          within(b.above_first(), b.above_count(), m_.above);
      listed += b.above_count();
      valid = valid && listed <= static_cast<uint64_t>(m_.above.size());
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
        return p_.view.constants.has(v.storage_index());
      case format::Storage::state:
        return p_.view.states.has(v.storage_index());
    }
    return false;
  }

  const format::Input* input_at(uint32_t i) const {
    return m_.inputs.has(i) ? &m_.inputs[i] : nullptr;
  }

  bool is_io(const format::Value& v) const {
    return v.storage() == format::Storage::buffer &&
           m_.buffers[v.storage_index()].region() == format::Region::io;
  }

  Error inputs_and_outputs() {
    if (m_.inputs.size() > max_inputs || m_.outputs.size() > max_inputs)
      return wrong(TAPER_TEXT("there are more than {} inputs or outputs"), max_inputs);
    for (index_t i = 0; i < m_.inputs.size(); ++i) {
      const format::Input& in = m_.inputs[i];
      const uint32_t value = in.value();
      if (value == none) {
        if (in.type() > NumberType::boolean)
          return wrong(TAPER_TEXT("input {} has an unknown type"), i);
        continue;
      }
      if (!within(value, m_.values) || !is_io(m_.values[value]))
        return wrong(TAPER_TEXT("input {} does not lie in an io buffer"), i);
      const format::Expression& offset = m_.expressions[m_.values[value].offset()];
      if (offset.operation() != Operation::literal || offset.literal() != 0)
        return wrong(TAPER_TEXT("input {} does not start its buffer"), i);
    }
    for (index_t i = 0; i < m_.outputs.size(); ++i) {
      const format::Output& out = m_.outputs[i];
      const uint32_t value = out.value();
      if (value == none ? !within(out.expression(), m_.expressions) : !within(value, m_.values))
        return wrong(TAPER_TEXT("output {} does not exist"), i);
      if (value == none) continue;
      const format::Value& v = m_.values[value];
      if (v.storage() == format::Storage::buffer && !is_io(v))
        return wrong(TAPER_TEXT("output {} does not outlast the method"), i);
    }
    return Error::ok;
  }

  // The buffers of inputs belong to the caller, and constants to everybody, so neither may be
  // written.
  bool may_be_written(const format::Value& v) const {
    if (v.storage() == format::Storage::constant) return false;
    if (!is_io(v)) return true;
    return !is_input_buffer(m_, v);
  }

  // ---- instructions ----

  Error lists() {
    int64_t total = 0;
    for (index_t i = 0; i < m_.arguments.size(); ++i) {
      const format::Argument& a = m_.arguments[i];
      if (a.form() == ArgumentForm::list || a.form() == ArgumentForm::expression_list)
        total += a.count();
      if (total > max_list_elements)
        return wrong(TAPER_TEXT("lists have more than {} elements"), max_list_elements);
    }
    return Error::ok;
  }

  Error instructions() {
    // arguments follow one another, so each belongs to exactly one instruction, which decides its
    // type
    index_t next = 0;
    for (index_t i = 0; i < m_.instructions.size(); ++i) {
      const format::Instruction& in = m_.instructions[i];
      info_.instruction = static_cast<int32_t>(i);
      if (static_cast<index_t>(in.arguments_first()) != next ||
          !within(in.arguments_first(), in.arguments_count(), m_.arguments))
        return wrong(TAPER_TEXT("the arguments of instruction {} do not stand behind those before"),
                     i);
      next += in.arguments_count();
      TAPER_TRY(instruction(in, i));
    }
    info_.instruction = -1;
    return next == m_.arguments.size()
               ? Error::ok
               : wrong(TAPER_TEXT("arguments from {} on belong to no instruction"), next);
  }

  Error instruction(const format::Instruction& in, index_t i) {
    const index_t n = m_.instructions.size(), target = static_cast<index_t>(in.target());
    const index_t queues = p_.view.queues.empty() ? 1 : p_.view.queues.size();
    if (in.queue() >= queues) return wrong(TAPER_TEXT("instruction {} has no queue"), i);
    bool valid = true;
    switch (in.kind()) {
      case InstructionKind::kernel:
        return kernel(in, i);
      case InstructionKind::copy:
        return copy(in, i);
      case InstructionKind::delegate:
        return delegate(in, i);
      case InstructionKind::bind:
        valid = within(in.target(), m_.symbols);
        if (valid && m_.symbols[target].source() == format::SymbolSource::kernel_extent)
          return fail(info_, Error::not_supported,
                      TAPER_TEXT("extents that kernels write are not supported"));
        valid = valid && m_.symbols[target].source() == format::SymbolSource::element;
        break;
      case InstructionKind::wait:
        valid = target < queues;
        break;
      case InstructionKind::jump_unless:
        valid = is_expression(in.condition(), NumberType::boolean) && target > i && target <= n;
        break;
      case InstructionKind::jump:
        valid = target > i && target <= n;
        break;
      case InstructionKind::loop_begin:
        valid = target > i && target < n &&
                m_.instructions[target].kind() == InstructionKind::loop_end &&
                m_.instructions[target].target() == static_cast<uint64_t>(i);
        break;
      case InstructionKind::loop_end:
        valid = target < i && m_.instructions[target].kind() == InstructionKind::loop_begin &&
                m_.instructions[target].target() == static_cast<uint64_t>(i) &&
                is_expression(in.condition(), NumberType::boolean);
        break;
      default:
        return wrong(TAPER_TEXT("instruction {} is of an unknown kind"), i);
    }
    return valid && in.arguments_count() == 0
               ? Error::ok
               : wrong(TAPER_TEXT("the target or condition of instruction {} is damaged"), i);
  }

  Error copy(const format::Instruction& in, index_t i) {
    if (in.arguments_count() == 2) {
      const format::Argument& from = m_.arguments[in.arguments_first()];
      const format::Argument& to = m_.arguments[in.arguments_first() + 1];
      if (is_single_tensor(from) && is_single_tensor(to)) {
        const format::Value &a = m_.values[from.content()], &b = m_.values[to.content()];
        // a copy between two devices must go through the host, so that one queue can do each copy
        const int from_space = space_of(p_, m_, a), to_space = space_of(p_, m_, b);
        const int device = from_space != 0 ? from_space : to_space;
        if (a.dtype() == b.dtype() && may_be_written(b) &&
            (from_space == to_space || from_space == 0 || to_space == 0) &&
            p_.space_of_queue(in.queue()) == device)
          return Error::ok;
      }
    }
    return wrong(TAPER_TEXT("instruction {} cannot copy its arguments"), i);
  }

  Error delegate(const format::Instruction& in, index_t i) {
    if (in.target() >= static_cast<uint64_t>(count_of(p_.table->delegates())))
      return wrong(TAPER_TEXT("instruction {} has no delegate"), i);
    const format::Delegate& d = *p_.table->delegates()->Get(in.target());
    if (p_.delegates[in.target()].backend == nullptr)
      return fail(info_, Error::not_supported,
                  TAPER_TEXT("no backend was given that reads version {} of its parts"),
                  d.version(), 0, 0, d.backend()->c_str());
    const index_t n = in.arguments_count(), inputs = n - in.results();
    const index_t operands = inputs - static_cast<index_t>(in.condition());
    bool valid =
        inputs >= 0 && int64_t{in.condition()} <= inputs && p_.space_of_queue(in.queue()) == 0;
    for (index_t k = 0; valid && k < n; ++k) {
      const format::Argument& a = m_.arguments[in.arguments_first() + k];
      valid = is_single_tensor(a) && space_of(p_, m_, m_.values[a.content()]) == 0 &&
              (k < inputs || may_be_written(m_.values[a.content()])) &&
              (k < operands || k >= inputs ||
               m_.values[a.content()].storage() == format::Storage::constant);
    }
    return valid ? Error::ok
                 : wrong(TAPER_TEXT("the delegate of instruction {} cannot take its "
                                    "arguments"),
                         i);
  }

  bool is_single_tensor(const format::Argument& a) const {
    return a.kind() == ArgumentKind::tensor && a.form() == ArgumentForm::literal &&
           is_value(a.content());
  }
  bool is_value(int64_t i) const { return i >= 0 && i < m_.values.size(); }

  Error kernel(const format::Instruction& in, index_t i) {
    if (!p_.view.kernels.has(in.target()))
      return wrong(TAPER_TEXT("instruction {} has no kernel"), i);
    const Kernel& k = *p_.kernels[in.target()];
    space_ = p_.view.kernels[in.target()].space();
    if (p_.space_of_queue(in.queue()) != space_)
      return wrong(TAPER_TEXT("the queue of instruction {} does not run its kernel"), i);
    if (in.arguments_count() != k.expected_count)
      return wrong(TAPER_TEXT("an operator takes {} arguments and results, not {}"),
                   k.expected_count, in.arguments_count());
    for (index_t a = 0; a < k.expected_count; ++a) {
      info_.argument = static_cast<int32_t>(a);
      TAPER_TRY(argument(m_.arguments[in.arguments_first() + a], k.expected[a],
                         a >= k.expected_count - k.result_count));
    }
    info_.argument = -1;
    return Error::ok;
  }

  Error argument(const format::Argument& a, const Expected& e, bool is_result) {
    if (is_result && (e.list || e.kind != Kind::tensor))
      return fail(info_, Error::not_supported,
                  TAPER_TEXT("results that are lists or numbers are not supported"));
    if (a.form() == ArgumentForm::absent)
      return e.optional ? Error::ok
                        : wrong(TAPER_TEXT("an argument that the operator needs is absent"));
    if (!has_kind(a, e))
      return wrong(TAPER_TEXT("an argument has another kind than the operator takes"));

    const bool list = a.form() == ArgumentForm::list || a.form() == ArgumentForm::expression_list;
    if (list != e.list)
      return wrong(
          TAPER_TEXT("an argument is a list where the operator takes one, or the reverse"));
    if (!list) {
      return is_valid_element(a.content(), a.kind(), a.form(), e)
                 ? Error::ok
                 : wrong(TAPER_TEXT("an argument is damaged or has the wrong type"));
    }
    if (a.content() < 0 || !within(static_cast<uint64_t>(a.content()), a.count(), m_.lists))
      return wrong(TAPER_TEXT("a list does not exist"));
    const ArgumentForm form =
        a.form() == ArgumentForm::list ? ArgumentForm::literal : ArgumentForm::expression;
    for (const int64_t content :
         m_.lists.part(static_cast<index_t>(a.content()), static_cast<index_t>(a.count())))
      if (!is_valid_element(content, a.kind(), form, e))
        return wrong(TAPER_TEXT("an element of a list is damaged or has the wrong type"));
    return Error::ok;
  }

  static bool has_kind(const format::Argument& a, const Expected& e) {
    const ArgumentKind k = a.kind();
    if (a.form() > ArgumentForm::expression_list || k == ArgumentKind::none) return false;
    if (e.kind == Kind::scalar)
      return k == ArgumentKind::integer || k == ArgumentKind::real || k == ArgumentKind::boolean;
    return static_cast<uint8_t>(k) == static_cast<uint8_t>(e.kind);
  }

  bool is_valid_element(int64_t content, ArgumentKind kind, ArgumentForm form,
                        const Expected& e) const {
    if (form == ArgumentForm::expression) {
      if (content < 0) return false;
      const uint64_t i = static_cast<uint64_t>(content);
      if (kind == ArgumentKind::integer) return is_expression(i, NumberType::i64);
      if (kind == ArgumentKind::real) return is_expression(i, NumberType::f64) && !e.list;
      return kind == ArgumentKind::boolean && is_expression(i, NumberType::boolean) && !e.list;
    }
    switch (kind) {
      case ArgumentKind::tensor:
        return (content == -1 && (e.list & e.optional)) || is_valid_tensor(content, e);
      case ArgumentKind::integer:
      case ArgumentKind::real:
        return true;
      case ArgumentKind::boolean:
        return content == 0 || content == 1;
      case ArgumentKind::dtype:
        return content >= 0 && content < dtype_count;
      case ArgumentKind::string:
        return content >= 0 && content < count_of(p_.table->strings());
      default:
        return false;
    }
  }

  bool is_valid_tensor(int64_t i, const Expected& e) const {
    if (!is_value(i)) return false;
    const format::Value& v = m_.values[static_cast<index_t>(i)];
    return (e.dtypes & one(static_cast<DType>(v.dtype()))) != 0 && space_of(p_, m_, v) == space_ &&
           (!e.written || may_be_written(v));
  }

  const ProgramData& p_;
  const format::Method& table_;
  const MethodView m_;
  ErrorInfo& info_;
  int space_ = 0;  // that of the kernel whose arguments are verified
};

#ifdef TAPER_NO_MESSAGES
__attribute__((noinline)) Error MethodVerifier::damaged() {
  return fail(info_, Error::invalid_program, nullptr, 0, 0, 0, table_.name()->c_str());
}
#else
Error MethodVerifier::wrong(const char* message, int64_t a, int64_t b) {
  return fail(info_, Error::invalid_program, message, a, b, 0, table_.name()->c_str());
}
#endif

}  // namespace

Error verify_method(const ProgramData& program, const format::Method& table, ErrorInfo& info) {
  return MethodVerifier(program, table, info).verify();
}

}  // namespace taper::internal
