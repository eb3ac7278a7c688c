#include "exact_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>

#include "taper/tests/support/sanitizers.h"

#ifdef TAPER_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace taper::golden {
namespace {

constexpr size_t slack = 64;
std::string current_case;
const char* current_record = "";

#ifdef TAPER_ADDRESS_SANITIZER

/// Memory of which only `size` bytes, and `readable` more behind, may be touched.
class Walled {
 public:
  Walled(size_t size, size_t readable, bool aligned)
      : total_((2 * around + size + readable + 127) / 64 * 64),
        begin_(static_cast<std::byte*>(std::aligned_alloc(64, total_))) {
    if (begin_ == nullptr) throw std::bad_alloc();
    static size_t count = 0;  // tensors start at multiples of 8 that are no more than that
    data_ = begin_ + around + (aligned ? 0 : count++ % 8 * 8);
    std::memset(begin_, 0xff, total_);
    ASAN_POISON_MEMORY_REGION(begin_, static_cast<size_t>(data_ - begin_));
    ASAN_POISON_MEMORY_REGION(data_ + size + readable,
                              static_cast<size_t>(begin_ + total_ - data_) - size - readable);
  }
  ~Walled() {
    open();
    std::free(begin_);
  }
  void open() const { ASAN_UNPOISON_MEMORY_REGION(begin_, total_); }

 protected:
  static constexpr size_t around = 128;
  size_t total_;
  std::byte *begin_, *data_;
};

#else

/// Memory that ends at a page which nobody may touch: `size` bytes, and `readable` more behind.
/// Aligned ones may end up to 63 bytes before.
class Walled {
 public:
  Walled(size_t size, size_t readable, bool aligned) {
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t bytes = aligned ? (size + readable + 63) / 64 * 64 : size + readable;
    total_ = (bytes + page) / page * page;
    std::vector<std::byte*>& free = unused()[total_];
    if (free.empty()) {
      void* const mapped = ::mmap(nullptr, total_ + page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mapped == MAP_FAILED) throw std::bad_alloc();
      free.push_back(static_cast<std::byte*>(mapped));
      if (::mprotect(free.back() + total_, page, PROT_NONE) != 0) throw std::bad_alloc();
    }
    begin_ = free.back();
    free.pop_back();
    data_ = begin_ + total_ - bytes;
    std::memset(begin_, 0xff, total_);
  }
  ~Walled() { unused()[total_].push_back(begin_); }
  void open() const {}

 protected:
  size_t total_;
  std::byte *begin_, *data_;

 private:
  static std::map<size_t, std::vector<std::byte*> >& unused() {  // by size
    static std::map<size_t, std::vector<std::byte*> > blocks;
    return blocks;
  }
};

#endif

/// `size` bytes, all 0xff: NaN as floats, -1 as integers. So are those around.
class Block : Walled {
 public:
  Block(size_t size, size_t readable, bool aligned)
      : Walled(size, readable, aligned), size_(size) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// Whether nothing was written around the bytes. Ends the use of the block.
  bool is_intact() const {
    open();
    const auto untouched = [](std::byte b) { return b == std::byte{0xff}; };
    return std::all_of(begin_, data_, untouched) &&
           std::all_of(data_ + size_, begin_ + total_, untouched);
  }

 private:
  size_t size_;
};

/// From the first byte of a tensor to behind the last one that an element has.
size_t span_bytes(const TensorRef& t) {
  index_t last = 0;
  for (int i = 0; i < t.shape->rank; ++i) {
    if (t.shape->sizes[i] == 0) return 0;
    last += (t.shape->sizes[i] - 1) * t.shape->strides[i];
  }
  return static_cast<size_t>((last + 1) * size_bytes(t.dtype));
}

/// The slots of a call, with all that they point to on memory of their own.
class ExactSlots {
 public:
  ExactSlots(const Kernel& kernel, const Slot* slots)
      : kernel_(kernel), slots_(slots, slots + kernel.expected_count) {
    const int arguments = kernel.expected_count - kernel.result_count;
    for (int i = 0; i < kernel.expected_count; ++i) {
      Slot& s = slots_[static_cast<size_t>(i)];
      const Expected& e = kernel.expected[i];
      if (s.kind == Kind::tensor && e.list)
        s.tensors = list(s, e.written);
      else if (s.kind == Kind::tensor && s.tensor != nullptr)
        s.tensor = copy(*s.tensor, e.written, i >= arguments);
      else if (s.kind == Kind::string && s.present)
        s.text = keep(s.text, s.size);
      else if (e.list && s.kind == Kind::real)
        s.reals = keep(s.reals, s.size);
      else if (e.list)
        s.integers = keep(s.integers, s.size);
    }
  }
  const Slot* data() const { return slots_.data(); }

  /// Gives the caller what was written. Says what was written elsewhere, or "".
  std::string finish() {
    std::string wrong;
    for (const Copy& c : copies_) {
      if (!c.block.is_intact())
        wrong += std::string(kernel_.name) + " wrote beside a tensor of " +
                 std::to_string(c.block.size()) + " bytes; ";
      if (c.block.size() == 0) continue;
      if (c.written)
        std::memcpy(c.original->data, c.block.data(), c.block.size());
      else if (std::memcmp(c.original->data, c.block.data(), c.block.size()) != 0)
        wrong += std::string(kernel_.name) + " wrote to an argument; ";
    }
    return wrong;
  }

 private:
  struct Copy {
    const TensorRef* original;
    Block block;
    TensorRef ref;
    bool written;
    Copy(const TensorRef& t, bool written)
        : original(&t), block(span_bytes(t), slack, false), ref(t), written(written) {
      ref.data = block.data();
    }
  };

  const TensorRef* copy(const TensorRef& t, bool written, bool is_result) {
    for (Copy& c : copies_)  // a result that lies on an argument
      if (is_result && c.block.size() > 0 && c.original->data == t.data)
        return c.written = true, &c.ref;
    Copy& c = copies_.emplace_back(t, written);
    if (!is_result && c.block.size() > 0) std::memcpy(c.block.data(), t.data, c.block.size());
    return &c.ref;
  }
  const TensorRef* const* list(const Slot& s, bool written) {
    std::vector<const TensorRef*> refs;
    for (uint32_t k = 0; k < s.size; ++k)
      refs.push_back(s.tensors[k] == nullptr ? nullptr : copy(*s.tensors[k], written, false));
    return keep(refs.data(), s.size);
  }
  template <class T>
  const T* keep(const T* from, uint32_t count) {
    const size_t bytes = count * sizeof(T);
    Block& block = lists_.emplace_back(bytes, 0, true);
    if (bytes > 0) std::memcpy(block.data(), from, bytes);
    return reinterpret_cast<const T*>(block.data());
  }

  const Kernel& kernel_;
  std::vector<Slot> slots_;
  std::deque<Copy> copies_;
  std::deque<Block> lists_;
};

}  // namespace

const Kernel* ExactCalls::choose(const std::vector<const Kernel*>& fitting) {
  most_ = std::max(most_, fitting.size());
  return fitting[std::min(wanted_, fitting.size() - 1)];
}

Error ExactCalls::call(const Kernel& kernel, Context& context, const Slot* slots) {
  called_.insert(&kernel);
  current_record = kernel.name;
  ExactSlots exact(kernel, slots);
  const Block plan(kernel.plan_bytes, 0, true);
  Error error = Error::ok;
  if (kernel.end != nullptr) std::memset(plan.data(), 0, kernel.plan_bytes);
  if (kernel.prepare != nullptr) error = kernel.prepare(context, plan.data(), exact.data());
  const bool prepared = error == Error::ok;
  const Block scratch(context.scratch_bytes, 0, true);
  context.scratch = context.scratch_bytes > 0 ? scratch.data() : nullptr;
  if (prepared) error = kernel.run(context, plan.data(), exact.data());
  if (prepared && kernel.end != nullptr) kernel.end(plan.data());
  wrong_ += exact.finish();
  if (!scratch.is_intact()) wrong_ += std::string(kernel.name) + " wrote beside its scratch; ";
  if (!plan.is_intact()) wrong_ += std::string(kernel.name) + " wrote beside its plan; ";
  return error;
}

void now_running(const std::string& id) {
#ifdef TAPER_ADDRESS_SANITIZER
  if (current_case.empty())
    __sanitizer_set_death_callback([] {
      std::fprintf(stderr, "in case %s, record %s\n", current_case.c_str(), current_record);
    });
#endif
  current_case = id;
}

}  // namespace taper::golden
