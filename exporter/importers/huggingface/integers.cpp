#include "taper/exporter/importers/huggingface/integers.h"

#include <cmath>

namespace taper::huggingface::internal {
namespace {

constexpr int64_t block = 32;

bool is_centered(const Integers& m) {
  for (int64_t i = 0; i < m.out; ++i)
    for (int64_t g = 0; g < m.in / m.group; ++g)
      if (m.zero(i, g) != 8) return false;
  return true;
}

void store_half(float value, const Named& weight, std::byte* to) {
  const Half half(value);
  weight.require(std::isfinite(static_cast<float>(half)), "a scale is too large for f16");
  std::memcpy(to, &half, sizeof half);
}

void pack_nibbles(const uint8_t* q, std::byte* to) {
  for (int j = 0; j < block / 2; ++j) to[j] = static_cast<std::byte>(q[j] | q[j + 16] << 4);
}

void pack_bytes(const uint8_t* values, int zero, const Named& weight, std::byte* to) {
  for (int j = 0; j < block; ++j) {
    const int q = values[j] - zero;
    weight.require(q >= -128 && q < 128, "an integer minus its zero point needs more than 8 bits");
    to[j] = static_cast<std::byte>(q);
  }
}

}  // namespace

Repacked in_blocks(const Named& weight, const Integers& m) {
  const Layout layout = m.bits == 8 ? Layout::q8_0 : is_centered(m) ? Layout::q4_0 : Layout::q4_1;
  const Blocks blocks(layout, m.out, m.in);
  for (int64_t b = 0; b < m.in / block; ++b)
    for (int64_t i = 0; i < m.out; ++i) {
      const int64_t group = b * block / m.group;
      const float scale = m.scale(i, group);
      const int zero = m.zero(i, group);
      uint8_t values[block];
      m.values(i, b * block, values);
      std::byte* to = blocks.at(i, b);
      store_half(scale, weight, to);
      if (layout == Layout::q8_0) {
        pack_bytes(values, zero, weight, to + 2);
        continue;
      }
      if (layout == Layout::q4_1) store_half(-scale * static_cast<float>(zero), weight, to += 2);
      pack_nibbles(values, to + 2);
    }
  return blocks.finish();
}

int64_t integer(const nlohmann::json& config, const char* key, int64_t otherwise) {
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return otherwise;
  if (!at->is_number_integer())
    throw ExportError(std::string("config: quantization_config.") + key +
                      " must be an integer, it is " + at->dump().substr(0, 60));
  return at->get<int64_t>();
}

int64_t group_of(const Named& weight, int64_t said, int64_t in) {
  const int64_t group = said == -1 ? in : said;
  weight.require(group > 0 && group % block == 0 && in % group == 0,
                 "groups of " + std::to_string(group) + " of " + std::to_string(in) +
                     " inputs do not divide into blocks of 32");
  return group;
}

int bits_of(const nlohmann::json& config, const char* key) {
  const int64_t bits = integer(config, key, 4);
  if (bits != 4 && bits != 8)
    throw ExportError(std::string("config: quantization_config.") + key + " is " +
                      std::to_string(bits) + "; 4 and 8 are read");
  return static_cast<int>(bits);
}

}  // namespace taper::huggingface::internal
