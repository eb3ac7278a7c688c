#include "taper/exporter/cli/recency.h"

#include <cmath>

namespace taper::cli {
namespace {

struct Pages {
  uint64_t first, count;
};

Pages pages_of(const void* begin, double bytes, uint64_t page_bytes) {
  const auto address = reinterpret_cast<uint64_t>(begin);
  if (bytes <= 0) return {0, 0};
  const uint64_t first = address / page_bytes;
  return {first, (address + static_cast<uint64_t>(bytes) - 1) / page_bytes - first + 1};
}

}  // namespace

size_t Recency::pages(const void* begin, double bytes) {
  return pages_of(begin, bytes, page_bytes).count;
}

double Recency::touch(const void* begin, double bytes) {
  const Pages pages = pages_of(begin, bytes, page_bytes);
  double sum = 0;
  for (uint64_t i = 0; i < pages.count; ++i) sum += touch_page(pages.first + i);
  return pages.count == 0 ? 0 : sum / static_cast<double>(pages.count) * page_bytes;
}

// The pages whose last touch is not before this one's.
double Recency::touch_page(uint64_t page) {
  size_t& last = last_[page];
  const auto touched = static_cast<int64_t>(last_.size());
  const int64_t between = last == 0 ? touched : sum_to(now_) - sum_to(last - 1);
  if (last != 0) add(last, -1);
  last = ++now_;
  add(last, 1);
  return static_cast<double>(between);
}

void Recency::add(size_t time, int change) {
  for (; time < counts_.size(); time += time & -time) counts_[time] += change;
}

int64_t Recency::sum_to(size_t time) const {
  int64_t sum = 0;
  for (; time > 0; time -= time & -time) sum += counts_[time];
  return sum;
}

}  // namespace taper::cli
