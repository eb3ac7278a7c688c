// Feeds the loader programs whose bytes were changed. The checksum is repaired after each mutation,
// so that changes reach the tables; what loads is created and executed too, with few steps.
//
// Memory is full of one byte of the input when a method is created, as regions are not cleared. So
// an element of a bool tensor may be any byte. Kernels promise then that they touch no memory but
// theirs, and no value: the preset leaves out -fsanitize=bool.
//
// It begins with the real programs of corpus/program (inference and training, with symbols), and
// with one of the tests that has what the exporter does not write yet: lists and a loop.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../tests/runtime/programs.h"
#include "taper/kernels/portable/portable.h"

using namespace taper;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

void repair(test::AlignedBytes& file) {
  if (file.size() < sizeof(FileHeader)) return;
  FileHeader h;
  std::memcpy(&h, file.data(), sizeof h);
  std::memcpy(h.magic, file_magic, sizeof h.magic);
  h.version = format_version, h.flags = 0;
  h.file_bytes = file.size();
  std::memcpy(file.data(), &h, sizeof h);
  test::fix_checksum(file);
}

// The tests' kernels and the real ones.
KernelSet all_kernels() {
  static const std::vector<const Kernel*> all = [] {
    std::vector<const Kernel*> kernels(test::kernels.begin(), test::kernels.end());
    kernels.insert(kernels.end(), portable::all.begin(), portable::all.end());
    return kernels;
  }();
  return all;
}

test::AlignedBytes copy_of(const uint8_t* data, size_t size) {
  test::AlignedBytes file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  return file;
}

// What lies behind the header and before the weights.
size_t tables_bytes(const uint8_t* data, size_t size) {
  FileHeader h;
  std::memcpy(&h, data, sizeof h);
  return std::min<uint64_t>(h.metadata_bytes, size - sizeof h);
}

}  // namespace

// Changes one to three 32-bit words of the metadata, mostly to numbers that are indices, counts or
// extremes; sometimes anything.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  static const test::AlignedBytes first = test::sums_program().bytes();
  if ((size < sizeof(FileHeader) || seed % 1024 == 1) && first.size() <= max_size) {
    std::memcpy(data, first.data(), first.size());
    return first.size();
  }
  if (size < sizeof(FileHeader) || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  uint32_t random = seed * 2654435761u + 1;
  const auto next = [&random] { return random = random * 1664525u + 1013904223u, random >> 8; };
  const uint32_t extremes[] = {0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0xffff, 0x10000, 0};
  for (uint32_t k = 0; k < 1 + next() % 3; ++k) {
    const size_t at = sizeof(FileHeader) + next() % (tables_bytes(data, size) / 4 + 1) * 4;
    if (at + 4 > size) continue;
    uint32_t word;
    std::memcpy(&word, data + at, 4);
    switch (next() % 5) {
      case 0:
        word = extremes[next() % 7];
        break;
      case 1:
        word += next() % 9 - 4;
        break;
      case 2:
        word = next() % 40;
        break;
      case 3:
        word ^= 1u << next() % 32;
        break;
      default:
        std::memcpy(&word,
                    data + (sizeof(FileHeader) + next() % (tables_bytes(data, size) / 4 + 1) * 4) %
                               (size - 4),
                    4);
        break;
    }
    std::memcpy(data + at, &word, 4);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  test::AlignedBytes file = copy_of(data, size);
  const int garbage = size > 0 ? data[size / 2] : 0;
  repair(file);
  static test::AlignedBytes metadata(1 << 18), session_memory(1 << 18), memory(1 << 20);
  Result<Program> program = Program::load(file, all_kernels(), metadata);
  if (!program.ok()) return 0;
  (void)program.value().verify_segments();
  Result<Session> session = Session::create(program.value(), session_memory);
  if (!session.ok()) return 0;
  std::memset(memory.data(), garbage, memory.size());
  for (index_t i = 0; i < program.value().method_count() && i < 4; ++i) {
    Result<Method> method =
        Method::create(session.value(), program.value().method_name(i), MethodMemory(memory));
    if (!method.ok()) continue;
    Limits limits;
    limits.steps = 200;
    (void)method.value().execute(limits);
    for (index_t k = 0; k < method.value().input_count(); ++k) {
      (void)method.value().set_number(k, int64_t{1});
      index_t sizes[max_rank] = {};
      const TensorRef input = method.value().input(k);
      for (int d = 0; input.shape != nullptr && d < input.shape->rank; ++d)
        sizes[d] = (input.shape->sizes[d] + 1) / 2;
      if (input.shape != nullptr) (void)method.value().resize_input(k, {sizes, input.shape->rank});
    }
    (void)method.value().execute(limits);
    (void)method.value().instruction_count();
  }
  return 0;
}
