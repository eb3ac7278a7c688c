// Something beside a model that its program file carries: a tokenizer, labels, a chat template.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace taper::io {

struct Asset {
  std::string name;        ///< such as "tokenizer.json"; unique in a file
  std::string media_type;  ///< such as "application/json"
  std::vector<std::byte> bytes;
};

/// An asset whose bytes are a text.
inline Asset text_asset(std::string name, std::string media_type, const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {std::move(name), std::move(media_type), {begin, begin + text.size()}};
}

}  // namespace taper::io
