// The loops of byte_loops.h. Compilers vectorize them. Each source includes this in a namespace of
// its own, between the pragmas of its instruction set: there is no #pragma once.

struct Add {
  TAPER_INLINED float operator()(float a, float b) const { return a + b; }
};
struct Subtract {
  TAPER_INLINED float operator()(float a, float b) const { return a - b; }
};
struct Multiply {
  TAPER_INLINED float operator()(float a, float b) const { return a * b; }
};

TAPER_INLINED float real(int8_t q, int32_t zero_point, float scale) {
  return static_cast<float>(q - zero_point) * scale;
}

template <class Operation, bool a_repeats, bool b_repeats>
void loop(const BinaryNumbers& given, index_t n, const int8_t* a, const int8_t* b, int8_t* y) {
  const BinaryNumbers v = given;  // which the stores cannot change
  const float a0 = real(*a, v.zero_point[0], v.scale[0]),
              b0 = real(*b, v.zero_point[1], v.scale[1]);
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) {
    const float left = a_repeats ? a0 : real(a[i], v.zero_point[0], v.scale[0]);
    const float right = b_repeats ? b0 : real(b[i], v.zero_point[1], v.scale[1]);
    y[i] = v.rounding(Operation()(left, right) * v.inverse);
  }
}
template <class Operation>
void binary(const BinaryNumbers& v, index_t n, const int8_t* a, bool a_repeats, const int8_t* b,
            bool b_repeats, int8_t* y) {
  if (n == 0) return;
  if (a_repeats)
    return b_repeats ? loop<Operation, true, true>(v, n, a, b, y)
                     : loop<Operation, true, false>(v, n, a, b, y);
  return b_repeats ? loop<Operation, false, true>(v, n, a, b, y)
                   : loop<Operation, false, false>(v, n, a, b, y);
}

constexpr index_t average_block = 64;  // channels
template <index_t count>
using Channels = std::integral_constant<index_t, count>;

template <class Count>
TAPER_INLINED void average_channels(const ByteWindow& w, const Rounding& given, index_t first,
                                    Count count, int8_t* y) {
  const Rounding rounding = given;
  int32_t sums[average_block] = {};
  for (index_t r = 0; r < w.rows; ++r) {
    const int8_t* x = w.x + r * w.row_step + first;
    for (index_t k = 0; k < w.columns; ++k, x += w.channels)
      for (index_t c = 0; c < count; ++c)
        sums[c] =
            static_cast<int32_t>(static_cast<uint32_t>(sums[c]) + static_cast<uint32_t>(x[c]));
  }
  const int32_t zeros = add_product(0, static_cast<int32_t>(w.rows * w.columns), w.zero_point);
  for (index_t c = 0; c < count; ++c) {
    const auto sum =
        static_cast<int32_t>(static_cast<uint32_t>(sums[c]) - static_cast<uint32_t>(zeros));
    y[first + c] = rounding(static_cast<float>(sum) * w.scale);
  }
}
inline void average(const ByteWindow& w, const Rounding& rounding, int8_t* y) {
  index_t c = 0;
  for (; c + average_block <= w.channels; c += average_block)
    average_channels(w, rounding, c, Channels<average_block>(), y);
  // sums of a known number are in registers
  if (c + 32 <= w.channels) average_channels(w, rounding, c, Channels<32>(), y), c += 32;
  if (c + 16 <= w.channels) average_channels(w, rounding, c, Channels<16>(), y), c += 16;
  if (c + 8 <= w.channels) average_channels(w, rounding, c, Channels<8>(), y), c += 8;
  if (c < w.channels) average_channels(w, rounding, c, w.channels - c, y);
}

inline void blend(const BytePixel& given, index_t channels, const Rounding& round, int8_t* y) {
  const BytePixel p = given;  // which the stores cannot change
  const Rounding rounding = round;
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t c = 0; c < channels; ++c) {
    const auto between = [&](int left) {
      return p.along_row[0] * real(p.x[left][c], p.zero_point, p.scale) +
             p.along_row[1] * real(p.x[left + 1][c], p.zero_point, p.scale);
    };
    y[c] = rounding((p.along_column[0] * between(0) + p.along_column[1] * between(2)) * p.inverse);
  }
}

template <class Step>
TAPER_INLINED void softmax_line(const ByteLine& l, Step step, const Rounding& given, int8_t* y) {
  const Rounding rounding = given;
  const index_t n = l.count;
  const int8_t* x = l.x;
  const int32_t* exponentials = l.exponentials;
  int32_t peak = -128;
  for (index_t i = 0; i < n; ++i) peak = x[i * step] > peak ? x[i * step] : peak;
  uint64_t sum = 0;  // exact, in any order
  for (index_t i = 0; i < n; ++i)
    sum += static_cast<uint64_t>(static_cast<int64_t>(exponentials[peak - x[i * step]]));
  const float factor = l.factor(static_cast<int64_t>(sum));
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i)
    y[i * step] = rounding(static_cast<float>(exponentials[peak - x[i * step]]) * factor);
}
inline void softmax(const ByteLine& line, const Rounding& rounding, int8_t* y) {
  if (line.step == 1)
    softmax_line(line, std::integral_constant<index_t, 1>(), rounding, y);
  else
    softmax_line(line, line.step, rounding, y);
}

inline void quantize(index_t n, const float* x, float inverse, const Rounding& given, int8_t* y) {
  const Rounding rounding = given;
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] = rounding(x[i] * inverse);
}
inline void dequantize(index_t n, const int8_t* x, int32_t zero_point, float scale, float* y) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] = real(x[i], zero_point, scale);
}

inline void interleave(index_t n, const int8_t* const x[3], int8_t* y) {
  const int8_t *a = x[0], *b = x[1], *c = x[2];
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[3 * i] = a[i], y[3 * i + 1] = b[i], y[3 * i + 2] = c[i];
}

constexpr ByteLoops loops = {binary<Add>, binary<Subtract>, binary<Multiply>, average,   blend,
                             softmax,     quantize,         dequantize,       interleave};
