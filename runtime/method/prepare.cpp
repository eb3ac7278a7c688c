// Prepares one instruction: runs its shape rule, checks strides, and makes its plan.
#include "taper/runtime/method/method_data.h"

namespace taper::internal {
namespace {

bool meets(const TensorRef* t, Strides contract, bool reads_layout = false) {
  if (t == nullptr) return true;
  if (t->layout != Layout::dense && !reads_layout) return false;
  if (!has_strides(t->layout)) return true;
  if (contract == Strides::any) return true;
  if (contract == Strides::dense) return t->shape->is_dense();
  const int last = t->shape->rank - 1;
  return last < 0 || t->shape->sizes[last] <= 1 || t->shape->strides[last] == 1;
}

// Whether the kernel can read argument `a` in its present strides and layout.
bool meets(const Kernel& k, const Slot* slots, int a) {
  const Slot& s = slots[a];
  const Expected& e = k.expected[a];
  if (e.kind != Kind::tensor) return true;
  if (!e.list) {
    bool reads = false;
    for (const Packing& p : k.packings)
      if (p.argument == a && s.tensor != nullptr && p.reads(s.tensor->layout))
        reads = p.unless < 0 || slots[p.unless].integer == 0;
    return meets(s.tensor, e.strides, reads);
  }
  for (uint32_t i = 0; i < s.size; ++i)
    if (!meets(s.tensors[i], e.strides)) return false;
  return true;
}

bool is(const TensorRef* t, const TensorType<Extent>& type) {
  if (t == nullptr || !type.present) return t == nullptr && !type.present;
  if (t->dtype != type.dtype || t->shape->rank != type.rank) return false;
  for (int i = 0; i < type.rank; ++i)
    if (t->shape->sizes[i] != type.sizes[i].value) return false;
  return true;
}

Error prepare_copy(MethodData& m, index_t i) {
  const TensorRef &from = *m.instructions[i].arguments[0].tensor,
                  &to = *m.instructions[i].arguments[1].tensor;
  if (from.shape->same_sizes(*to.shape) && meets(&from, Strides::dense) &&
      meets(&to, Strides::dense))
    return Error::ok;
  return m.fail_at(i, m.fail(Error::invalid_program,
                             TAPER_TEXT("a copy needs two dense tensors of equal sizes")));
}

// Compares scratch that was asked for with the scratch that is there. While the memory is measured,
// asks for `bound`, which is what any shapes ask for.
Error take_scratch(MethodData& m, index_t i, size_t bytes, size_t bound) {
  if (!m.placed) m.context.need_scratch(bound);
  if (m.placed) bound = m.context.scratch_bytes;
  if (bytes <= bound) return Error::ok;
  return m.fail_at(i, fail(m.info, Error::out_of_memory,
                           TAPER_TEXT("{} bytes of scratch are needed, {} are there"),
                           static_cast<int64_t>(bytes), static_cast<int64_t>(bound)));
}

Error fail_argument(MethodData& m, index_t i, index_t a, Error error, const char* message) {
  m.info.argument = static_cast<int32_t>(a);
  return m.fail_at(i, fail(m.info, error, message, a));
}

// The operands, constants and results of a delegated instruction. The verifier has counted them.
DelegateArguments split(const MethodData& m, index_t i) {
  const format::Instruction& in = m.view.instructions[i];
  const Slot* slots = m.instructions[i].arguments;
  const index_t inputs = in.arguments_count() - in.results(),
                operands = inputs - static_cast<index_t>(in.condition());
  const void* session = m.session;
  return {{slots, operands},
          {slots + operands, inputs - operands},
          {slots + inputs, in.results()},
          session != nullptr ? session : &m};
}

// A new instance reads constants before tensors have addresses.
Error place_constants(MethodData& m, index_t i, const DelegateArguments& arguments) {
  for (const Slot& slot : arguments.constants) {
    const Error e = place_value(m, slot.tensor - m.values);
    if (e != Error::ok) return m.fail_at(i, e);
    if (slot.tensor->data == nullptr && slot.tensor->shape->numel() > 0)
      return m.fail_at(i, Error::invalid_program);  // and the sizes are impossible
  }
  return Error::ok;
}

// The first reshape makes the instance.
Error prepare_delegate(MethodData& m, index_t i) {
  Instruction& in = m.instructions[i];
  const LoadedDelegate& d = *in.delegate;
  const index_t count = m.view.instructions[i].arguments_count();
  for (index_t a = 0; a < count; ++a)
    if (!meets(in.arguments[a].tensor, Strides::dense))
      return fail_argument(m, i, a, Error::invalid_program,
                           TAPER_TEXT("argument {} of a delegate is not dense"));
  const DelegateArguments arguments = split(m, i);
  Context context{nullptr, 0, m.context.threads, &m.info};
  Error e = Error::ok;
  if (!in.ends) {
    TAPER_TRY(place_constants(m, i, arguments));
    e = d.backend->create(d.loaded, in.plan, arguments, context);
    in.ends = e == Error::ok;
  }
  if (e == Error::ok) e = d.backend->reshape(in.plan, arguments, context);
  if (e != Error::ok) return m.fail_at(i, e);
  for (index_t r = 0; r < arguments.results.size(); ++r) {
    const TensorRef& t = *arguments.results[r].tensor;
    DType dtype = t.dtype;
    Shape shape;
    d.backend->result(in.plan, r, dtype, shape);
    if (dtype != t.dtype || !shape.same_sizes(*t.shape))
      return fail_argument(m, i, count - arguments.results.size() + r, Error::invalid_program,
                           TAPER_TEXT("result {} has another type than the backend gives"));
  }
  TAPER_TRY(take_scratch(m, i, context.scratch_bytes, context.scratch_bytes));
  in.step = in.fresh;
  return Error::ok;
}

}  // namespace

Error prepare(MethodData& m, index_t i) {
  Instruction& in = m.instructions[i];
  m.clear_info();
  if (in.fresh == Step::delegate) return prepare_delegate(m, i);
  if (in.fresh != Step::kernel && in.fresh != Step::device_kernel) {
    TAPER_TRY(prepare_copy(m, i));
    in.step = in.fresh;
    return Error::ok;
  }
  const Kernel& k = *in.kernel;
  for (int a = 0; a < k.expected_count; ++a) {
    if (meets(k, in.arguments, a)) continue;
    return fail_argument(
        m, i, a, Error::invalid_program,
        TAPER_TEXT("argument {} has strides or a layout that the kernel does not take"));
  }
  Facts<Extent> facts;
  TensorType<Extent> results[Schema::max_results];
  if (!k.shape(facts, in.arguments, results))
    return m.fail_at(i, fail(m.info, Error::invalid_argument, facts.message, facts.values[0],
                             facts.values[1], facts.values[2]));
  for (int r = 0; r < k.result_count; ++r) {
    const int a = k.expected_count - k.result_count + r;
    if (is(in.arguments[a].tensor, results[r])) continue;
    m.info.argument = a;
    return m.fail_at(i, fail(m.info, Error::invalid_program,
                             TAPER_TEXT("result {} has another type than the operator gives"), r));
  }
  if (k.prepare != nullptr) {
    Context context{nullptr, 0, m.context.threads, &m.info}, bound = context;
    if (Error e = k.prepare(context, in.plan, in.arguments); e != Error::ok) return m.fail_at(i, e);
    in.ends = k.end != nullptr;
    bound.scratch_bytes = context.scratch_bytes;
    if (k.scratch_bound != nullptr && !m.placed) {
      bound.scratch_bytes = 0;
      k.scratch_bound(bound, in.arguments);
    }
    TAPER_TRY(take_scratch(m, i, context.scratch_bytes, bound.scratch_bytes));
  }
  in.step = in.fresh;
  return Error::ok;
}

}  // namespace taper::internal
