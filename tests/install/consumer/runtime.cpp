// Uses an installed Taper as a firmware's project does: the device tier alone.
//
//   runtime PROGRAM.taper: says which methods the program has.
#include "taper/runtime/runtime.h"

#include <cstddef>
#include <cstdio>

#include "taper/kernels/portable/portable.h"

alignas(64) static std::byte file[1 << 16], metadata[1 << 16];

int main(int argc, char** argv) {
  std::FILE* in = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  if (in == nullptr) return std::perror(argc == 2 ? argv[1] : "runtime PROGRAM.taper"), 2;
  const size_t size = std::fread(file, 1, sizeof file, in);
  std::fclose(in);
  const taper::Span<const std::byte> bytes(file, static_cast<taper::index_t>(size));
  const auto program = taper::Program::load(bytes, taper::portable::all, metadata);
  if (!program.ok()) return std::puts(taper::name_of(program.error())), 1;
  for (taper::index_t i = 0; i < program.value().method_count(); ++i)
    std::puts(program.value().method_name(i));
}
