#include "xnnpack_parts.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <optional>

#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::fuzzing {
namespace {

using namespace delegates::xnnpack;
using blob::Function, blob::Kind;

constexpr index_t most_elements = 20000;  // so that a run takes but a moment

enum class Group : uint8_t { operand, constant, node };

/// What a blob says of a value of integers.
struct Integers {
  uint8_t bits = 8;
  int32_t zero_point = 0;
  float scale = 0.5f;
  int64_t scales = -1;  ///< the constant; -1: none
  uint8_t channel = 0;
  uint32_t block = 0;
  bool is_rounded = false;
};

struct Value {
  Group group = Group::operand;
  uint32_t index = 0;  ///< in its group
  Shape shape;
  std::optional<Integers> integers;
};

struct Node {
  Kind kind = Kind::unary;
  Function function = Function::none;
  std::vector<int64_t> inputs;  ///< positions in `values`; -1: none
  std::vector<int64_t> numbers;
  std::vector<float> parameters;
};

Shape shape_of(std::initializer_list<index_t> sizes) {
  Shape s;
  for (const index_t n : sizes) s.sizes[s.rank++] = n;
  s.make_dense();
  return s;
}

flatbuffers::Offset<blob::Node> write(flatbuffers::FlatBufferBuilder& b, const Node& n,
                                      const std::vector<uint32_t>& inputs) {
  return blob::CreateNodeDirect(b, n.kind, n.function, &inputs, &n.numbers, &n.parameters);
}

class Maker {
 public:
  explicit Maker(Choices& choices) : c_(choices) {}

  Sample make() {
    const uint8_t first = c_.byte();
    if (first == 254) return make_grouped_product();
    const int64_t operands = 1 + first % 2;
    for (int64_t i = 0; i < operands; ++i) add_operand();
    const int64_t nodes = c_.between(1, 8);
    for (int64_t tries = 0; tries < 3 * nodes && count(Group::node) < nodes; ++tries) add_node();
    return finish();
  }

 private:
  // ---- values ----

  int64_t count(Group group) const {
    return std::count_if(values_.begin(), values_.end(),
                         [&](const Value& v) { return v.group == group; });
  }
  int64_t add(Group group, const Shape& shape, std::optional<Integers> integers = {}) {
    values_.push_back({group, static_cast<uint32_t>(count(group)), shape, integers});
    return static_cast<int64_t>(values_.size()) - 1;
  }
  const Value& at(int64_t position) const { return values_[static_cast<size_t>(position)]; }

  index_t size() {
    constexpr index_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9};
    return c_.slips() ? 0 : c_.one_of(sizes);
  }
  Shape some_shape() {
    Shape s;
    // most are images, or matrices
    constexpr int ranks[] = {4, 4, 4, 4, 2, 2, 3, 3, 1, 5, 6, 4};
    s.rank = c_.one_of(ranks);
    for (int i = 0; i < s.rank; ++i) s.sizes[i] = s.rank > 4 ? c_.between(1, 3) : size();
    if (s.rank == 2 && c_.below(2) == 1) s.sizes[1] = 32 * c_.between(1, 2);
    s.make_dense();
    return s;
  }
  Integers some_integers() {
    constexpr float scales[] = {0.5f, 0.5f, 0.25f, 1, 0.02f, 1e-10f, 1e10f};
    Integers q;
    q.scale = c_.one_of(scales);
    q.zero_point = static_cast<int32_t>(c_.one_of({0, 0, 3, -128, 127}));
    return q;
  }
  void add_operand() {
    add(Group::operand, some_shape(),
        c_.below(3) == 2 ? std::optional(some_integers()) : std::nullopt);
  }
  /// A value of operands or nodes that `fits`; -1: there is none. Late ones come first.
  template <class Fits>
  int64_t find(Fits fits) {
    std::vector<int64_t> all;
    for (int64_t i = static_cast<int64_t>(values_.size()) - 1; i >= 0; --i)
      if (at(i).group != Group::constant && fits(at(i))) all.push_back(i);
    return all.empty() ? -1 : all[c_.below(static_cast<uint32_t>(all.size()))];
  }

  // ---- constants ----

  /// A filter with 8 bits or 4, a scale for each channel, or for each block of a row.
  int64_t add_filter(const Shape& shape, uint8_t channel, uint8_t bits) {
    Integers q;
    q.bits = bits, q.channel = channel;
    Shape stored = shape;
    if (bits == 4) stored.sizes[1] /= 2;
    stored.make_dense();
    const index_t row = shape.rank == 2 ? shape.sizes[1] : 0;
    if (bits == 4 && row % 32 == 0 && c_.below(2) == 1) {
      Integers halves;
      halves.bits = 16;
      q.block = 32;
      q.scales = add(Group::constant, shape_of({shape.sizes[0], row / 32}), halves);
    } else if (bits == 4 || c_.below(2) == 1) {
      q.scales = add(Group::constant, shape_of({shape.sizes[channel]}));
    }
    return add(Group::constant, stored, q);
  }
  int64_t add_bias(index_t outputs, bool is_integer, bool has_scales) {
    if (c_.below(3) == 0) return -1;
    std::optional<Integers> q;
    if (is_integer) {
      q = Integers();
      q->bits = 32;
      if (has_scales) q->scales = add(Group::constant, shape_of({outputs}));
    }
    return add(Group::constant, shape_of({outputs}), q);
  }
  /// A filter and a bias for x.
  void add_weights(Node& n, const Value& x, const Shape& filter, index_t outputs, uint8_t channel) {
    const bool is_rounded = x.integers && x.integers->is_rounded;
    const bool is_integer = x.integers && !is_rounded;
    const bool is_product = n.kind == Kind::fully_connected;
    if (!is_integer && !is_rounded && !(is_product && c_.below(4) == 3)) {
      n.inputs.push_back(add(Group::constant, filter));
      n.inputs.push_back(add_bias(outputs, false, false));
      return;
    }
    const bool in_halves = is_rounded && filter.sizes[1] % 2 == 0 && c_.below(2) == 1;
    int64_t weight = add_filter(filter, channel, in_halves ? 4 : 8);
    if (!is_integer && at(weight).integers->scales < 0) {
      const int64_t scales = add(Group::constant, shape_of({filter.sizes[channel]}));
      values_[static_cast<size_t>(weight)].integers->scales = scales;
    }
    n.inputs.push_back(weight);
    n.inputs.push_back(add_bias(outputs, is_integer, at(weight).integers->scales >= 0));
  }

  // ---- nodes ----

  static bool is_plain(const Value& v) { return !v.integers || !v.integers->is_rounded; }

  void add_node() {
    const auto kind = static_cast<Kind>(c_.below(18));
    const int least = kind == Kind::fully_connected ? 1 : 0;
    const int64_t x = find([&](const Value& v) {
      return is_plain(v) && v.shape.rank >= least && (!needs_image(kind) || v.shape.rank == 4) &&
             takes(kind, v);
    });
    if (x < 0) return;
    if (kind == Kind::fully_connected && !at(x).integers && at(x).shape.rank >= 2 &&
        c_.below(2) == 1)
      add_rounded_product(x);
    else
      add_node(kind, x);
  }
  /// Rounds the rows of x, and multiplies them.
  void add_rounded_product(int64_t x) {
    Integers rounded;
    rounded.is_rounded = true;
    nodes_.push_back({Kind::unary, Function::convert, {x}, {}, {}});
    add_node(Kind::fully_connected, add(Group::node, at(x).shape, rounded));
  }
  /// A node of x, unless its sizes do not fit.
  bool add_node(Kind kind, int64_t x) {
    Node n;
    n.kind = kind;
    n.inputs.push_back(x);
    const Value from = at(x);
    std::optional<Integers> to = from.integers;
    fill(n, from, to);
    std::optional<Shape> result = from.shape;
    if (c_.slips())
      spoil(n, to);
    else if (result = infer(n); !result && !c_.slips())
      return false;
    add(Group::node, result.value_or(from.shape), to);
    nodes_.push_back(std::move(n));
    return true;
  }

  /// Such a product is alone in its part. Most of its ends ascend within the rows.
  Sample make_grouped_product() {
    const index_t rows = size(), inputs = size(), groups = c_.between(1, 4);
    Node n;
    n.kind = Kind::grouped_product;
    n.inputs = {add(Group::operand, shape_of({rows, inputs})),
                add(Group::operand, shape_of({groups})),
                add(Group::constant, shape_of({groups, size(), inputs}))};
    n.numbers = {c_.one_of({int64_t{64}, int64_t{32}})};
    std::optional<Integers> to;
    std::optional<Shape> result;
    if (c_.slips())
      spoil(n, to);
    else
      result = infer(n);
    add(Group::node, result.value_or(shape_of({rows, inputs})), to);
    nodes_.push_back(std::move(n));
    Sample sample = finish();
    int64_t end = 0;
    for (index_t g = 0; g < groups; ++g) {
      end = std::min<int64_t>(end + c_.below(4), rows);
      sample.ends.push_back(c_.slips() ? extreme() : end);
    }
    return sample;
  }

  static bool needs_image(Kind kind) {
    switch (kind) {
      case Kind::convolution:
      case Kind::depthwise:
      case Kind::deconvolution:
      case Kind::max_pool:
      case Kind::average_pool:
      case Kind::resize_bilinear:
        return true;
      default:
        return false;
    }
  }
  /// Whether the kind takes the type.
  static bool takes(Kind kind, const Value& v) {
    if (!v.integers) return true;
    switch (kind) {
      case Kind::batch_matmul:
      case Kind::average_pool:
      case Kind::softmax:
      case Kind::sum:
      case Kind::deconvolution:
      case Kind::resize_bilinear:
        return false;
      default:
        return true;
    }
  }

  void fill(Node& n, const Value& x, std::optional<Integers>& to) {
    switch (n.kind) {
      case Kind::unary:
        return fill_unary(n, x, to);
      case Kind::binary:
        return fill_binary(n, x, to);
      case Kind::convolution:
      case Kind::depthwise:
      case Kind::deconvolution:
        return fill_convolution(n, x, to);
      case Kind::fully_connected:
        return fill_product(n, x, to);
      case Kind::batch_matmul:
        return fill_matmul(n, x);
      case Kind::max_pool:
      case Kind::average_pool:
        return fill_pool(n);
      case Kind::mean:
      case Kind::sum:
        return fill_reduction(n, x, to);
      default:
        return fill_moving(n, x);
    }
  }

  void add_bounds(Node& n) {
    constexpr float lows[] = {0, -INFINITY, -1, 0.25f}, highs[] = {6, INFINITY, 1, 0.5f};
    if (c_.below(4) == 3) n.parameters = {c_.one_of(lows), c_.one_of(highs)};
  }
  /// Scales near the one of x.
  Integers integers_like(const Integers& x) {
    Integers q = x;
    q.scale *= c_.one_of({1.0f, 1.0f, 2.0f, 0.5f, 100.0f});
    q.zero_point = static_cast<int32_t>(c_.between(-3, 3));
    return q;
  }

  void fill_unary(Node& n, const Value& x, std::optional<Integers>& to) {
    n.function = static_cast<Function>(c_.between(1, 17));
    if (n.function == Function::clamp)
      n.parameters = {c_.one_of({0.0f, -1.0f, -INFINITY}), c_.one_of({6.0f, 1.0f, INFINITY})};
    if (n.function == Function::elu) n.parameters = {c_.one_of({1.0f, 0.5f, 1e-3f})};
    if (n.function == Function::leaky_relu) n.parameters = {c_.one_of({0.1f, -0.5f, 2.0f, 0.0f})};
    if (x.integers) to = integers_like(*x.integers);
    if (n.function != Function::convert) return;
    if (!x.integers)
      to = some_integers();
    else if (c_.below(2) == 0)
      to.reset();
  }

  void fill_binary(Node& n, const Value& x, std::optional<Integers>& to) {
    n.function = static_cast<Function>(c_.between(32, x.integers ? 34 : 38));
    add_bounds(n);
    if (x.integers) to = integers_like(*x.integers);
    const int64_t other = find([&](const Value& v) {
      return is_plain(v) && v.integers.has_value() == x.integers.has_value();
    });
    if (c_.below(2) == 0 || !fits_beside(x.shape, at(other).shape)) {
      Shape constant = x.shape;  // some of the sizes are 1
      for (int d = 0; d < constant.rank; ++d)
        if (c_.below(3) == 2) constant.sizes[d] = 1;
      constant.make_dense();
      n.inputs.push_back(add(Group::constant, constant, x.integers));
    } else {
      n.inputs.push_back(other);
    }
  }
  static bool fits_beside(const Shape& a, const Shape& b) {
    for (int d = 1; d <= std::min(a.rank, b.rank); ++d) {
      const index_t m = a.sizes[a.rank - d], n = b.sizes[b.rank - d];
      if (m != n && m != 1 && n != 1) return false;
    }
    return true;
  }

  void fill_convolution(Node& n, const Value& x, std::optional<Integers>& to) {
    const index_t channels = x.shape.sizes[3], height = c_.between(1, 3), width = c_.between(1, 3);
    if (x.integers) to = integers_like(*x.integers), add_bounds(n);
    n.numbers = {c_.between(1, 3), c_.between(1, 3), c_.between(0, 2),
                 c_.between(0, 2), c_.between(1, 2), c_.between(1, 2)};
    if (n.kind == Kind::depthwise) {
      const index_t outputs = channels * c_.between(1, 2);
      return add_weights(n, x, shape_of({1, height, width, outputs}), outputs, 3);
    }
    index_t groups = 1;
    if (n.kind == Kind::convolution) {
      if (c_.below(3) == 2) groups = channels % 2 == 0 ? 2 : channels;
      n.numbers.push_back(groups);
    } else {
      n.numbers.insert(n.numbers.end(), {c_.between(0, 1), c_.between(0, 1)});
    }
    const index_t outputs = std::max<index_t>(1, groups) * c_.between(1, 5);
    add_weights(n, x, shape_of({outputs, height, width, channels / std::max<index_t>(1, groups)}),
                outputs, 0);
  }

  void fill_product(Node& n, const Value& x, std::optional<Integers>& to) {
    const index_t inputs = x.shape.sizes[x.shape.rank - 1], outputs = c_.between(1, 9);
    add_bounds(n);
    if (x.integers) to = integers_like(*x.integers);
    if (x.integers && x.integers->is_rounded) to.reset();
    add_weights(n, x, shape_of({outputs, inputs}), outputs, 0);
  }

  void fill_matmul(Node& n, const Value& x) {
    Shape y = x.shape;
    const bool is_turned = c_.below(2) == 1;
    if (is_turned) n.numbers = {1};
    if (y.rank >= 2) {
      y.sizes[y.rank - 1] = is_turned ? x.shape.sizes[y.rank - 1] : c_.between(1, 9);
      y.sizes[y.rank - 2] = is_turned ? c_.between(1, 9) : x.shape.sizes[y.rank - 1];
      y.make_dense();
    }
    const int64_t other = find([&](const Value& v) {
      return !v.integers && v.shape.rank == y.rank &&
             std::equal(y.sizes, y.sizes + y.rank, v.shape.sizes);
    });
    n.inputs.push_back(other >= 0 ? other : add(Group::constant, y));
  }

  void fill_pool(Node& n) {
    n.numbers = {c_.between(1, 3), c_.between(2, 3)};
    for (size_t d = 0; d < 2; ++d) n.numbers.push_back(c_.between(1, n.numbers[d]));
    for (size_t d = 0; d < 2; ++d) n.numbers.push_back(c_.between(0, n.numbers[d] - 1));
    if (n.kind == Kind::max_pool)
      n.numbers.insert(n.numbers.end(), {c_.between(1, 2), c_.between(1, 2)});
    add_bounds(n);
  }

  void fill_reduction(Node& n, const Value& x, std::optional<Integers>& to) {
    n.numbers = {c_.between(0, 1)};
    for (int64_t d = 0; d < x.shape.rank; ++d)
      if (c_.below(2) == 1 || (d == x.shape.rank - 1 && n.numbers.size() == 1))
        n.numbers.push_back(d);
    if (x.integers) to = integers_like(*x.integers);
  }

  void fill_moving(Node& n, const Value& x) {
    const int rank = x.shape.rank;
    switch (n.kind) {
      case Kind::concatenate:
        return fill_concatenate(n, x);
      case Kind::slice: {
        std::vector<int64_t> sizes;
        for (int d = 0; d < rank; ++d) {
          const int64_t offset = c_.between(0, x.shape.sizes[d] - 1);
          n.numbers.push_back(offset);
          sizes.push_back(c_.between(offset > 0 ? 1 : 0, x.shape.sizes[d] - offset));
        }
        n.numbers.insert(n.numbers.end(), sizes.begin(), sizes.end());
        return;
      }
      case Kind::transpose:
        for (int d = 0; d < rank; ++d) n.numbers.insert(n.numbers.begin() + c_.between(0, d), d);
        return;
      case Kind::reshape:
        return fill_reshape(n, x);
      case Kind::pad:
        for (int d = 0; d < 2 * rank; ++d) n.numbers.push_back(c_.between(0, 2));
        n.parameters = {c_.one_of({0.0f, 1.0f, -INFINITY, 1e30f})};
        return;
      case Kind::resize_bilinear:
        n.numbers = {c_.between(1, 12), c_.between(1, 12), c_.between(0, 1)};
        return;
      default:
        return;
    }
  }
  void fill_concatenate(Node& n, const Value& x) {
    const int64_t axis = x.shape.rank > 0 ? c_.between(0, x.shape.rank - 1) : 0;
    n.numbers = {axis};
    const auto joins = [&](const Value& v) {
      if (v.shape.rank != x.shape.rank || v.integers.has_value() != x.integers.has_value())
        return false;
      if (x.integers && (v.integers->scale != x.integers->scale ||
                         v.integers->zero_point != x.integers->zero_point))
        return false;
      for (int d = 0; d < v.shape.rank; ++d)
        if (d != axis && v.shape.sizes[d] != x.shape.sizes[d]) return false;
      return true;
    };
    const int64_t more = c_.between(1, 4);
    for (int64_t i = 0; i < more; ++i) n.inputs.push_back(find(joins));
  }
  /// The sizes in another order, or two in one; at times the largest is what is left.
  void fill_reshape(Node& n, const Value& x) {
    n.numbers.assign(x.shape.sizes, x.shape.sizes + x.shape.rank);
    if (n.numbers.size() > 1) {
      const size_t d = c_.below(static_cast<uint32_t>(n.numbers.size()) - 1);
      if (c_.below(2) == 0) {
        std::swap(n.numbers[d], n.numbers[d + 1]);
      } else {
        n.numbers[d] *= n.numbers[d + 1];
        n.numbers.erase(n.numbers.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      }
    }
    if (!n.numbers.empty() && c_.below(3) == 2)
      n.numbers[c_.below(static_cast<uint32_t>(n.numbers.size()))] = 0;
    if (n.numbers.size() < 6 && c_.below(3) == 2) n.numbers.push_back(1);
  }

  // ---- slips ----

  int64_t extreme() {
    constexpr int64_t extremes[] = {-1,        0,         1 << 14,   1 << 15,   (1 << 15) + 1,
                                    INT32_MAX, INT64_MIN, INT64_MAX, 1ll << 33, 1ll << 34};
    return c_.one_of(extremes);
  }
  /// Changes one thing of a node.
  void spoil(Node& n, std::optional<Integers>& to) {
    constexpr float reals[] = {0, -1, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 1e-42f};
    switch (c_.below(9)) {
      case 0:
        n.kind = static_cast<Kind>(c_.below(20));
        break;
      case 1:
        n.function = static_cast<Function>(c_.below(40));
        break;
      case 2:
        n.inputs[c_.below(static_cast<uint32_t>(n.inputs.size()))] =
            static_cast<int64_t>(c_.below(static_cast<uint32_t>(values_.size()) + 1)) - 1;
        break;
      case 3:
        n.inputs.push_back(0);
        break;
      case 4:
        if (!n.numbers.empty())
          n.numbers[c_.below(static_cast<uint32_t>(n.numbers.size()))] = extreme();
        break;
      case 5:
        n.numbers.push_back(extreme());
        break;
      case 6:
        if (!n.numbers.empty()) n.numbers.pop_back();
        break;
      case 7:
        n.parameters.push_back(c_.one_of(reals));
        break;
      default:
        to = some_integers();
        to->bits = c_.one_of({uint8_t{8}, uint8_t{4}, uint8_t{16}, uint8_t{32}, uint8_t{7}});
    }
  }

  // ---- the blob ----

  uint32_t number_of(int64_t position) const {
    if (position < 0) return no_value;
    const Value& v = at(position);
    const auto operands = static_cast<uint32_t>(count(Group::operand)),
               constants = static_cast<uint32_t>(count(Group::constant));
    if (v.group == Group::operand) return v.index;
    return v.index + operands + (v.group == Group::node ? constants : 0);
  }
  std::vector<uint32_t> numbers_of(const std::vector<int64_t>& positions) const {
    std::vector<uint32_t> numbers;
    for (const int64_t p : positions) numbers.push_back(number_of(p));
    return numbers;
  }

  /// The sizes of the result; none: the library does not take those of the inputs.
  std::optional<Shape> infer(const Node& n) const {
    flatbuffers::FlatBufferBuilder b(256);
    b.Finish(write(b, n, numbers_of(n.inputs)));
    std::vector<Shape> shapes(n.inputs.size());
    const Shape* given[most_inputs] = {};
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] < 0) continue;
      const Value& v = at(n.inputs[i]);
      shapes[i] = v.shape;
      if (v.integers && v.integers->bits == 4) shapes[i].sizes[1] *= 2;
      given[i] = &shapes[i];
    }
    Shape result;
    const NodeView view(*flatbuffers::GetRoot<blob::Node>(b.GetBufferPointer()));
    if (!infer_node(view, given, result) || result.numel() > most_elements) return {};
    return result;
  }

  /// All that no node reads, and at times more.
  std::vector<uint32_t> results() {
    std::vector<uint32_t> list;
    for (int64_t p = 0; p < static_cast<int64_t>(values_.size()); ++p) {
      if (at(p).group != Group::node) continue;
      const bool is_read = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& n) {
        return std::find(n.inputs.begin(), n.inputs.end(), p) != n.inputs.end();
      });
      if (is_read ? c_.below(8) == 7 : !c_.slips()) list.push_back(number_of(p));
    }
    if (c_.slips()) list.push_back(c_.below(20));
    return list;
  }

  std::vector<flatbuffers::Offset<blob::Quantized>> quantized(
      flatbuffers::FlatBufferBuilder& b) const {
    std::vector<std::pair<uint32_t, const Integers*>> list;
    for (size_t p = 0; p < values_.size(); ++p)
      if (values_[p].integers)
        list.emplace_back(number_of(static_cast<int64_t>(p)), &*values_[p].integers);
    std::sort(list.begin(), list.end());
    std::vector<flatbuffers::Offset<blob::Quantized>> written;
    for (const auto& [value, q] : list)
      written.push_back(blob::CreateQuantized(b, value, q->bits, q->zero_point, q->scale,
                                              number_of(q->scales), q->channel, q->block,
                                              q->is_rounded));
    return written;
  }

  Sample finish() {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<blob::Node>> nodes;
    for (const Node& n : nodes_) nodes.push_back(write(b, n, numbers_of(n.inputs)));
    const std::vector<uint32_t> given = results();
    const auto integers = quantized(b);
    b.Finish(blob::CreatePartDirect(b, static_cast<uint32_t>(count(Group::operand)),
                                    static_cast<uint32_t>(count(Group::constant)), &nodes, &given,
                                    &integers),
             blob::PartIdentifier());
    Sample sample;
    sample.bytes = b.GetSize();
    sample.blob.resize(sample.bytes / 8 + 1);
    std::memcpy(sample.blob.data(), b.GetBufferPointer(), sample.bytes);
    for (const Group group : {Group::operand, Group::constant})
      for (const Value& v : values_)
        if (v.group == group) sample.inputs.push_back(v.shape);
    for (Shape& s : sample.inputs)
      if (s.rank > 0 && c_.slips()) s.sizes[c_.below(static_cast<uint32_t>(s.rank))] = size();
    for (Shape& s : sample.inputs) s.make_dense();
    return sample;
  }

  Choices& c_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
};

}  // namespace

Sample make_sample(Choices& choices) { return Maker(choices).make(); }

}  // namespace taper::fuzzing
