#pragma once
#include <string_view>
#include <vector>

#include "taper/runtime/core/result.h"
#include "taper/runtime/program/program.h"

namespace taper {

/// Something beside the model that its file carries: a tokenizer, labels, a chat template.
struct Asset {
  std::string_view name, media_type;
  Span<const std::byte> bytes;  ///< at a multiple of 64 of the file
};

/// All assets of a program, in the order of the file. They lie in it, so they live as long as the
/// program's bytes. A file whose assets were cut off has none. invalid_program: they are damaged.
Result<std::vector<Asset>> assets_of(const Program& program);

/// The asset with this name. invalid_argument: there is none.
Result<Asset> find_asset(const Program& program, std::string_view name);

}  // namespace taper
