// What must hold of an instruction's arguments before its kernel runs.
#include "taper/runtime/method/method_data.h"

namespace taper::internal {
namespace {

bool meets(const TensorRef* t, Strides contract) {
  if (t == nullptr || contract == Strides::any) return true;
  if (contract == Strides::dense) return t->shape->is_dense();
  const int last = t->shape->rank - 1;
  return last < 0 || t->shape->sizes[last] <= 1 || t->shape->strides[last] == 1;
}

bool meets(const Slot& s, const Expected& e) {
  if (e.kind != Kind::tensor) return true;
  if (!e.list) return meets(s.tensor, e.strides);
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
  if (from.shape->same_sizes(*to.shape) && from.shape->is_dense() && to.shape->is_dense())
    return Error::ok;
  return m.fail_at(i, m.fail(Error::invalid_program,
                             TAPER_TEXT("a copy needs two dense tensors of equal sizes")));
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

Error check_overlaps(MethodData& m, index_t i) {
  const format::Instruction& in = m.view.instructions[i];
  const Slot* slots = m.instructions[i].arguments;
  const bool is_kernel = in.kind() == format::InstructionKind::kernel;
  const Kernel* k = is_kernel ? m.instructions[i].kernel : nullptr;
  const index_t n = in.arguments_count(), first_result = is_kernel ? n - k->result_count : 1;

  const auto overlap = [](const TensorRef& a, const TensorRef& b) {
    size_t a_bytes = 0, b_bytes = 0;
    (void)extent_bytes(a, a_bytes),
        (void)extent_bytes(b, b_bytes);  // place_values saw that they can be counted
    const uintptr_t x = reinterpret_cast<uintptr_t>(a.data),
                    y = reinterpret_cast<uintptr_t>(b.data);
    return x < y + b_bytes && y < x + a_bytes && a_bytes != 0 && b_bytes != 0;
  };
  const auto same = [](const TensorRef& a, const TensorRef& b) {
    if (a.data != b.data || a.dtype != b.dtype || !a.shape->same_sizes(*b.shape)) return false;
    for (int d = 0; d < a.shape->rank; ++d)
      if (a.shape->sizes[d] > 1 && a.shape->strides[d] != b.shape->strides[d]) return false;
    return true;
  };
  for (index_t w = 0; w < n; ++w) {
    const bool written = is_kernel ? k->expected[w].written && !k->expected[w].list : w == 1;
    if (!written || slots[w].tensor == nullptr) continue;
    for (index_t r = 0; r < n; ++r) {
      if (r == w || slots[r].kind != Kind::tensor || slots[r].tensor == nullptr) continue;
      const bool list = is_kernel && k->expected[r].list;
      const TensorRef* const* tensors = list ? slots[r].tensors : &slots[r].tensor;
      const index_t count = list ? static_cast<index_t>(slots[r].size) : 1;
      const bool in_place =
          w == first_result && (is_kernel ? r < 32 && (k->overwrites >> r & 1u) != 0 : true);
      for (index_t e = 0; e < count; ++e) {
        if (tensors[e] == nullptr || !overlap(*slots[w].tensor, *tensors[e])) continue;
        if (in_place && same(*slots[w].tensor, *tensors[e])) continue;
        m.info.argument = static_cast<int32_t>(r);
        return m.fail_at(i, fail(m.info, Error::invalid_program,
                                 TAPER_TEXT("what is written overlaps argument {}"), r));
      }
    }
  }
  return Error::ok;
}

Error prepare(MethodData& m, index_t i) {
  Instruction& in = m.instructions[i];
  m.info = {};
  if (in.fresh == Step::copy) {
    TAPER_TRY(prepare_copy(m, i));
    in.step = in.fresh;
    return Error::ok;
  }
  const Kernel& k = *in.kernel;
  for (int a = 0; a < k.expected_count; ++a) {
    if (meets(in.arguments[a], k.expected[a])) continue;
    m.info.argument = a;
    return m.fail_at(i,
                     fail(m.info, Error::invalid_program,
                          TAPER_TEXT("argument {} has strides that the kernel does not take"), a));
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
    Context context{nullptr, 0, m.context.threads, &m.info};
    if (Error e = k.prepare(context, in.plan, in.arguments); e != Error::ok) return m.fail_at(i, e);
    if (!m.placed) {
      if (context.scratch_bytes > m.context.scratch_bytes)
        m.context.scratch_bytes = context.scratch_bytes;
    } else if (context.scratch_bytes > m.context.scratch_bytes) {
      return m.fail_at(i, fail(m.info, Error::out_of_memory,
                               TAPER_TEXT("the kernel needs {} bytes of scratch, {} are there"),
                               static_cast<int64_t>(context.scratch_bytes),
                               static_cast<int64_t>(m.context.scratch_bytes)));
    }
  }
  in.step = in.fresh;
  return Error::ok;
}

}  // namespace taper::internal
