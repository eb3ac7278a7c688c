#pragma once
#include <cstddef>
#include <memory>

#include "taper/runtime/core/span.h"

namespace taper {

/// Pages of memory that several places of a process begin with. A place that writes to one of them
/// gets a copy of that page, so the others do not see the change.
///
/// Linux has such pages, and Android from version 11 on. Elsewhere `create` gives none, and the
/// caller copies instead.
class SharedPages {
 public:
  /// nullptr: the system has none, or a quarter of the files that the process may open are such
  /// pages already.
  static std::unique_ptr<SharedPages> create();
  SharedPages(const SharedPages&) = delete;
  ~SharedPages();

  /// The size of a page. Places and sizes below are multiples of it.
  static size_t page_bytes();
  size_t size_bytes() const { return size_; }
  /// Adds a copy of these pages behind the others. False: there is no memory for it.
  bool append(Span<const std::byte> pages);
  /// Puts the pages from `offset` on in the place of those of a Region. False: the system refuses,
  /// and the place is as it was.
  bool put(size_t offset, Span<std::byte> place) const;
  /// Puts zeros in the place of pages of a Region. They take no memory until they are used.
  static bool clear(Span<std::byte> place);

  /// Asks for room for so many places that hold shared pages at once. False: there is none; copy
  /// instead. A system gives a process only so many mappings (Linux: vm.max_map_count, 65,530), a
  /// place may split one into three, and a process without mappings gets no memory either. So all
  /// places together take three quarters of the mappings.
  static bool reserve(index_t places);
  /// Gives back what was reserved, once the places are cleared.
  static void give_back(index_t places);

 private:
  explicit SharedPages(int file) : file_(file) {}
  const int file_;
  size_t size_ = 0;
};

}  // namespace taper
