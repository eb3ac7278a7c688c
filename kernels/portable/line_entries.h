// Lines of a dense tensor as entries to put in order (ordering.h). sort, topk, median and kthvalue
// share this. Each short line is one thread's work. Long lines are taken one after the other, each
// by all threads.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/ordering.h"
#include "taper/kernels/portable/pays.h"

namespace taper::portable {

/// How lines are taken: `width` neighbours at a time, because neighbouring lines that are not dense
/// share cache lines.
struct LinePlan {
  Lines lines;
  index_t width;
  index_t slots;  ///< strips that are computed at a time; each has scratch of its own
  size_t slot_bytes;
  bool long_lines;
};

inline constexpr index_t widest_entry_strip = 16;

/// Neighbouring lines as entries of type E, and memory to put them in order.
template <class E>
struct EntryStrip {
  const Threads* threads;
  index_t width, extent;
  E* lines[widest_entry_strip];
  E* spare;  ///< room for one more line
  index_t* places;
};

namespace internal {

/// A line of this length is worth all threads.
inline constexpr index_t long_line = 65536;
/// The largest number of entries in a strip of more than one line.
inline constexpr index_t strip_entries = 16384;
/// A gap, in entries, between the lines of a strip. At a distance that is a power of two, all lines
/// would compete for the same few places of a cache.
inline constexpr index_t line_gap = 8;

/// At least the scratch of a slot. The number never shrinks when a line's extent grows, as scratch
/// requires.
inline size_t slot_bytes(index_t extent, index_t widest, size_t entry_bytes) {
  const index_t most = extent > strip_entries            ? extent
                       : extent * widest > strip_entries ? strip_entries
                                                         : extent * widest;
  const size_t bytes = static_cast<size_t>(places_of(extent)) * sizeof(index_t) +
                       static_cast<size_t>(most + extent + widest * line_gap) * entry_bytes;
  return (bytes + 63) / 64 * 64;
}

template <class T>
void load_strip(const T* x, index_t step, bool down, const EntryStrip<EntryOf<T>>& strip) {
  for_each_chunk(strip.threads, strip.extent, [=, &strip](index_t, index_t first, index_t end) {
    const KeyOf<T> turn = down ? ~KeyOf<T>{0} : KeyOf<T>{0};
    EntryOf<T>* const line = strip.lines[0];
    if (step == 1)
      for (index_t i = first; i < end; ++i) line[i] = {rising_key(x[i]) ^ turn, i};
    else
      for (index_t i = first; i < end; ++i)
        for (index_t l = 0; l < strip.width; ++l)
          strip.lines[l][i] = {rising_key(x[i * step + l]) ^ turn, i};
  });
}

}  // namespace internal

/// Plans the lines, and asks for the scratch of their entries.
template <class T>
Error prepare_lines(Context& context, LinePlan& plan, const Lines& lines) {
  using namespace internal;
  const index_t n = lines.extent, count = lines.outer * lines.inner;
  if (static_cast<uint64_t>(n) > most_entries<T>)
    return context.fail(Error::not_supported, TAPER_TEXT("a line of {} elements is too long"), n);
  const index_t threads = context.threads != nullptr ? context.threads->count : 1,
                // if strips are the only thing to share out, each thread gets a part
      side = lines.inner == 0 ? 1 : pieces(lines.inner, lines.outer < threads ? threads : 1),
                widest = side < widest_entry_strip ? side : widest_entry_strip;
  plan.lines = lines;
  plan.width = n * widest <= strip_entries ? widest : n < strip_entries ? strip_entries / n : 1;
  plan.long_lines = n >= long_line || count == 1;
  plan.slots = plan.long_lines ? 1 : count < threads ? count : threads;
  const auto bytes = [=](index_t extent) { return slot_bytes(extent, widest, sizeof(EntryOf<T>)); };
  plan.slot_bytes = bytes(n);
  context.need_scratch(bytes(n));
  context.need_scratch(static_cast<size_t>(count < threads ? count : threads) *
                       bytes(n < long_line ? n : long_line - 1));
  return Error::ok;
}

/// Calls body(strip, x, first) for every strip. Its entries are loaded; if `down`, larger elements
/// come first in their order. The strip's first line begins at x and is line number `first` of all.
template <class T, class Body>
void for_each_strip(const Context& context, const LinePlan& plan, const T* self, bool down,
                    const Body& body) {
  using E = EntryOf<T>;
  const auto [outer, extent, inner] = plan.lines;
  const index_t across = pieces(inner, plan.width), strips = outer * across;
  const index_t n = extent, step = inner;
  // an element that is put in order takes as long as several that are copied
  const Threads* threads = if_it_pays(context.threads, 8 * outer * extent * inner);
  parallel_for(plan.long_lines ? nullptr : threads, plan.slots, [&](index_t slot) {
    EntryStrip<E> strip;
    strip.threads = plan.long_lines ? context.threads : nullptr;
    strip.extent = n;
    strip.places = reinterpret_cast<index_t*>(static_cast<char*>(context.scratch) +
                                              static_cast<size_t>(slot) * plan.slot_bytes);
    E* entries = reinterpret_cast<E*>(strip.places + places_of(n));
    for (index_t i = slot; i < strips; i += plan.slots) {
      const index_t o = i / across, at = i % across * plan.width;
      strip.width = step - at < plan.width ? step - at : plan.width;
      for (index_t l = 0; l < strip.width; ++l)
        strip.lines[l] = entries + l * (n + internal::line_gap);
      strip.spare = entries + strip.width * (n + internal::line_gap);
      const T* x = self + o * n * step + at;
      internal::load_strip(x, step, down, strip);
      body(strip, x, o * step + at);
    }
  });
}

}  // namespace taper::portable
