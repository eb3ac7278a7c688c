#pragma once
#include <optional>
#include <vector>

#include "taper/runtime/extension/module/region.h"

namespace taper {

/// The elements of a tensor with the readable bytes behind them that `LoadOptions::constants`
/// wants. For tensors of a file of another kind, such as safetensors:
///
///   std::vector<Region> copies;  // outlives the program
///   const auto bytes = with_slack(elements, file.readable(), alignof(float), copies);
///   if (!bytes) return Error::out_of_memory;
///   constants.emplace_back("adapter", *bytes);
///
/// `readable` is all memory around the elements that may be read. If they lie at a multiple of
/// `alignment` and have 64 readable bytes behind them, they stay where they are. In a file with
/// many tensors only the last one may lack these bytes, and a mapped file seldom does: its last
/// page is readable to its end. Elements that cannot stay are copied to a new region of `copies`.
/// nullopt: there is no memory for a copy.
std::optional<Span<const std::byte>> with_slack(Span<const std::byte> elements,
                                                Span<const std::byte> readable, size_t alignment,
                                                std::vector<Region>& copies);

}  // namespace taper
