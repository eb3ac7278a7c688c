// Compiled where Highway is not found.
#include "taper/exporter/roofline/loops.h"

namespace taper::roofline {
namespace {

typedef float Vec __attribute__((vector_size(16), may_alias));
constexpr int chains = 12, streams = 8, lanes = 4;

template <int count>
float sum_of(const Vec (&vectors)[count]) {
  float sum = 0;
  for (const Vec& v : vectors) sum += v[0] + v[1] + v[2] + v[3];
  return sum;
}

float multiply_add_in_registers(index_t rounds) {
  Vec sum[chains] = {};
  const Vec x = {0.999f, 0.999f, 0.999f, 0.999f}, y = {0.001f, 0.001f, 0.001f, 0.001f};
  for (index_t round = 0; round < rounds; ++round)
    _Pragma("GCC unroll 16") for (int i = 0; i < chains; ++i) sum[i] = sum[i] * x + y;
  return sum_of(sum);
}

float read_all(const float* from, index_t count) {
  static_assert(block % (streams * lanes) == 0);
  Vec sum[streams] = {};
  for (index_t at = 0; at < count; at += streams * lanes)
    _Pragma("GCC unroll 16") for (int i = 0; i < streams; ++i) sum[i] +=
        *reinterpret_cast<const Vec*>(from + at + i * lanes);
  return sum_of(sum);
}

void halve_all(float* numbers, index_t count) {
  for (index_t at = 0; at < count; at += lanes) *reinterpret_cast<Vec*>(numbers + at) *= 0.5f;
}

constexpr Loops plain{multiply_add_in_registers, index_t{chains} * lanes, read_all, halve_all};

}  // namespace

const Loops& fastest_loops() { return plain; }

}  // namespace taper::roofline
