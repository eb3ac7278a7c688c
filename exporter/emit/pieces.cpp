#include "taper/exporter/emit/pieces.h"

#include <algorithm>
#include <future>
#include <utility>

namespace taper::emit {
namespace {

constexpr size_t large = 1 << 16;  // bytes for which another thread pays

using Made = std::vector<std::byte>;

}  // namespace

void Pieces::add(std::span<const std::byte> bytes) {
  pieces_.push_back({bytes, {}, bytes.size()});
  size_ += bytes.size();
}

void Pieces::add(size_t size, std::function<void(std::byte*)> make) {
  pieces_.push_back({{}, std::move(make), size});
  size_ += size;
}

void Pieces::add(const Pieces& others) {
  pieces_.insert(pieces_.end(), others.pieces_.begin(), others.pieces_.end());
  size_ += others.size_;
}

void Pieces::pad(size_t slack) {
  static constexpr std::byte zeros[slack_bytes + segment_alignment]{};
  const size_t end =
      (size_ + slack + segment_alignment - 1) / segment_alignment * segment_alignment;
  if (end > size_) add({zeros, end - size_});
}

void Pieces::for_each(const Take& take) const {
  const auto made = [](const Piece& p) {
    Made bytes(p.size);
    p.make(bytes.data());
    return bytes;
  };
  const auto is_made = [](const Piece& p) { return p.make != nullptr; };
  auto coming = std::ranges::find_if(pieces_, is_made);
  std::future<Made> next;
  const auto begin_next = [&](auto from) {
    coming = std::find_if(from, pieces_.end(), is_made);
    if (coming == pieces_.end()) return;
    const auto policy = coming->size < large ? std::launch::deferred : std::launch::async;
    next = std::async(policy, made, std::cref(*coming));
  };
  begin_next(pieces_.begin());
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    if (piece != coming) {
      take(piece->bytes);
      continue;
    }
    const Made bytes = next.get();
    begin_next(piece + 1);
    take(bytes);
  }
}

void PieceChecksum::add(std::span<const std::byte> bytes) {
  const size_t filled = std::min((8 - size_ % 8) % 8, bytes.size());
  value_ =
      taper::checksum({bytes.data() + filled, static_cast<index_t>(bytes.size() - filled)}, value_);
  size_ += bytes.size();
}

uint64_t Pieces::checksum() const {
  PieceChecksum sum;
  for_each([&](std::span<const std::byte> bytes) { sum.add(bytes); });
  return sum.value();
}

}  // namespace taper::emit
