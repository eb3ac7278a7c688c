// Puts elements in order. Each element becomes an entry: an integer that is ordered like the
// values, and the element's position. Entries are sorted digit by digit in linear time, or the
// entry of one rank is found in this way. No two entries are equal. So every algorithm gives the
// order of a stable sort, whatever the threads and the cut of the work.
#pragma once
#include <cstring>
#include <limits>
#include <type_traits>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/math.h"
#include "taper/runtime/platform/threads.h"

namespace taper::portable {

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class Key>
inline constexpr Key sign_of = Key{1} << (8 * sizeof(Key) - 1);

/// An unsigned integer that rises with the value. Both zeros have the same one; every NaN has the
/// largest.
template <class T>
KeyOf<T> rising_key(T x) {
  using Key = KeyOf<T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~Key{0};
    const Key bits = x == 0 ? Key{0} : math::bits_of(x);
    return bits ^ ((bits & sign_of<Key>) != 0 ? ~Key{0} : sign_of<Key>);
  } else {
    return static_cast<Key>(static_cast<Key>(x) - static_cast<Key>(std::numeric_limits<T>::min()));
  }
}
/// Whether several values share the key.
template <class T>
bool is_shared(KeyOf<T> key) {
  return std::is_floating_point_v<T> && (key == sign_of<KeyOf<T>> || key == ~KeyOf<T>{0});
}
/// The value of a key that no other value shares.
template <class T>
T value_of(KeyOf<T> key) {
  using Key = KeyOf<T>;
  if constexpr (std::is_floating_point_v<T>) {
    const Key bits = (key & sign_of<Key>) != 0 ? key ^ sign_of<Key> : ~key;
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return static_cast<T>(key + static_cast<Key>(std::numeric_limits<T>::min()));
  }
}

/// A key of 32 bits and a position, in one word.
class ShortEntry {
 public:
  ShortEntry() = default;
  ShortEntry(uint32_t key, index_t at)
      : word_(static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(at)) {}
  uint32_t key() const { return static_cast<uint32_t>(word_ >> 32); }
  index_t at() const { return static_cast<index_t>(word_ & 0xffffffffu); }
  bool operator<(const ShortEntry& other) const { return word_ < other.word_; }

 private:
  uint64_t word_;
};
class LongEntry {
 public:
  LongEntry() = default;
  LongEntry(uint64_t key, index_t at) : key_(key), at_(at) {}
  uint64_t key() const { return key_; }
  index_t at() const { return at_; }
  bool operator<(const LongEntry& other) const {
    return (key_ < other.key_) | ((key_ == other.key_) & (at_ < other.at_));
  }

 private:
  uint64_t key_;
  index_t at_;
};
/// The type of entry for an element of type T.
template <class T>
using EntryOf = std::conditional_t<sizeof(T) == 8, LongEntry, ShortEntry>;
/// The longest line of elements of type T.
template <class T>
inline constexpr uint64_t most_entries = sizeof(T) == 8 ? std::numeric_limits<int64_t>::max()
                                                        : std::numeric_limits<uint32_t>::max();

/// The number of values of a digit, and the entries that one task counts or moves.
inline constexpr index_t radix = 256, chunk_entries = 16384;
/// How many numbers the work on n entries stores in `places`.
constexpr index_t places_of(index_t n) { return radix * pieces(n, chunk_entries); }

namespace internal {

/// Calls body(chunk, first, end) for every chunk of n entries.
template <class Body>
void for_each_chunk(const Threads* threads, index_t n, const Body& body) {
  parallel_for(threads, pieces(n, chunk_entries), [&](index_t chunk) {
    const index_t first = chunk * chunk_entries;
    body(chunk, first, n - first < chunk_entries ? n : first + chunk_entries);
  });
}

/// to[0, n) = from[0, n) in order. Counts the entries before each one, so there is no branch to
/// predict.
template <class E>
void sort_few(const E* from, index_t n, E* to) {
  for (index_t i = 0; i < n; ++i) {
    index_t before = 0;
    for (index_t k = 0; k < n; ++k) before += from[k] < from[i];
    to[before] = from[i];
  }
}

/// Merges the runs [left, right) and [right, end). A choice is arithmetic, so there is no branch to
/// predict.
template <class E>
void merge(const E* left, const E* right, const E* end, E* to) {
  const E* const left_end = right;
  while (left < left_end && right < end) {
    const bool takes_right = *right < *left;
    const E* const taken[] = {left, right};
    *to++ = *taken[takes_right];
    right += takes_right, left += !takes_right;
  }
  for (; left < left_end; ++left) *to++ = *left;
  for (; right < end; ++right) *to++ = *right;
}

/// Sorts n entries, at most a few hundred, with two buffers. Returns the buffer that holds the
/// result.
template <class E>
E* merge_sort(E* from, index_t n, E* to) {
  constexpr index_t few = 8;
  for (index_t begin = 0; begin < n; begin += few)
    sort_few(from + begin, n - begin < few ? n - begin : few, to + begin);
  for (index_t width = few; width < n; width *= 2) {
    E* const merged = from;
    from = to, to = merged;
    for (index_t begin = 0; begin < n; begin += 2 * width) {
      const index_t middle = begin + width < n ? begin + width : n;
      merge(from + begin, from + middle, from + (n - middle < width ? n : middle + width),
            to + begin);
    }
  }
  return to;
}

/// The bits in which some keys differ.
template <class E>
uint64_t varying_bits(const E* entries, index_t n) {
  uint64_t varying = 0;
  const uint64_t first = entries[0].key();
  for (index_t i = 0; i < n; ++i) varying |= entries[i].key() ^ first;
  return varying;
}

template <class E>
index_t digit_of(const E& entry, int shift) {
  return static_cast<index_t>(entry.key() >> shift & (radix - 1));
}

/// places[chunk * radix + d] = how many entries of a chunk have the digit d.
template <class E>
void count_digits(const Threads* threads, const E* entries, index_t n, int shift, index_t* places) {
  for_each_chunk(threads, n, [=](index_t chunk, index_t first, index_t end) {
    index_t* const counts = places + chunk * radix;
    for (index_t d = 0; d < radix; ++d) counts[d] = 0;
    for (index_t i = first; i < end; ++i) ++counts[digit_of(entries[i], shift)];
  });
}

/// Moves entries into the order of one digit. Entries with the same digit keep their order.
template <class E>
void sort_by_digit(const Threads* threads, const E* from, index_t n, int shift, E* to,
                   index_t* places) {
  count_digits(threads, from, n, shift, places);
  index_t sum = 0;
  for (index_t d = 0; d < radix; ++d)
    for (index_t at = d; at < places_of(n); at += radix) {
      const index_t count = places[at];
      places[at] = sum, sum += count;
    }
  for_each_chunk(threads, n, [=](index_t chunk, index_t first, index_t end) {
    index_t* const place = places + chunk * radix;
    for (index_t i = first; i < end; ++i) to[place[digit_of(from[i], shift)]++] = from[i];
  });
}

}  // namespace internal

/// Sorts n entries with two buffers, and returns the buffer that holds the result. `places` has
/// room for places_of(n) numbers.
template <class E>
E* sort_entries(const Threads* threads, E* from, index_t n, E* to, index_t* places) {
  using namespace internal;
  if (n == 0) return from;
  const uint64_t varying = varying_bits(from, n);
  int digits = 0;
  for (int shift = 0; shift < 64; shift += 8) digits += (varying >> shift & (radix - 1)) != 0;
  // each digit costs its counters, besides the entries
  if (n < 32 * digits) return merge_sort(from, n, to);
  for (int shift = 0; shift < 64; shift += 8) {
    if ((varying >> shift & (radix - 1)) == 0) continue;
    sort_by_digit(threads, from, n, shift, to, places);
    E* const sorted = to;
    to = from, from = sorted;
  }
  return from;
}

/// Copies the entries that `accept` takes to `to`, in their order, and returns their number. On one
/// thread, `to` may be `from`.
template <class E, class Accept>
index_t keep_entries(const Threads* threads, const E* from, index_t n, const Accept& accept, E* to,
                     index_t* places) {
  internal::for_each_chunk(threads, n, [=](index_t chunk, index_t first, index_t end) {
    index_t count = 0;
    for (index_t i = first; i < end; ++i) count += accept(from[i]);
    places[chunk] = count;
  });
  index_t kept = 0;
  for (index_t chunk = 0; chunk < pieces(n, chunk_entries); ++chunk)
    kept += places[chunk], places[chunk] = kept;
  internal::for_each_chunk(threads, n, [=](index_t chunk, index_t first, index_t) {
    const E* x = from + first;
    E* y = to + (chunk > 0 ? places[chunk - 1] : 0);
    // writes every entry, and steps on only if it is kept: no branch to predict
    for (E* const end = to + places[chunk]; y < end; ++x) *y = *x, y += accept(*x);
  });
  return kept;
}

/// The entry that would have number `rank` if the n entries were sorted, n > rank. `other` has room
/// for n entries. `entries` does not change.
template <class E>
E entry_of_rank(const Threads* threads, const E* entries, index_t n, index_t rank, E* other,
                index_t* places) {
  using namespace internal;
  constexpr index_t few = 16;
  // few entries are left after the first digit, and then one thread filters them in place
  for (; n > few; entries = other, threads = nullptr) {
    const uint64_t varying = varying_bits(entries, n);
    if (varying == 0) return entries[rank];
    int shift = 0;
    while (varying >> shift >= static_cast<uint64_t>(radix)) ++shift;
    count_digits(threads, entries, n, shift, places);
    index_t digit = 0;
    for (index_t count;; ++digit, rank -= count) {
      count = 0;
      for (index_t at = digit; at < places_of(n); at += radix) count += places[at];
      if (rank < count) break;
    }
    n = keep_entries(
        threads, entries, n, [=](const E& e) { return digit_of(e, shift) == digit; }, other,
        places);
  }
  E sorted[few];
  sort_few(entries, n, sorted);
  return sorted[rank];
}

}  // namespace taper::portable
