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

}  // namespace

Error prepare(MethodData& m, index_t i) {
  Instruction& in = m.instructions[i];
  m.clear_info();
  if (in.fresh != Step::kernel && in.fresh != Step::device_kernel) {
    TAPER_TRY(prepare_copy(m, i));
    in.step = in.fresh;
    return Error::ok;
  }
  const Kernel& k = *in.kernel;
  for (int a = 0; a < k.expected_count; ++a) {
    if (meets(k, in.arguments, a)) continue;
    m.info.argument = a;
    return m.fail_at(
        i,
        fail(m.info, Error::invalid_program,
             TAPER_TEXT("argument {} has strides or a layout that the kernel does not take"), a));
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
    if (k.scratch_bound != nullptr && !m.placed)
      k.scratch_bound(bound, in.arguments);
    else
      bound.scratch_bytes = m.placed ? m.context.scratch_bytes : context.scratch_bytes;
    if (!m.placed) m.context.need_scratch(bound.scratch_bytes);
    if (context.scratch_bytes > bound.scratch_bytes) {
      return m.fail_at(i, fail(m.info, Error::out_of_memory,
                               TAPER_TEXT("the kernel needs {} bytes of scratch, {} are there"),
                               static_cast<int64_t>(context.scratch_bytes),
                               static_cast<int64_t>(bound.scratch_bytes)));
    }
  }
  in.step = in.fresh;
  return Error::ok;
}

}  // namespace taper::internal
