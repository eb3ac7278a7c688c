// Checks whether the memory that an instruction writes overlaps memory that it reads.
#include "taper/runtime/method/method_data.h"

namespace taper::internal {

Error check_overlaps(MethodData& m, index_t i) {
  const format::Instruction& in = m.view.instructions[i];
  const Slot* slots = m.instructions[i].arguments;
  const bool is_kernel = in.kind() == format::InstructionKind::kernel;
  const Kernel* k = is_kernel ? m.instructions[i].kernel : nullptr;
  const bool is_delegate = in.kind() == format::InstructionKind::delegate;
  const index_t n = in.arguments_count(), first_result = is_kernel     ? n - k->result_count
                                                         : is_delegate ? n - in.results()
                                                                       : 1;

  const auto overlap = [](const TensorRef& a, const TensorRef& b) {
    size_t a_bytes = 0, b_bytes = 0;
    (void)extent_bytes(a, a_bytes),
        (void)extent_bytes(b, b_bytes);  // place_values has checked that both can be counted
    a_bytes = stored_bytes(a_bytes, a.layout), b_bytes = stored_bytes(b_bytes, b.layout);
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
    const bool written =
        is_kernel ? k->expected[w].written && !k->expected[w].list : w >= first_result;
    if (!written || slots[w].tensor == nullptr) continue;
    for (index_t r = 0; r < n; ++r) {
      if (r == w || slots[r].kind != Kind::tensor || slots[r].tensor == nullptr) continue;
      const bool list = is_kernel && k->expected[r].list;
      const TensorRef* const* tensors = list ? slots[r].tensors : &slots[r].tensor;
      const index_t count = list ? static_cast<index_t>(slots[r].size) : 1;
      const bool in_place = w == first_result &&
                            (is_kernel ? r < 32 && (k->overwrites >> r & 1u) != 0 : !is_delegate);
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

}  // namespace taper::internal
