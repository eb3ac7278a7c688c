// Transforms of one long line. A line is `n` numbers, real and imaginary parts side by side.
//
// Method::split cuts the line into rows and transforms columns, then rows, several of them side by
// side (W. M. Gentleman and G. Sande, "Fast Fourier Transforms - for Fun and Profit", 1966).
// Method::chirp makes a transform of any length a convolution, and that is two transforms of a
// longer length with small factors (L. I. Bluestein, "A linear filtering approach to the
// computation of discrete Fourier transform", 1970).
#pragma once
#include "taper/kernels/portable/fft_passes.h"
#include "taper/kernels/portable/fft_roots.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/runtime/platform/threads.h"

namespace taper::portable::fft {

inline constexpr index_t longest = index_t{1} << 28;  ///< a transform's most elements
inline constexpr index_t long_line = 2048;  ///< more elements are not transformed side by side

enum class Method : uint8_t {
  block,  ///< several lines side by side, in passes
  split,
  chirp,
};

/// How lines of `n` numbers are transformed. `rows` times `columns` is n; for Method::chirp it is
/// the length of the convolution.
struct Length {
  Method method = Method::block;
  int32_t n = 1, rows = 1, columns = 1;
  index_t size() const { return index_t{rows} * columns; }
};

/// The smallest length of at least 2 n - 1 that is 2, 3, 5 or 9 times a power of two.
inline index_t convolution_size(index_t n) {
  index_t best = 0;
  for (const index_t odd : {1, 3, 5, 9}) {
    index_t size = odd;
    while (size < 2 * n - 1) size *= 2;
    if (best == 0 || size < best) best = size;
  }
  return best;
}

/// The largest number of rows or columns that `cut` may choose for a length.
inline index_t most_columns(index_t size) {
  index_t root = 1;
  while (root * root < size * largest_radix) root += root / 8 + 1;
  return root;
}

/// Cuts `size`, which has small factors, into rows and columns: about as many of each, but such
/// that few lanes stay empty.
inline void cut(index_t size, Length& length) {
  index_t rows = 1;
  while ((rows + 1) * (rows + 1) <= size) ++rows;
  index_t least_work = 0;
  for (; rows > 0 && rows * rows * largest_radix >= size; --rows) {
    if (size % rows != 0) continue;
    const index_t columns = size / rows;
    const index_t work = pieces(rows, lane_count) * columns + pieces(columns, lane_count) * rows;
    if (least_work != 0 && work >= least_work) continue;
    least_work = work;
    length.rows = static_cast<int32_t>(rows), length.columns = static_cast<int32_t>(columns);
  }
}

/// Chooses how `lines` lines of n numbers are transformed. 1 <= n <= `longest`.
inline Length plan_length(index_t n, index_t lines) {
  constexpr index_t short_line = 64, few = 8;
  Length length;
  length.n = length.rows = static_cast<int32_t>(n);
  Passes passes;
  if (!passes.factor(n)) {
    length.method = Method::chirp;
    cut(convolution_size(n), length);
  } else if (n >= short_line && (lines < few || n > long_line)) {
    length.method = Method::split;
    cut(n, length);
  }
  return length;
}

/// Takes parts of a piece of memory. Without memory, counts what they need.
class Parts {
 public:
  explicit Parts(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(index_t count) {
    T* const part = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += pieces(count * static_cast<index_t>(sizeof(T)), 64) * 64;
    return part;
  }
  index_t bytes() const { return bytes_; }

 private:
  char* memory_;
  index_t bytes_ = 0;
};

/// A Length with its factors and its constants. All threads read them.
struct Tables {
  Length length;
  Passes rows, columns;
  float *row_roots, *column_roots;
  double* turns;  ///< roots of order rows * columns: `lanes` real, then `lanes` imaginary parts
  float *chirp, *filter;

  template <int lanes>
  static Tables in(Parts& parts, const Length& length) {
    Tables t{};
    t.length = length;
    t.rows.factor(length.rows), t.columns.factor(length.columns);
    t.row_roots = parts.take<float>(2 * index_t{length.rows});
    if (length.method == Method::block) return t;
    t.column_roots = parts.take<float>(2 * index_t{length.columns});
    t.turns = parts.take<double>(2 * lanes * pieces(length.columns, lanes));
    if (length.method == Method::split) return t;
    t.chirp = parts.take<float>(2 * index_t{length.n});
    t.filter = parts.take<float>(2 * length.size());
    return t;
  }
};

/// The memory of a thread that transforms blocks.
struct Blocks {
  float *a, *b;
  template <int lanes>
  static Blocks in(Parts& parts, const Length& length) {
    const index_t rows = length.rows, columns = length.columns;
    const index_t floats = (rows > columns ? rows : columns) * position_floats<lanes>;
    float* const a = parts.take<float>(floats);
    return {a, parts.take<float>(floats)};
  }
};

/// The memory of a line.
struct LineMemory {
  float *first, *second, *middle;
  template <int lanes>
  static LineMemory in(Parts& parts, const Length& length) {
    float* const first = parts.take<float>(2 * length.size());
    float* const second = parts.take<float>(2 * length.size());
    const index_t rows = pieces(length.rows, lanes) * lanes;
    return {first, second, parts.take<float>(2 * rows * length.columns)};
  }
};

/// Pieces of memory of the same form, one for each thread.
template <class T, int lanes>
class Copies {
 public:
  Copies() = default;
  Copies(Parts& parts, const Length& length, index_t count) : length_(&length) {
    Parts counted(nullptr);
    T::template in<lanes>(counted, length);
    bytes_ = counted.bytes();
    memory_ = parts.take<char>(bytes_ * count);
  }
  T operator[](index_t i) const {
    Parts parts(memory_ + i * bytes_);
    return T::template in<lanes>(parts, *length_);
  }

 private:
  const Length* length_ = nullptr;
  char* memory_ = nullptr;
  index_t bytes_ = 0;
};

/// A line on its way from `from` to `to`. In `middle`, blocks of `lanes` rows stand one behind the
/// other.
struct Split {
  const Tables* tables;
  const float* from;
  float *middle, *to;
};

/// Transforms `lanes` columns, multiplies them by their roots, and writes them as parts of rows.
template <int lanes>
void split_columns(const Split& s, index_t block, const Blocks& memory) {
  constexpr index_t size = position_floats<lanes>;
  const Tables& t = *s.tables;
  const index_t rows = t.length.rows, columns = t.length.columns, first = block * lanes;
  const index_t width = columns - first < lanes ? columns - first : lanes;
  for (index_t r = 0; r < rows; ++r) {
    const float* const from = s.from + 2 * (r * columns + first);
    float* const to = memory.a + r * size;
    if (width == lanes) {
      TAPER_LANES
      for (int l = 0; l < lanes; ++l) to[l] = from[2 * l], to[lanes + l] = from[2 * l + 1];
    } else {  // the last column again and again
      for (int l = 0; l < lanes; ++l) {
        const index_t column = l < width ? l : width - 1;
        to[l] = from[2 * column], to[lanes + l] = from[2 * column + 1];
      }
    }
  }
  const float* value = transform_block<lanes>(t.rows, t.row_roots, memory.a, memory.a, memory.b);
  const double* const turn = t.turns + block * 2 * lanes;
  double re[lanes], im[lanes];
  for (int l = 0; l < lanes; ++l) re[l] = 1, im[l] = 0;
  for (index_t r = 0; r < rows; ++r, value += size) {
    float product[2 * lanes];
    TAPER_LANES
    for (int l = 0; l < lanes; ++l) {
      put<lanes>(product + l, get<lanes>(value + l) *
                                  Number{static_cast<float>(re[l]), static_cast<float>(im[l])});
      const double next = re[l] * turn[l] - im[l] * turn[lanes + l];
      im[l] = re[l] * turn[lanes + l] + im[l] * turn[l], re[l] = next;
    }
    float* const to = s.middle + (r / lanes * columns + first) * size + r % lanes;
    for (index_t l = 0; l < width; ++l) put<lanes>(to + l * size, get<lanes>(product + l));
  }
  for (index_t r = rows; r % lanes != 0; ++r) {  // rows that do not exist
    float* const to = s.middle + (r / lanes * columns + first) * size + r % lanes;
    for (index_t l = 0; l < width; ++l) put<lanes>(to + l * size, Number{0, 0});
  }
}

/// Transforms `lanes` rows.
template <int lanes>
void split_rows(const Split& s, index_t block, const Blocks& memory) {
  constexpr index_t size = position_floats<lanes>;
  const Tables& t = *s.tables;
  const index_t rows = t.length.rows, columns = t.length.columns, first = block * lanes;
  const index_t width = rows - first < lanes ? rows - first : lanes;
  const float* value = transform_block<lanes>(
      t.columns, t.column_roots, s.middle + block * columns * size, memory.a, memory.b);
  for (index_t c = 0; c < columns; ++c, value += size) {
    float* const to = s.to + 2 * (c * rows + first);
    if (width == lanes) {
      TAPER_LANES
      for (int l = 0; l < lanes; ++l) to[2 * l] = value[l], to[2 * l + 1] = value[lanes + l];
    } else {
      for (index_t l = 0; l < width; ++l) to[2 * l] = value[l], to[2 * l + 1] = value[lanes + l];
    }
  }
}

/// y = x * factor, for n numbers. If `conjugates`, y = conj(x * factor).
template <bool conjugates>
void multiply(index_t n, const float* x, const float* factor, float* y) {
  for_each_element(n, [=](index_t i) {
    const Number p = root_at(x, i) * root_at(factor, i);
    y[2 * i] = p.re, y[2 * i + 1] = conjugates ? -p.im : p.im;
  });
}

/// Transforms lines with Method::split or Method::chirp. `Loops` says for which vectors the loops
/// are compiled.
template <class Loops, int lanes>
struct LineTransform {
  const Threads* threads;  ///< share the work on one line
  const Tables& tables;
  const Copies<Blocks, lanes>& blocks;
  int first_block = 0;  ///< of the thread that calls

  void split(const LineMemory& m, float* from, float* to) const {
    const Split s{&tables, from, m.middle, to};
    parallel_for_threads(threads, pieces(tables.length.columns, lanes), [&](index_t i, int thread) {
      Loops::template call<&split_columns<lanes>>(s, i, blocks[first_block + thread]);
    });
    parallel_for_threads(threads, pieces(tables.length.rows, lanes), [&](index_t i, int thread) {
      Loops::template call<&split_rows<lanes>>(s, i, blocks[first_block + thread]);
    });
  }
  /// Transforms the line in `m.first`, and returns where the result lies.
  float* run(const LineMemory& m) const {
    const Length& length = tables.length;
    if (length.method == Method::split) return split(m, m.first, m.second), m.second;
    Loops::template call<&multiply<false>>(index_t{length.n}, m.first, tables.chirp, m.first);
    for (index_t i = 2 * index_t{length.n}; i < 2 * length.size(); ++i) m.first[i] = 0;
    split(m, m.first, m.second);
    // the inverse transform is the transform between two conjugations
    Loops::template call<&multiply<true>>(length.size(), m.second, tables.filter, m.second);
    split(m, m.second, m.first);
    for (index_t i = 0; i < length.n; ++i) m.first[2 * i + 1] = -m.first[2 * i + 1];
    Loops::template call<&multiply<false>>(index_t{length.n}, m.first, tables.chirp, m.first);
    return m.first;
  }
  /// Fills the tables.
  void prepare(const Copies<LineMemory, lanes>& lines) const {
    const Length& length = tables.length;
    write_roots(length.rows, length.rows, tables.row_roots);
    if (length.method == Method::block) return;
    write_roots(length.columns, length.columns, tables.column_roots);
    const uint64_t order = static_cast<uint64_t>(length.size());
    for (index_t i = 0; i < pieces(length.columns, lanes) * lanes; ++i) {
      const Root r = root(static_cast<uint64_t>(i) % order, order);
      double* const to = tables.turns + i / lanes * 2 * lanes + i % lanes;
      to[0] = r.re, to[lanes] = r.im;
    }
    if (length.method == Method::chirp) prepare_chirp(lines[0]);
  }

 private:
  /// The filter of the convolution: the transform of 1 / chirp, at distances of either sign.
  void prepare_chirp(const LineMemory& m) const {
    const index_t n = tables.length.n, size = tables.length.size();
    write_chirp(n, tables.chirp);
    const float scale = 1 / static_cast<float>(size);
    for (index_t i = 0; i < 2 * size; ++i) m.first[i] = 0;
    for (index_t k = 0; k < n; ++k) {
      const Number value = scale * conj(root_at(tables.chirp, k));
      for (const index_t i : {k, (size - k) % size})
        m.first[2 * i] = value.re, m.first[2 * i + 1] = value.im;
    }
    split(m, m.first, tables.filter);
  }
};

}  // namespace taper::portable::fft
