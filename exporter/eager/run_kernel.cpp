#include "taper/exporter/eager/run_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/threads.h"

namespace taper::eager {
namespace {

constexpr int max_slots = Schema::max_parameters + Schema::max_results;

/// The arguments in the form that kernels take, and the memory for lists and dense copies.
class Slots {
 public:
  Slots(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
    size_t listed = 0;
    for (int i = 0; i < info.argument_count; ++i)
      if (arguments[i].kind == Kind::tensor && arguments[i].list) listed += arguments[i].size;
    list_refs_.reserve(listed);  // slots point into it
    for (int i = 0; i < info.argument_count; ++i) fill(slots_[i], arguments[i], here);
  }
  Slot* data() { return slots_; }
  Slot& operator[](int i) { return slots_[i]; }

  /// Replaces arguments whose strides or layout the kernel does not take by dense copies.
  void meet_strides(const Kernel& kernel, const OperatorInfo& info, const Boxed* arguments,
                    const Location& here) {
    for (int i = 0; i < info.argument_count; ++i) {
      if (arguments[i].kind != Kind::tensor || !arguments[i].present) continue;
      for (uint32_t k = 0; k < arguments[i].size; ++k) {
        const Tensor& t = arguments[i].tensors[k];
        if (!t.defined() || meets(kernel, i, t)) continue;
        NoGrad guard;
        const Tensor& dense = dense_copies_.emplace_back(
            t.layout() != Layout::dense ? t.unpacked(here) : call<ops::clone>(here, t));
        if (arguments[i].list)
          list_refs_[static_cast<size_t>(slots_[i].tensors - list_refs_.data()) + k] = &dense.ref();
        else
          slots_[i].tensor = &dense.ref();
      }
    }
  }

 private:
  static bool meets(const Kernel& kernel, int argument, const Tensor& t) {
    if (t.layout() != Layout::dense)
      return std::any_of(kernel.packings.begin(), kernel.packings.end(), [&](const Packing& p) {
        return p.argument == argument && p.unless < 0 && p.reads(t.layout());
      });
    const Strides strides = kernel.expected[argument].strides;
    if (strides == Strides::any || t.impl()->shape.is_dense()) return true;
    return strides == Strides::rows && t.rank() > 0 && t.impl()->shape.strides[t.rank() - 1] == 1;
  }

  void fill(Slot& s, const Boxed& b, const Location& here) {
    s.integer = 0, s.size = b.size, s.kind = b.kind, s.present = b.present;
    if (b.kind == Kind::tensor) {
      if (b.list) {
        const size_t first = list_refs_.size();
        for (uint32_t k = 0; k < b.size; ++k)
          list_refs_.push_back(b.tensors[k].defined() ? &b.tensors[k].ref(here) : nullptr);
        s.tensors = list_refs_.data() + first;
      } else {
        s.tensor = b.present ? &b.tensor().ref(here) : nullptr;
      }
      return;
    }
    if (!b.present) return;
    if (b.kind == Kind::real) {
      if (b.list)
        s.reals = b.reals;
      else
        s.real = b.real;
    } else if (b.kind == Kind::string) {
      s.text = b.text;
    } else if (b.list && b.symbolic) {
      if (numbers_used_ + b.size > numbers_.size())
        throw EagerError(here, "an operator's lists of integers have more than 64 elements");
      for (uint32_t k = 0; k < b.size; ++k) numbers_[numbers_used_ + k] = b.dims[k].value();
      s.integers = numbers_.data() + numbers_used_;
      numbers_used_ += b.size;
    } else if (b.list) {
      s.integers = b.integers;
    } else {
      s.integer = b.dim.value();
    }
  }

  Slot slots_[max_slots];
  std::array<int64_t, 64> numbers_;
  size_t numbers_used_ = 0;
  std::vector<const TensorRef*> list_refs_;
  std::vector<Tensor> dense_copies_;
};

bool fits(const Kernel& kernel, const OperatorInfo& info, const Boxed* arguments,
          DType (*seen)(DType)) {
  return !any_tensor(info, arguments, [&](int i, const Tensor& t) {
    return !(kernel.expected[i].dtypes & one(seen != nullptr ? seen(t.dtype()) : t.dtype()));
  });
}
bool gives(const Kernel& kernel, const OperatorInfo& info, const TensorType<Extent>* results) {
  for (int k = 0; k < kernel.result_count; ++k)
    if (results[k].present &&
        !(kernel.expected[info.argument_count + k].dtypes & one(results[k].dtype)))
      return false;
  return true;
}

KernelCaller* kernel_caller = nullptr;

/// The first kernel that takes the dtypes, or the one that the caller chooses; nullptr if there is
/// none.
const Kernel* choose(const OperatorInfo& info, const Boxed* arguments,
                     const TensorType<Extent>* results) {
  std::vector<const Kernel*> fitting;
  for (const Kernel* kernel : info.kernels) {
    if (!fits(*kernel, info, arguments, nullptr) || !gives(*kernel, info, results)) continue;
    if (kernel_caller == nullptr) return kernel;
    fitting.push_back(kernel);
  }
  return fitting.empty() ? nullptr : kernel_caller->choose(fitting);
}

/// Prepares and runs a kernel in host memory.
Error call_record(const Kernel& kernel, Context& context, const Slot* slots) {
  alignas(8) std::byte plan[max_plan_bytes];
  if (kernel.end != nullptr) std::memset(plan, 0, kernel.plan_bytes);
  if (kernel.prepare != nullptr)
    if (const Error error = kernel.prepare(context, plan, slots); error != Error::ok) return error;
  struct End {
    const Kernel& kernel;
    std::byte* plan;
    ~End() {
      if (kernel.end != nullptr) kernel.end(plan);
    }
  } const end{kernel, plan};
  std::shared_ptr<Storage> scratch;
  if (context.scratch_bytes > 0) {
    scratch = Storage::allocate(context.scratch_bytes);
    context.scratch = scratch->data();
  }
  return kernel.run(context, plan, slots);
}

Tensor allocate(const OperatorInfo& info, const TensorType<Extent>& type, const Location& here) {
  Extent bytes = size_bytes(type.dtype);
  for (int i = 0; i < type.rank; ++i) {
    if (type.sizes[i].value < 0)
      throw EagerError(here, std::string(info.name) + ": the result's size " +
                                 std::to_string(type.sizes[i].value) + " is negative or too large");
    bytes = bytes * type.sizes[i];
  }
  if (bytes.invalid())
    throw EagerError(here, std::string(info.name) + ": the result has more than 2^63 bytes");
  auto impl = std::make_shared<TensorImpl>(static_cast<size_t>(bytes.value));
  impl->shape.rank = type.rank;
  for (int i = 0; i < type.rank; ++i) impl->shape.sizes[i] = type.sizes[i].value;
  impl->shape.make_dense();
  impl->ref.dtype = type.dtype;
  impl->bind();
  return Tensor(std::move(impl));
}

/// Whether the kernel may write its result directly onto `self`, which is argument 0.
bool may_overwrite(const Kernel& kernel, const OperatorInfo& info, const Boxed* arguments,
                   const TensorType<Extent>& result, const Tensor& self) {
  const TensorImpl& impl = *self.impl();
  if (!(kernel.overwrites & 1) || !impl.shape.is_dense() || result.dtype != self.dtype() ||
      result.rank != impl.shape.rank)
    return false;
  for (int i = 0; i < result.rank; ++i)
    if (result.sizes[i].value != impl.shape.sizes[i]) return false;
  return !any_tensor(info, arguments, [&](int i, const Tensor& t) {
    return i > 0 && t.impl()->storage == impl.storage;
  });
}

/// The operator that multiplies with a weight in blocks, or looks up its rows, without a dense copy
/// of the weight. It takes the first arguments of the other, and gives the same bits. nullptr: no
/// weight is in blocks.
const OperatorInfo* reader_of_blocks(const OperatorInfo& info, const Boxed* arguments) {
  const bool looks_up = info.op == &ops::embedding;
  if (!looks_up && info.op != &ops::linear) return nullptr;
  const Tensor &weight = arguments[looks_up ? 0 : 1].tensor(),
               &other = arguments[looks_up ? 1 : 0].tensor();
  if (!is_in_blocks(weight.layout()) || weight.rank() != 2 || other.layout() != Layout::dense)
    return nullptr;
  static const OperatorInfo &product = info_of(ops::taper_block_linear),
                            &rows = info_of(ops::taper_block_embedding);
  return looks_up ? &rows : &product;
}

std::string dtypes_of_arguments(const OperatorInfo& info, const Boxed* arguments) {
  std::string text;
  any_tensor(info, arguments, [&](int, const Tensor& t) {
    text += (text.empty() ? "" : ", ") + std::string(taper::name_of(t.dtype()));
    return false;
  });
  return text;
}

}  // namespace

bool some_kernel_fits(const OperatorInfo& info, const Boxed* arguments, DType (*seen)(DType)) {
  return std::any_of(info.kernels.begin(), info.kernels.end(),
                     [&](const Kernel* k) { return fits(*k, info, arguments, seen); });
}
void run_kernel(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                const Tensor* self, const Location& here) {
  if (const OperatorInfo* reader = reader_of_blocks(info, arguments))
    return run_kernel(*reader, arguments, results, nullptr, here);
  Slots slots(info, arguments, here);
  TensorType<Extent> types[Schema::max_results];
  Facts<Extent> facts;
  if (info.numeric_rule == nullptr) throw MissingKernelError(here, describe_absence(info));
  if (!info.numeric_rule(facts, slots.data(), types))
    throw EagerError(here, describe_failure(info, arguments, facts));
  const Kernel* kernel = choose(info, arguments, types);
  if (kernel == nullptr)
    throw MissingKernelError(here, std::string(info.name) + ": no kernel for " +
                                       dtypes_of_arguments(info, arguments) +
                                       "; cast the arguments to f32");

  const int result_count = info.schema.result_count;
  for (int k = 0; k < result_count; ++k) {
    if (!types[k].present) continue;
    if (self && k == 0 && may_overwrite(*kernel, info, arguments, types[0], *self))
      results[k] = *self;
    else
      results[k] = allocate(info, types[k], here);
  }
  slots.meet_strides(*kernel, info, arguments, here);
  for (int k = 0; k < result_count; ++k) {
    Slot& s = slots[info.argument_count + k];
    s.tensor = results[k].defined() ? &results[k].ref() : nullptr;
    s.size = 1, s.kind = Kind::tensor, s.present = results[k].defined();
  }

  ErrorInfo failure;
  Context context;
  context.threads = threads();
  context.info = &failure;
  const Error error = kernel_caller != nullptr ? kernel_caller->call(*kernel, context, slots.data())
                                               : call_record(*kernel, context, slots.data());
  if (error != Error::ok) throw EagerError(here, describe_failure(info, arguments, failure, error));
}

void set_kernel_caller(KernelCaller* caller) { kernel_caller = caller; }

}  // namespace taper::eager
