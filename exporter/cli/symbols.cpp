#include "taper/exporter/cli/symbols.h"

#ifdef __linux__
#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {

// How far from the addresses of its file the program was loaded.
uintptr_t load_offset() {
  uintptr_t offset = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uintptr_t*>(to) = info->dlpi_addr;
        return 1;  // the program comes first
      },
      &offset);
  return offset;
}

// `count` objects from `at` on; none if they do not lie in the file.
template <class T>
std::span<const T> table(std::span<const std::byte> file, size_t at, size_t count) {
  if (at > file.size() || count > (file.size() - at) / sizeof(T) || at % alignof(T) != 0) return {};
  return {reinterpret_cast<const T*>(file.data() + at), count};
}

}  // namespace

Symbols Symbols::of_this_program() {
  Symbols symbols;
  const io::Bytes bytes = io::read_file("/proc/self/exe");
  const std::span<const std::byte> file(bytes);
  const auto head = table<ElfW(Ehdr)>(file, 0, 1);
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0) return symbols;
  const auto sections = table<ElfW(Shdr)>(file, head[0].e_shoff, head[0].e_shnum);
  const uintptr_t offset = load_offset();
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const auto& texts = sections[section.sh_link];
    const auto names = table<char>(file, texts.sh_offset, texts.sh_size);
    for (const ElfW(Sym) & symbol :
         table<ElfW(Sym)>(file, section.sh_offset, section.sh_size / sizeof(ElfW(Sym)))) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 ||
          symbol.st_name >= names.size())
        continue;
      const char* const name = names.data() + symbol.st_name;
      symbols.functions_.push_back({symbol.st_value + offset,
                                    symbol.st_value + offset + symbol.st_size,
                                    {name, strnlen(name, names.size() - symbol.st_name)}});
    }
  }
  std::ranges::sort(symbols.functions_, {}, &Function::begin);
  return symbols;
}

std::string Symbols::name_of(const void* place) const {
  const auto at = reinterpret_cast<uintptr_t>(place);
  auto after = std::ranges::upper_bound(functions_, at, {}, &Function::begin);
  if (after == functions_.begin() || at >= (--after)->end) return "";
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(after->name.c_str(), nullptr, nullptr, nullptr), &std::free);
  return name == nullptr ? after->name : name.get();
}

}  // namespace taper::cli

#else

namespace taper::cli {

Symbols Symbols::of_this_program() { return {}; }
std::string Symbols::name_of(const void*) const { return ""; }

}  // namespace taper::cli
#endif
