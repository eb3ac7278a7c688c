// What the methods of a program share: kernels, constants, states and texts, each stored once.
// Internal to the writer.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

using target::Signature;

/// "No such thing", for an index.
inline constexpr uint32_t none = 0xffffffffu;

struct ConstantEntry {
  std::string path;
  std::shared_ptr<const ir::Payload> payload;  ///< for a slot, only its type counts
  bool is_slot = false;                        ///< the application gives the elements
};
struct StateEntry {
  std::string path;
  ir::StateKind kind;
  DType dtype;
  std::vector<int64_t> sizes;
  uint32_t initial;  ///< a constant; none: zeros
};

/// A part that a backend runs.
struct DelegateEntry {
  std::string backend;
  uint32_t version;
  std::vector<std::byte> blob;
  std::vector<std::string> nodes;  ///< the operators in it, for reports
};

class ProgramTables {
 public:
  /// `slots`: the paths of states that are slots.
  explicit ProgramTables(std::vector<std::string> slots = {}) : slots_(std::move(slots)) {}

  uint32_t kernel(const Signature& signature);
  /// Adds a constant. Constants with equal dtype, sizes and bytes become one.
  uint32_t constant(const std::string& path, const std::shared_ptr<const ir::Payload>& payload);
  bool is_slot(const std::string& path) const { return std::ranges::count(slots_, path) > 0; }
  /// Adds a constant whose elements the application gives, under the path of the state. Throws
  /// ExportError if methods disagree about its type.
  uint32_t slot(const ir::State& state);
  /// Adds a state. Throws ExportError if methods disagree about it.
  uint32_t state(const ir::State& state);
  /// Keeps a constant as its dense elements, because a backend reads it.
  void keep_dense(uint32_t constant) { dense_.insert(constant); }
  bool is_kept_dense(uint32_t constant) const { return dense_.contains(constant); }
  uint32_t delegate(DelegateEntry entry) {
    delegates_.push_back(std::move(entry));
    return static_cast<uint32_t>(delegates_.size() - 1);
  }
  /// Adds a string argument.
  uint32_t string(const std::string& text) { return index_of(strings_, string_index_, text); }
  /// Adds a text to the debug table. Returns `none` for an empty text.
  uint32_t debug_text(const std::string& text) {
    return text.empty() ? none : index_of(debug_texts_, debug_index_, text);
  }

  const std::vector<Signature>& kernels() const { return kernels_; }
  const std::vector<ConstantEntry>& constants() const { return constants_; }
  const std::vector<StateEntry>& states() const { return states_; }
  const std::vector<DelegateEntry>& delegates() const { return delegates_; }
  const std::vector<std::string>& strings() const { return strings_; }
  const std::vector<std::string>& debug_texts() const { return debug_texts_; }

 private:
  static uint32_t index_of(std::vector<std::string>& list, std::map<std::string, uint32_t>& index,
                           const std::string& text);

  const std::vector<std::string> slots_;
  std::vector<Signature> kernels_;
  std::map<Signature, uint32_t> kernel_index_;
  std::vector<ConstantEntry> constants_;
  std::unordered_multimap<uint64_t, uint32_t> constant_index_;  // by hash of the bytes
  std::unordered_map<const ir::Payload*, uint32_t> payload_index_;
  std::vector<std::shared_ptr<const ir::Payload>> equal_;  // no other payload may get their address
  std::vector<StateEntry> states_;
  std::vector<DelegateEntry> delegates_;
  std::set<uint32_t> dense_;
  std::vector<std::string> strings_, debug_texts_;
  std::map<std::string, uint32_t> string_index_, debug_index_;
};

}  // namespace taper::emit
