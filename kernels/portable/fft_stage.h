// One dimension of a Fourier transform: reads lines of a dense tensor, transforms them, and writes
// lines of another one, or of the same.
#pragma once
#include "taper/kernels/portable/fft_lines.h"

namespace taper::portable::fft {

enum class Kind : uint8_t {
  complex,        ///< n complex numbers to n
  from_real,      ///< n real numbers to the n / 2 + 1 numbers that the others are conjugates of
  from_real_all,  ///< n real numbers to n
  to_real,        ///< n / 2 + 1 complex numbers to n real ones
};

/// A stage transforms lines of `n` elements. Both tensors are (outer, extent, inner). Real lines of
/// even length are half as many complex numbers: `half`.
struct Stage {
  Kind kind = Kind::complex;
  bool inverse = false;
  bool half = false;
  float scale = 1;
  int32_t n = 1;
  Length length;
  index_t outer = 1, inner = 1, from_extent = 1, to_extent = 1;
  index_t lines() const { return outer * inner; }
};

/// Plans the transform along `dim`. `from` and `to` differ at most in this extent.
inline Stage plan_stage(Kind kind, bool inverse, index_t n, const Shape& from, const Shape& to,
                        int dim) {
  Stage s;
  s.kind = kind, s.inverse = inverse, s.n = static_cast<int32_t>(n);
  s.half = kind != Kind::complex && n % 2 == 0;
  s.from_extent = from.sizes[dim], s.to_extent = to.sizes[dim];
  for (int i = 0; i < from.rank; ++i)
    if (i != dim) (i < dim ? s.outer : s.inner) *= from.sizes[i];
  s.length = plan_length(s.half ? n / 2 : n, s.lines());
  return s;
}

/// Where the lines of a block begin, in elements.
template <int lanes>
struct Lanes {
  index_t from[lanes], to[lanes];
  int width;        ///< lines that are written
  bool neighbours;  ///< the lines lie side by side in both tensors, and all are written

  Lanes(const Stage& s, index_t first, index_t end) {
    width = end - first < lanes ? static_cast<int>(end - first) : lanes;
    for (int l = 0; l < lanes; ++l) {
      const index_t line = first + (l < width ? l : width - 1);
      from[l] = line / s.inner * s.from_extent * s.inner + line % s.inner;
      to[l] = line / s.inner * s.to_extent * s.inner + line % s.inner;
    }
    neighbours = width == lanes && first % s.inner + lanes <= s.inner;
  }
};

/// Writes read(line's offset, k) to position k of the block, for k < count.
template <int lanes, class Read>
inline void load(const Lanes<lanes>& at, index_t count, float* block, const Read& read) {
  constexpr index_t size = position_floats<lanes>;
  for (index_t k = 0; k < count; ++k, block += size)
    if (at.neighbours) {
      const index_t offset = at.from[0];
      TAPER_LANES
      for (int l = 0; l < lanes; ++l) put<lanes>(block + l, read(offset + l, k));
    } else {
      for (int l = 0; l < lanes; ++l) put<lanes>(block + l, read(at.from[l], k));
    }
}
/// Calls write(line's offset, lane, k) for k < count.
template <int lanes, class Write>
inline void store(const Lanes<lanes>& at, index_t count, const Write& write) {
  for (index_t k = 0; k < count; ++k)
    if (at.neighbours) {
      const index_t offset = at.to[0];
      TAPER_LANES
      for (int l = 0; l < lanes; ++l) write(offset + l, l, k);
    } else {
      for (int l = 0; l < at.width; ++l) write(at.to[l], l, k);
    }
}

/// The halves of the spectrum of a real line of even length n = 2 h. The line's pairs are h complex
/// numbers with the spectrum z. With w = e^(-2 pi i k / n), element k of the line's spectrum is
/// half of z[k] + conj(z[h - k]) - i w (z[k] - conj(z[h - k])).
inline Number joined(Number z, Number mirrored, Number w) {
  const Number other = conj(mirrored);
  return (z + other) + w * turned(z - other);
}
/// The other way: from elements k and h - k of the line's spectrum to conj(z[k]).
inline Number parted(Number x, Number mirrored, Number w) {
  const Number other = conj(mirrored);
  return conj((x + other) - conj(w) * turned(x - other));
}

/// Reads lines. What is inverse is conjugated: its transform is then the transform's conjugate.
template <int lanes>
inline void load_lines(const Stage& s, const float* roots, const Lanes<lanes>& at, const float* x,
                       float* block) {
  const index_t inner = s.inner, count = s.length.n, n = s.n;
  const auto number = [=](index_t offset, index_t k) { return root_at(x, offset + k * inner); };
  if (s.kind == Kind::complex) {
    const float sign = s.inverse ? -1.0f : 1.0f;
    load(at, count, block, [=](index_t offset, index_t k) {
      const Number a = number(offset, k);
      return Number{a.re, sign * a.im};
    });
  } else if (s.kind == Kind::to_real && s.half) {
    load(at, count, block, [=](index_t offset, index_t k) {
      Number a = number(offset, k), b = number(offset, count - k);
      if (k == 0) a.im = b.im = 0;  // as they are for a real line
      return parted(a, b, root_at(roots, k));
    });
  } else if (s.kind == Kind::to_real) {
    load(at, count, block, [=](index_t offset, index_t k) {
      const Number a = k <= n / 2 ? conj(number(offset, k)) : number(offset, n - k);
      return Number{a.re, k == 0 ? 0 : a.im};
    });
  } else if (s.half) {
    load(at, count, block, [=](index_t offset, index_t k) {
      const float* const pair = x + offset + 2 * k * inner;
      return Number{pair[0], pair[inner]};
    });
  } else {
    load(at, count, block, [=](index_t offset, index_t k) {
      return Number{x[offset + k * inner], 0};
    });
  }
}

/// Writes lines from a transformed block.
template <int lanes>
inline void store_lines(const Stage& s, const float* roots, const Lanes<lanes>& at,
                        const float* block, float* y) {
  constexpr index_t size = position_floats<lanes>;
  const index_t inner = s.inner, count = s.length.n, n = s.n;
  const float scale = s.scale;
  const auto number = [=](int l, index_t k) { return get<lanes>(block + k * size + l); };
  const auto write = [=](index_t offset, index_t k, Number a) {
    float* const to = y + 2 * (offset + k * inner);
    to[0] = a.re, to[1] = a.im;
  };
  if (s.kind == Kind::complex) {
    const float sign = s.inverse ? -scale : scale;
    store(at, count, [=](index_t offset, int l, index_t k) {
      const Number a = number(l, k);
      write(offset, k, {scale * a.re, sign * a.im});
    });
  } else if (s.kind == Kind::to_real) {
    const index_t step = (s.half ? 2 : 1) * inner;
    const bool half = s.half;
    store(at, count, [=](index_t offset, int l, index_t k) {
      const Number a = number(l, k);
      float* const to = y + offset + k * step;
      to[0] = scale * a.re;
      if (half) to[inner] = -scale * a.im;
    });
  } else {
    const bool all = s.kind == Kind::from_real_all, half = s.half;
    store(at, n / 2 + 1, [=](index_t offset, int l, index_t k) {
      const Number a = half ? 0.5f * scale *
                                  joined(number(l, k < count ? k : 0),
                                         number(l, k > 0 ? count - k : 0), root_at(roots, k))
                            : scale * number(l, k);
      write(offset, k, a);
      if (all && k > 0 && k < n - k) write(offset, n - k, conj(a));
    });
  }
}

/// A stage at work. `from` and `to` are its tensors, as floats.
struct Work {
  const Stage* stage;
  const Tables* tables;
  const float* roots;  ///< of order n, if `half`
  const float* from;
  float* to;
};

/// Transforms the lines [first, end), at most `lanes`.
template <int lanes>
void run_block(const Work& w, index_t first, index_t end, const Blocks& memory) {
  const Lanes<lanes> at(*w.stage, first, end);
  load_lines(*w.stage, w.roots, at, w.from, memory.a);
  const float* const result =
      transform_block<lanes>(w.tables->rows, w.tables->row_roots, memory.a, memory.a, memory.b);
  store_lines(*w.stage, w.roots, at, result, w.to);
}
/// A block of one lane is a line.
inline void load_line(const Work& w, index_t line, float* to) {
  load_lines(*w.stage, w.roots, Lanes<1>(*w.stage, line, line + 1), w.from, to);
}
inline void store_line(const Work& w, index_t line, const float* from) {
  store_lines(*w.stage, w.roots, Lanes<1>(*w.stage, line, line + 1), from, w.to);
}

/// How threads share a stage, and the memory for it.
template <class Loops, int lanes>
class StageRun {
 public:
  StageRun(void* memory, const Stage& stage, const Threads* threads)
      : stage_(stage), parts_(memory) {
    const Length& length = stage.length;
    const bool is_block = length.method == Method::block;
    const index_t tasks = is_block ? pieces(stage.lines(), lines_of_task()) : stage.lines();
    if (!is_block && tasks == 1) inner_threads_ = threads;
    if (tasks > 1) outer_threads_ = threads;
    const index_t count = threads == nullptr ? 1 : threads->count;
    const index_t outer = tasks < count ? tasks : count;
    tables_ = Tables::in<lanes>(parts_, length);
    if (stage.half) roots_ = parts_.take<float>(2 * (index_t{length.n} + 1));
    blocks_ = Copies<Blocks, lanes>(parts_, length, inner_threads_ != nullptr ? count : outer);
    if (!is_block) lines_ = Copies<LineMemory, lanes>(parts_, length, outer);
  }
  index_t bytes() const { return parts_.bytes(); }

  void run(const float* from, float* to) {
    const Work work{&stage_, &tables_, roots_, from, to};
    line_transform().prepare(lines_);
    if (stage_.half) write_roots(index_t{stage_.length.n} + 1, stage_.n, roots_);
    stage_.length.method == Method::block ? run_blocks(work) : run_lines(work);
  }

 private:
  /// A task has at least one block, and about 4096 elements.
  index_t lines_of_task() const { return lanes * pieces(4096, stage_.length.n * index_t{lanes}); }
  LineTransform<Loops, lanes> line_transform() const { return {inner_threads_, tables_, blocks_}; }

  void run_blocks(const Work& work) const {
    const index_t lines = stage_.lines(), per_task = lines_of_task();
    parallel_for_threads(outer_threads_, pieces(lines, per_task), [&](index_t task, int thread) {
      const index_t begin = task * per_task;
      const index_t end = lines - begin < per_task ? lines : begin + per_task;
      const Blocks blocks = blocks_[thread];
      for (index_t first = begin; first < end; first += lanes)
        Loops::template call<&run_block<lanes>>(work, first, end, blocks);
    });
  }
  void run_lines(const Work& work) const {
    parallel_for_threads(outer_threads_, stage_.lines(), [&](index_t line, int thread) {
      const LineMemory memory = lines_[thread];
      // with outer threads, each one has its own blocks, and no threads inside
      LineTransform<Loops, lanes> transform = line_transform();
      transform.first_block = thread;
      Loops::template call<&load_line>(work, line, memory.first);
      Loops::template call<&store_line>(work, line, transform.run(memory));
    });
  }

  const Stage& stage_;
  Parts parts_;
  const Threads *outer_threads_ = nullptr, *inner_threads_ = nullptr;
  Tables tables_;
  float* roots_ = nullptr;
  Copies<Blocks, lanes> blocks_;
  Copies<LineMemory, lanes> lines_;
};

}  // namespace taper::portable::fft
