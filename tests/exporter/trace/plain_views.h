// Programs of views and writes in place, and what they do in plain index arithmetic: a view is a
// list of places in a flat vector, a write goes through the list. Nothing of the exporter is used.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace taper::plain {

using Ints = std::vector<int64_t>;

inline int64_t count(const Ints& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

/// Calls `f` with every coordinate, in row-major order.
template <class F>
void for_each_coordinate(const Ints& sizes, F f) {
  Ints c(sizes.size());
  for (int64_t n = count(sizes); n-- > 0;) {
    f(c);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++c[d] < sizes[d]) break;
      c[d] = 0;
    }
  }
}

template <class T>
struct Array {
  std::shared_ptr<std::vector<T>> storage;
  Ints sizes;
  std::vector<size_t> places;  ///< of the elements in `storage`, in row-major order
  bool expanded = false;       ///< it or what it was made of has several elements in one place

  static Array of(std::vector<T> elements, Ints sizes) {
    Array a;
    for (size_t i = 0; i < elements.size(); ++i) a.places.push_back(i);
    a.storage = std::make_shared<std::vector<T>>(std::move(elements));
    a.sizes = std::move(sizes);
    return a;
  }
  std::vector<T> elements() const {
    std::vector<T> list;
    for (const size_t p : places) list.push_back((*storage)[p]);
    return list;
  }
  void write(const std::vector<T>& elements) const {
    for (size_t i = 0; i < places.size(); ++i) (*storage)[places[i]] = elements[i];
  }
  size_t place(const Ints& c) const {
    size_t at = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      at = at * static_cast<size_t>(sizes[d]) + static_cast<size_t>(c[d]);
    return places[at];
  }
  /// The view whose element at c is this one's element at `source(c)`.
  template <class F>
  Array view(Ints of_view, F source) const {
    Array v{storage, std::move(of_view), {}, expanded};
    for_each_coordinate(v.sizes, [&](const Ints& c) { v.places.push_back(place(source(c))); });
    return v;
  }
  /// Whether one stride for each dimension leads to every place.
  bool has_strides() const {
    bool fits = true;
    for_each_coordinate(sizes, [&](const Ints& c) {
      int64_t at = static_cast<int64_t>(places[0]);
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (c[d] == 0) continue;
        Ints next(sizes.size());
        next[d] = 1;
        at += c[d] * (static_cast<int64_t>(place(next)) - static_cast<int64_t>(places[0]));
      }
      fits = fits && at == static_cast<int64_t>(place(c));
    });
    return fits;
  }
  bool is_contiguous() const {
    for (size_t i = 1; i < places.size(); ++i)
      if (places[i] != places[0] + i) return false;
    return true;
  }
};

inline int64_t from_front(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

/// Whether a value of sizes `a` can stand where `b` is wanted.
inline bool broadcasts(const Ints& a, const Ints& b) {
  if (a.size() > b.size()) return false;
  for (size_t i = 1; i <= a.size(); ++i)
    if (a[a.size() - i] != 1 && a[a.size() - i] != b[b.size() - i]) return false;
  return true;
}
template <class T>
Array<T> broadcast(const Array<T>& a, const Ints& sizes) {
  return a.view(sizes, [&](const Ints& c) {
    Ints source(c.end() - static_cast<std::ptrdiff_t>(a.sizes.size()), c.end());
    for (size_t d = 0; d < source.size(); ++d)
      if (a.sizes[d] == 1) source[d] = 0;
    return source;
  });
}

/// One call. Values are numbered; all but the writes add one value, `split` one for each piece.
struct Step {
  enum Kind {
    select,       // dim, index
    slice,        // dim, start, end, step
    permute,      // dims
    expand,       // sizes
    reshape,      // sizes
    unsqueeze,    // dim
    squeeze,      // dim
    diagonal,     // offset, dim1, dim2
    split,        // size, dim
    contiguous,   //
    plus_number,  // number
    copy_,        //
    add_,         // alpha
    mul_,         //
    mul_number_,  // number
    fill_,        // number
    index_put_,   // accumulate, dim (0 or 1), indices
  } kind;
  size_t self = 0, other = 0;
  Ints numbers = {};
};

/// The step on values that have one more dimension behind the others, of `size`, which it keeps.
/// Not of a diagonal, which comes last itself.
inline Step with_last_dimension(Step s, int64_t size) {
  const auto shift = [](int64_t& dim) { dim -= dim < 0; };
  switch (s.kind) {
    case Step::select:
    case Step::slice:
    case Step::unsqueeze:
    case Step::squeeze:
      shift(s.numbers[0]);
      break;
    case Step::split:
      shift(s.numbers[1]);
      break;
    case Step::permute:
      for (int64_t& dim : s.numbers) shift(dim);
      s.numbers.push_back(-1);
      break;
    case Step::expand:
    case Step::reshape:
      s.numbers.push_back(size);
      break;
    default:
      break;
  }
  return s;
}

template <class T>
class Interpreter {
 public:
  explicit Interpreter(std::vector<Array<T>> values) : values_(std::move(values)) {}

  const std::vector<Array<T>>& values() const { return values_; }

  void run(const Step& s) {
    const Array<T> self = values_[s.self];
    if (s.kind < Step::copy_)
      add_results(s, self);
    else
      write(s, self, values_[s.other]);
  }

 private:
  void add_results(const Step& s, const Array<T>& self) {
    const Ints& n = s.numbers;
    const int64_t rank = static_cast<int64_t>(self.sizes.size());
    switch (s.kind) {
      case Step::slice: {
        const size_t d = static_cast<size_t>(from_front(n[0], rank));
        const int64_t size = self.sizes[d], start = from_front(n[1], size),
                      end = std::min(from_front(n[2], size), size);
        return add(slice(self, d, start, end, n[3]));
      }
      case Step::split: {
        const size_t d = static_cast<size_t>(from_front(n[1], rank));
        for (int64_t start = 0; start < self.sizes[d]; start += n[0])
          add(slice(self, d, start, std::min(start + n[0], self.sizes[d]), 1));
        return;
      }
      case Step::reshape: {
        Array<T> result = self;
        result.sizes = n;
        return add(result.has_strides() ? result : Array<T>::of(self.elements(), n));
      }
      case Step::contiguous:
        return add(self.is_contiguous() ? self : Array<T>::of(self.elements(), self.sizes));
      case Step::plus_number: {
        std::vector<T> list = self.elements();
        for (T& e : list) e += static_cast<T>(n[0]);
        return add(Array<T>::of(list, self.sizes));
      }
      default:
        return add(other_view(s, self, rank));
    }
  }

  static Array<T> slice(const Array<T>& self, size_t d, int64_t start, int64_t end, int64_t step) {
    Ints sizes = self.sizes;
    sizes[d] = std::max<int64_t>(0, (end - start + step - 1) / step);
    return self.view(sizes, [=](Ints c) {
      c[d] = start + c[d] * step;
      return c;
    });
  }

  static Array<T> other_view(const Step& s, const Array<T>& self, int64_t rank) {
    const Ints& n = s.numbers;
    Ints sizes = self.sizes;
    switch (s.kind) {
      case Step::select: {
        const int64_t d = from_front(n[0], rank),
                      i = from_front(n[1], sizes[static_cast<size_t>(d)]);
        sizes.erase(sizes.begin() + d);
        return self.view(sizes, [=](Ints c) {
          c.insert(c.begin() + d, i);
          return c;
        });
      }
      case Step::permute: {
        Ints dims = n;
        for (size_t i = 0; i < dims.size(); ++i) {
          dims[i] = from_front(dims[i], rank);
          sizes[i] = self.sizes[static_cast<size_t>(dims[i])];
        }
        return self.view(sizes, [=](const Ints& c) {
          Ints source(c.size());
          for (size_t i = 0; i < c.size(); ++i) source[static_cast<size_t>(dims[i])] = c[i];
          return source;
        });
      }
      case Step::expand: {
        Array<T> result = broadcast(self, n);
        result.expanded = self.expanded || count(n) != count(self.sizes);
        return result;
      }
      case Step::unsqueeze: {
        const int64_t d = from_front(n[0], rank + 1);
        sizes.insert(sizes.begin() + d, 1);
        return self.view(sizes, [=](Ints c) {
          c.erase(c.begin() + d);
          return c;
        });
      }
      case Step::squeeze: {
        const int64_t d = from_front(n[0], rank);
        if (sizes[static_cast<size_t>(d)] != 1) return self;
        sizes.erase(sizes.begin() + d);
        return self.view(sizes, [=](Ints c) {
          c.insert(c.begin() + d, 0);
          return c;
        });
      }
      default: {  // diagonal
        const size_t a = static_cast<size_t>(from_front(n[1], rank)),
                     b = static_cast<size_t>(from_front(n[2], rank));
        const int64_t down = std::max<int64_t>(0, -n[0]), right = std::max<int64_t>(0, n[0]);
        const int64_t length = std::max<int64_t>(0, std::min(sizes[a] - down, sizes[b] - right));
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)));
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)));
        sizes.push_back(length);
        return self.view(sizes, [=](Ints c) {
          const int64_t i = c.back();
          c.pop_back();
          c.insert(c.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)), 0);
          c.insert(c.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)), 0);
          c[a] = i + down, c[b] = i + right;
          return c;
        });
      }
    }
  }

  /// All elements are computed before the first is written.
  static void write(const Step& s, const Array<T>& self, const Array<T>& other) {
    const Ints& n = s.numbers;
    std::vector<T> list = self.elements();
    const auto each = [&](auto f) {
      const std::vector<T> operand = broadcast(other, self.sizes).elements();
      for (size_t i = 0; i < list.size(); ++i) list[i] = f(list[i], operand[i]);
    };
    switch (s.kind) {
      case Step::copy_:
        each([](T, T b) { return b; });
        break;
      case Step::add_:
        each([&](T a, T b) { return a + static_cast<T>(n[0]) * b; });
        break;
      case Step::mul_:
        each([](T a, T b) { return a * b; });
        break;
      case Step::mul_number_:
        for (T& e : list) e *= static_cast<T>(n[0]);
        break;
      case Step::fill_:
        for (T& e : list) e = static_cast<T>(n[0]);
        break;
      default: {  // index_put_
        const size_t d = static_cast<size_t>(n[1]);
        const Ints indices(n.begin() + 2, n.end());
        Ints sizes = self.sizes;
        sizes[d] = static_cast<int64_t>(indices.size());
        const std::vector<T> operand = broadcast(other, sizes).elements();
        size_t next = 0;
        for_each_coordinate(sizes, [&](Ints c) {
          c[d] = indices[static_cast<size_t>(c[d])];
          T& element = (*self.storage)[self.place(c)];
          element = n[0] != 0 ? element + operand[next] : operand[next];
          ++next;
        });
        return;
      }
    }
    self.write(list);
  }

  void add(Array<T> a) { values_.push_back(std::move(a)); }

  std::vector<Array<T>> values_;
};

/// A program over values of the given sizes, which may be written.
class Generator {
 public:
  Generator(unsigned seed, const std::vector<Array<int64_t>>& values, bool diagonals = true)
      : random_(seed), model_(values), diagonals_(diagonals) {}

  std::vector<Step> program(int length) {
    for (int i = 0; i < length; ++i) pick(5) < 3 ? view() : write();
    return steps_;
  }
  size_t value_count() const { return model_.values().size(); }
  /// Some of the values, the last among them.
  std::vector<size_t> some_values() {
    std::vector<size_t> list;
    for (size_t i = 0; i + 1 < value_count(); ++i)
      if (pick(2) == 0) list.push_back(i);
    list.push_back(value_count() - 1);
    return list;
  }
  int writes = 0, overlapping = 0;  ///< how many steps write, and from elements that they write

 private:
  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  /// The index itself, or the same counted from the end.
  int64_t either(int64_t i, int64_t n) { return pick(3) == 0 ? i - n : i; }
  const Array<int64_t>& value(size_t i) const { return model_.values()[i]; }
  size_t any() {
    const int64_t n = static_cast<int64_t>(value_count());
    return static_cast<size_t>(pick(2) == 0 ? n - 1 - pick(std::min<int64_t>(n, 4)) : pick(n));
  }

  size_t add(Step s) {
    model_.run(s);
    steps_.push_back(std::move(s));
    return value_count() - 1;
  }

  void view() {
    constexpr Step::Kind kinds[] = {
        Step::select,   Step::slice,   Step::slice,      Step::permute,    Step::permute,
        Step::expand,   Step::reshape, Step::reshape,    Step::squeeze,    Step::unsqueeze,
        Step::diagonal, Step::split,   Step::contiguous, Step::plus_number};
    Step s{kinds[pick(std::size(kinds))], any()};
    const Ints& sizes = value(s.self).sizes;
    const int64_t rank = static_cast<int64_t>(sizes.size());
    const bool fits = s.kind == Step::diagonal    ? diagonals_ && rank >= 2
                      : s.kind == Step::unsqueeze ? rank < 4
                                                  : rank >= 1;
    if (fits && count(sizes) > 0 && give_numbers(s, sizes, rank)) add(std::move(s));
  }

  bool give_numbers(Step& s, const Ints& sizes, int64_t rank) {
    const int64_t d = pick(rank + (s.kind == Step::unsqueeze)),
                  size = d < rank ? sizes[static_cast<size_t>(d)] : 1, dim = either(d, rank);
    switch (s.kind) {
      case Step::select:
        s.numbers = {dim, either(pick(size), size)};
        return true;
      case Step::slice: {
        const int64_t start = pick(size), end = start + 1 + pick(size - start + 1);
        s.numbers = {dim, either(start, size), pick(20) == 0 ? start : end, 1 + pick(3)};
        return true;
      }
      case Step::permute:
        for (int64_t i = 0; i < rank; ++i) s.numbers.push_back(either(i, rank));
        std::shuffle(s.numbers.begin(), s.numbers.end(), random_);
        return true;
      case Step::expand:
        s.numbers = sizes;
        for (int64_t& n : s.numbers)
          if (n == 1 && pick(2) == 0) n = 2;
        if (rank < 4 && pick(2) == 0) s.numbers.insert(s.numbers.begin(), 1 + pick(2));
        return count(s.numbers) <= 64;
      case Step::reshape: {
        int64_t left = count(sizes);
        for (int i = 0; i < 3 && left > 1; ++i) {
          int64_t factor = 1 + pick(left);
          while (left % factor != 0) --factor;
          s.numbers.push_back(factor);
          left /= factor;
        }
        s.numbers.push_back(left);
        return true;
      }
      case Step::unsqueeze:
        s.numbers = {either(d, rank + 1)};
        return true;
      case Step::squeeze:
        s.numbers = {dim};
        return true;
      case Step::diagonal: {
        const int64_t second = (d + 1 + pick(rank - 1)) % rank;
        s.numbers = {pick(3) - 1, dim, either(second, rank)};
        return true;
      }
      case Step::split:
        s.numbers = {1 + pick(size), dim};
        return true;
      default:
        s.numbers = {1 + pick(3)};
        return true;
    }
  }

  void write() {
    size_t self = any(), other = any();
    if (value(self).expanded) return;
    const Ints sizes = value(self).sizes;
    const int64_t rank = static_cast<int64_t>(sizes.size()), way = pick(4);
    if (way == 0 && rank >= 1 && count(sizes) > 0) {  // two parts of one value, which may overlap
      const int64_t d = pick(rank), size = sizes[static_cast<size_t>(d)], length = 1 + pick(size),
                    step = 1, last = size - length;
      const int64_t first = pick(last + 1), second = pick(last + 1);
      other = add({Step::slice, self, 0, {d, first, first + length, step}});
      self = add({Step::slice, self, 0, {d, second, second + length, step}});
    } else if (way == 1 && rank >= 2 && sizes[0] == sizes[1]) {
      Ints dims{1, 0};
      for (int64_t i = 2; i < rank; ++i) dims.push_back(i);
      other = add({Step::permute, self, 0, dims});
    } else if (way == 2 && rank >= 1 && count(sizes) > 0) {
      return put(self);
    } else if (!broadcasts(value(other).sizes, sizes)) {
      if (count(value(other).sizes) != count(sizes)) return number(self);
      other = add({Step::reshape, other, 0, sizes});
    }
    constexpr Step::Kind kinds[] = {Step::copy_, Step::copy_, Step::add_, Step::mul_};
    Step::Kind kind = kinds[pick(4)];
    if (kind == Step::mul_ && ++products_ > 2) kind = Step::add_;  // numbers stay small
    written(self, other);
    add({kind, self, other, {1 + pick(2)}});
  }
  void number(size_t self) {
    written(self, self);
    if (pick(2) == 0)
      add({Step::fill_, self, self, {pick(9)}});
    else
      add({Step::mul_number_, self, self, {pick(3) - 1}});
  }
  void put(size_t self) {
    const Ints& sizes = value(self).sizes;
    const int64_t d = sizes.size() > 1 ? pick(2) : 0, size = sizes[static_cast<size_t>(d)],
                  accumulate = pick(2);
    Ints indices;
    for (int64_t i = 0; i < size; ++i) indices.push_back(accumulate != 0 ? pick(size) : i);
    std::shuffle(indices.begin(), indices.end(), random_);
    indices.resize(static_cast<size_t>(1 + pick(size)));
    const int64_t length = static_cast<int64_t>(indices.size());
    const size_t other = add({Step::slice, self, 0, {d, 0, length, 1}});
    Step s{Step::index_put_, self, other, {accumulate, d}};
    s.numbers.insert(s.numbers.end(), indices.begin(), indices.end());
    written(self, other);
    add(std::move(s));
  }
  void written(size_t self, size_t other) {
    ++writes;
    const Array<int64_t>&a = value(self), &b = value(other);
    if (self == other || a.storage != b.storage) return;
    for (const size_t p : b.places)
      if (std::ranges::find(a.places, p) != a.places.end()) {
        ++overlapping;
        return;
      }
  }

  std::mt19937 random_;
  Interpreter<int64_t> model_;
  const bool diagonals_;
  std::vector<Step> steps_;
  int products_ = 0;
};

}  // namespace taper::plain
