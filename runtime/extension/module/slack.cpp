#include "taper/runtime/extension/module/slack.h"

#include <cstring>
#include <functional>
#include <utility>

#include "taper/runtime/program/format.h"

namespace taper {

std::optional<Span<const std::byte>> with_slack(Span<const std::byte> elements,
                                                Span<const std::byte> readable, size_t alignment,
                                                std::vector<Region>& copies) {
  const index_t size = elements.size(), wanted = size + static_cast<index_t>(slack_bytes);
  const std::less<> before;  // of unrelated addresses, too
  if (!before(elements.data(), readable.data()) && !before(readable.end(), elements.data()) &&
      readable.end() - elements.data() >= wanted &&
      reinterpret_cast<uintptr_t>(elements.data()) % alignment == 0)
    return Span<const std::byte>(elements.data(), wanted);
  Region copy(static_cast<size_t>(wanted));
  if (!copy.is_there()) return std::nullopt;
  const Span<std::byte> bytes = copy;
  if (size > 0) std::memcpy(bytes.data(), elements.data(), static_cast<size_t>(size));
  copies.push_back(std::move(copy));
  return Span<const std::byte>(bytes);
}

}  // namespace taper
