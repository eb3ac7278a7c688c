#include "taper/exporter/emit/program_tables.h"

#include <algorithm>
#include <cstring>

#include "taper/exporter/base/error.h"
#include "taper/runtime/program/format.h"

namespace taper::emit {
namespace {

bool same_bytes(const ir::Payload& a, const ir::Payload& b) {
  return a.dtype == b.dtype && a.layout == b.layout && a.sizes == b.sizes &&
         (a.bytes.get() == b.bytes.get() ||
          std::equal(a.bytes.get(), a.bytes.get() + a.size_bytes, b.bytes.get()));
}

/// Equal for equal payloads. For large payloads, it covers the two ends and the size.
uint64_t fingerprint(const ir::Payload& p) {
  constexpr size_t end = 4096;
  const size_t n = p.size_bytes, part = std::min(n, end);
  const uint64_t first = checksum({p.bytes.get(), static_cast<index_t>(part)}, n);
  return checksum({p.bytes.get() + (n - part), static_cast<index_t>(part)}, first);
}

/// The sizes of a state are always fixed.
std::vector<int64_t> sizes_of(const ir::State& state) {
  const ir::Type& type = state.value->type;
  std::vector<int64_t> sizes;
  for (int i = 0; i < type.rank; ++i) sizes.push_back(type.sizes[i].value());
  return sizes;
}

bool is_zero(const ir::Payload& p) {
  return std::all_of(p.bytes.get(), p.bytes.get() + p.size_bytes,
                     [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

uint32_t ProgramTables::index_of(std::vector<std::string>& list,
                                 std::map<std::string, uint32_t>& index, const std::string& text) {
  const auto [at, is_new] = index.try_emplace(text, static_cast<uint32_t>(list.size()));
  if (is_new) list.push_back(text);
  return at->second;
}

uint32_t ProgramTables::kernel(const Signature& signature) {
  const auto [at, is_new] =
      kernel_index_.try_emplace(signature, static_cast<uint32_t>(kernels_.size()));
  if (is_new) kernels_.push_back(signature);
  return at->second;
}

uint32_t ProgramTables::constant(const std::string& path,
                                 const std::shared_ptr<const ir::Payload>& payload) {
  if (auto at = payload_index_.find(payload.get()); at != payload_index_.end()) return at->second;
  const uint64_t hash = fingerprint(*payload);
  const auto [first, last] = constant_index_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (same_bytes(*constants_[at->second].payload, *payload)) {
      equal_.push_back(payload);
      return payload_index_[payload.get()] = at->second;
    }
  const uint32_t index = static_cast<uint32_t>(constants_.size());
  constants_.push_back({path, payload});
  constant_index_.emplace(hash, index);
  return payload_index_[payload.get()] = index;
}

uint32_t ProgramTables::slot(const ir::State& state) {
  ir::Payload payload{state.value->type.dtype, sizes_of(state), nullptr, 0};
  for (size_t i = 0; i < constants_.size(); ++i) {
    const ConstantEntry& other = constants_[i];
    if (!other.is_slot || other.path != state.path) continue;
    if (other.payload->dtype != payload.dtype || other.payload->sizes != payload.sizes)
      throw ExportError("the slot " + state.path +
                        " has another dtype or size in another method of this program");
    return static_cast<uint32_t>(i);
  }
  constants_.push_back({state.path, std::make_shared<const ir::Payload>(std::move(payload)), true});
  return static_cast<uint32_t>(constants_.size() - 1);
}

uint32_t ProgramTables::state(const ir::State& state) {
  const ir::Type& type = state.value->type;
  std::vector<int64_t> sizes = sizes_of(state);
  const bool starts_with_zeros = state.initial == nullptr || is_zero(*state.initial);
  const uint32_t initial = starts_with_zeros ? none : constant(state.path, state.initial);
  for (size_t i = 0; i < states_.size(); ++i) {
    const StateEntry& other = states_[i];
    if (other.path != state.path) continue;
    if (other.kind != state.kind || other.dtype != type.dtype || other.sizes != sizes ||
        other.initial != initial)
      throw ExportError(
          "the state " + state.path +
          " has another kind, dtype, size or first value in another method of this program");
    return static_cast<uint32_t>(i);
  }
  states_.push_back({state.path, state.kind, type.dtype, std::move(sizes), initial});
  return static_cast<uint32_t>(states_.size() - 1);
}

}  // namespace taper::emit
