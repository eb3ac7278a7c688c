// The bytes of a file, in order. Weights are not copied before they are written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "taper/runtime/program/format.h"

namespace taper::emit {

/// Bytes of others, such as weights, and bytes that are made when they are needed, such as packed
/// weights.
class Pieces {
 public:
  using Take = std::function<void(std::span<const std::byte>)>;

  void add(std::span<const std::byte> bytes);
  /// `make` fills `size` bytes, in which all are 0. It may be called several times, on any thread.
  void add(size_t size, std::function<void(std::byte*)> make);
  void add(const Pieces& others);
  /// Adds `slack` zeros, and then as many as lead to a multiple of `segment_alignment`.
  void pad(size_t slack = 0);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Calls `take` with all bytes, in order. At most two of the large pieces that are made are in
  /// memory: one is made while `take` has the one before.
  void for_each(const Take& take) const;

  /// The PieceChecksum of all bytes.
  uint64_t checksum() const;

 private:
  struct Piece {
    std::span<const std::byte> bytes;      // of others
    std::function<void(std::byte*)> make;  // empty: `bytes` counts
    size_t size;
  };
  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

/// The checksum of pieces that come in order. Each begins at a whole word, or with the zeros that
/// fill the last word.
class PieceChecksum {
 public:
  void add(std::span<const std::byte> bytes);
  uint64_t value() const { return value_; }

 private:
  size_t size_ = 0;
  uint64_t value_ = checksum_of_nothing;
};

}  // namespace taper::emit
