// What may be wrong with a method's instructions and their arguments. See tables.h.
#include "taper/runtime/program/method_verifier.h"

namespace taper::internal {
namespace {

using format::ArgumentForm;
using format::ArgumentKind;
using format::InstructionKind;
using format::NumberType;

// Lists may be shared by arguments, so a small file could ask for many elements.
constexpr int64_t max_list_elements = int64_t{1} << 22;

class InstructionsVerifier : public MethodVerifier {
 public:
  explicit InstructionsVerifier(const MethodVerifier& method) : MethodVerifier(method) {}

  Error verify() {
    TAPER_TRY(lists());
    return instructions();
  }

 private:
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
    // arguments stand behind each other, so each belongs to one instruction, which says what it
    // must be
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
    const index_t queues = count_of(p_.table->queues()) > 0 ? count_of(p_.table->queues()) : 1;
    if (in.queue() >= queues) return wrong(TAPER_TEXT("instruction {} has no queue"), i);
    bool valid = true;
    switch (in.kind()) {
      case InstructionKind::kernel:
        return kernel(in, i);
      case InstructionKind::copy:
        return copy(in, i);
      case InstructionKind::delegate:
        if (target >= count_of(p_.table->delegates()))
          return wrong(TAPER_TEXT("instruction {} has no delegate"), i);
        return fail(info_, Error::not_supported, TAPER_TEXT("no delegate of this name is linked"),
                    0, 0, 0, p_.table->delegates()->Get(in.target())->backend()->c_str());
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
        // a copy between two devices goes through the host, so that one queue alone does it
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

  bool is_single_tensor(const format::Argument& a) const {
    return a.kind() == ArgumentKind::tensor && a.form() == ArgumentForm::literal &&
           is_value(a.content());
  }
  bool is_value(int64_t i) const { return i >= 0 && i < m_.values.size(); }

  Error kernel(const format::Instruction& in, index_t i) {
    if (in.target() >= static_cast<uint64_t>(count_of(p_.table->kernels())))
      return wrong(TAPER_TEXT("instruction {} has no kernel"), i);
    const Kernel& k = *p_.kernels[in.target()];
    space_ = p_.table->kernels()->Get(in.target())->space();
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
        return (content == -1 && e.list && e.optional) || is_valid_tensor(content, e);
      case ArgumentKind::integer:
        return true;
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

  int space_ = 0;  // of the kernel whose arguments are looked at
};

}  // namespace

Error verify_instructions(const MethodVerifier& method) {
  return InstructionsVerifier(method).verify();
}

}  // namespace taper::internal
