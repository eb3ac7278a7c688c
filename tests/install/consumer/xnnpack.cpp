// Uses an installed XNNPACK delegate as an app does that gives it memory of its own.
//
//   xnnpack PROGRAM.taper: runs `forward` with ones, by XNNPACK.
#include <atomic>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "taper/delegates/xnnpack/runtime/backend.h"
#include "taper/runtime/extension/module/module.h"

namespace xnnpack = taper::delegates::xnnpack;

class CountedHeap final : public xnnpack::Memory {
 public:
  void* allocate(size_t bytes) override {
    bytes_ += bytes;
    return ::operator new(bytes, alignment, std::nothrow);
  }
  void release(void* memory, size_t bytes) override {
    bytes_ -= bytes;
    ::operator delete(memory, alignment);
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t alignment{64};
  std::atomic<size_t> bytes_{0};
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: xnnpack PROGRAM.taper\n"), 2;
  static CountedHeap heap;
  static xnnpack::XnnpackBackend backend(heap);
  std::string why;
  taper::ModuleOptions options;
  options.message = &why;
  if (taper::Module::load(argv[1], options).ok())
    return std::fprintf(stderr, "xnnpack: the program needs no backend\n"), 1;
  options.backends = {&backend};
  taper::Result<taper::Module> model = taper::Module::load(argv[1], options);
  if (!model.ok()) return std::fprintf(stderr, "xnnpack: %s\n", why.c_str()), 1;
  const std::vector<float> x(2 * 2, 1.0f);
  const auto results = model->execute("forward", {{x.data(), {2, 2}}});
  if (!results.ok()) return std::fprintf(stderr, "xnnpack: %s\n", model->message().c_str()), 1;
  const taper::OwnedTensor& y = results.value()[0];
  for (taper::index_t i = 0; i < y.numel(); ++i)
    std::printf("%g ", static_cast<double>(y.data<float>()[i]));
  return heap.bytes() > 0 ? 0 : 1;
}
