// The sizes of results, and what each kind of node asks of sizes and numbers.
#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {
namespace {

bool are_between(Span<const int64_t> numbers, int64_t least, int64_t most) {
  for (const int64_t n : numbers)
    if (n < least || n > most) return false;
  return true;
}

// The two sizes of an image after a window went over it.
struct Window {
  const int64_t *sizes, *strides, *paddings, *dilations;

  bool slide(const Shape& x, Shape& result) const {
    for (int d = 0; d < 2; ++d) {
      const int64_t covered = dilations[d] * (sizes[d] - 1) + 1;
      const int64_t room = x.sizes[d + 1] + 2 * paddings[d] - covered;
      if (room < 0) return false;
      result.sizes[d + 1] = static_cast<index_t>(room / strides[d] + 1);
    }
    return true;
  }
};

constexpr int64_t ones[] = {1, 1};

bool infer_binary(const Shape& a, const Shape& b, Shape& result) {
  result.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int d = 1; d <= result.rank; ++d) {
    const index_t m = d <= a.rank ? a.sizes[a.rank - d] : 1;
    const index_t n = d <= b.rank ? b.sizes[b.rank - d] : 1;
    if (m != n && m != 1 && n != 1) return false;
    result.sizes[result.rank - d] = m == 1 ? n : m;
  }
  return true;
}

bool fits_bias(const Shape* bias, index_t outputs) {
  return bias == nullptr || (bias->rank == 1 && bias->sizes[0] == outputs);
}

bool infer_convolution(const NodeView& n, const Shape* const* in, Shape& result) {
  const Shape &x = *in[0], &filter = *in[1];
  const bool depthwise = n.kind == blob::Kind::depthwise;
  if (x.rank != 4 || filter.rank != 4 || n.numbers.size() != (depthwise ? 6 : 7)) return false;
  const int64_t* numbers = n.numbers.data();
  if (!are_between(n.numbers.part(0, 2), 1, most_step) ||
      !are_between(n.numbers.part(2, 2), 0, most_step) ||
      !are_between(n.numbers.part(4, 2), 1, most_step) || filter.sizes[1] > most_step ||
      filter.sizes[2] > most_step)
    return false;
  const index_t channels = x.sizes[3], outputs = filter.sizes[depthwise ? 3 : 0];
  if (depthwise) {
    if (filter.sizes[0] != 1 || outputs % channels != 0) return false;
  } else {
    const int64_t groups = numbers[6];
    if (groups < 1 || groups > channels || channels % groups != 0 || outputs % groups != 0 ||
        filter.sizes[3] != channels / groups)
      return false;
  }
  const int64_t window[] = {filter.sizes[1], filter.sizes[2]};
  result = x;
  result.sizes[3] = outputs;
  return fits_bias(in[2], outputs) &&
         Window{window, numbers, numbers + 2, numbers + 4}.slide(x, result);
}

bool infer_deconvolution(const NodeView& n, const Shape* const* in, Shape& result) {
  const Shape &x = *in[0], &filter = *in[1];
  if (x.rank != 4 || filter.rank != 4 || n.numbers.size() != 8 || filter.sizes[3] != x.sizes[3] ||
      !are_between(n.numbers.part(0, 2), 1, most_step) ||
      !are_between(n.numbers.part(2, 2), 0, most_step) ||
      !are_between(n.numbers.part(4, 2), 1, most_step) ||
      !are_between(n.numbers.part(6, 2), 0, most_step))
    return false;
  const int64_t* strides = n.numbers.data();
  const int64_t *paddings = strides + 2, *dilations = strides + 4, *more = strides + 6;
  result = x;
  result.sizes[3] = filter.sizes[0];
  for (int d = 0; d < 2; ++d) {
    const int64_t window = filter.sizes[d + 1], covered = dilations[d] * (window - 1) + 1;
    if (window > most_step || x.sizes[d + 1] > most_elements / most_step || more[d] >= strides[d] ||
        paddings[d] >= covered)
      return false;
    const int64_t size = strides[d] * (x.sizes[d + 1] - 1) + more[d] + covered - 2 * paddings[d];
    // The library subtracts up to strides - 1 from the size, as an unsigned number.
    if (size < strides[d]) return false;
    result.sizes[d + 1] = static_cast<index_t>(size);
  }
  return fits_bias(in[2], filter.sizes[0]);
}

bool infer_resize(const NodeView& n, const Shape& x, Shape& result) {
  if (x.rank != 4 || n.numbers.size() != 3 || !are_between(n.numbers.part(0, 2), 1, most_step) ||
      !are_between(n.numbers.part(2, 1), 0, 1))
    return false;
  result = x;
  for (int d = 0; d < 2; ++d) {
    if (x.sizes[d + 1] > most_step) return false;
    result.sizes[d + 1] = static_cast<index_t>(n.numbers[d]);
  }
  return true;
}

bool infer_fully_connected(const Shape* const* in, Shape& result) {
  const Shape &x = *in[0], &filter = *in[1];
  if (x.rank < 1 || filter.rank != 2 || x.sizes[x.rank - 1] != filter.sizes[1]) return false;
  result = x;
  result.sizes[x.rank - 1] = filter.sizes[0];
  return fits_bias(in[2], filter.sizes[0]);
}

bool infer_batch_matmul(const NodeView& n, const Shape& a, const Shape& b, Shape& result) {
  const int r = a.rank;
  const bool is_turned = !n.numbers.empty();
  if (r < 2 || b.rank != r || (is_turned && (n.numbers.size() != 1 || n.numbers[0] != 1)))
    return false;
  const index_t rows = b.sizes[r - (is_turned ? 1 : 2)], columns = b.sizes[r - (is_turned ? 2 : 1)];
  if (a.sizes[r - 1] != rows) return false;
  for (int d = 0; d < r - 2; ++d)
    if (a.sizes[d] != b.sizes[d]) return false;
  result = a;
  result.sizes[r - 1] = columns;
  return true;
}

bool infer_pool(const NodeView& n, const Shape& x, Shape& result) {
  const bool takes_maximum = n.kind == blob::Kind::max_pool;
  if (x.rank != 4 || n.numbers.size() != (takes_maximum ? 8 : 6)) return false;
  const int64_t* numbers = n.numbers.data();
  const int64_t *window = numbers, *strides = numbers + 2, *paddings = numbers + 4;
  const int64_t* dilations = takes_maximum ? numbers + 6 : ones;
  if (!are_between(n.numbers.part(0, 4), 1, most_step) || window[0] * window[1] == 1 ||
      window[0] * window[1] > most_step || !are_between({dilations, 2}, 1, most_step))
    return false;
  for (int d = 0; d < 2; ++d)
    if (strides[d] > window[d] || paddings[d] < 0 || paddings[d] >= window[d]) return false;
  result = x;
  return Window{window, strides, paddings, dilations}.slide(x, result);
}

bool infer_reduction(const NodeView& n, const Shape& x, Shape& result) {
  if (n.numbers.size() < 2 || n.numbers[0] < 0 || n.numbers[0] > 1) return false;
  const bool keeps = n.numbers[0] == 1;
  bool reduced[most_dimensions] = {};
  int64_t last = -1;
  for (index_t i = 1; i < n.numbers.size(); ++i) {
    const int64_t axis = n.numbers[i];
    if (axis <= last || axis >= x.rank) return false;
    reduced[last = axis] = true;
  }
  result.rank = 0;
  for (int d = 0; d < x.rank; ++d)
    if (!reduced[d] || keeps) result.sizes[result.rank++] = reduced[d] ? 1 : x.sizes[d];
  return true;
}

bool infer_concatenate(const NodeView& n, const Shape* const* in, Shape& result) {
  const Shape& first = *in[0];
  if (n.numbers.size() != 1 || n.numbers[0] < 0 || n.numbers[0] >= first.rank) return false;
  result = first;
  for (index_t i = 1; i < n.inputs.size(); ++i) {
    if (in[i]->rank != first.rank) return false;
    for (int d = 0; d < first.rank; ++d) {
      if (d == n.numbers[0])
        result.sizes[d] += in[i]->sizes[d];
      else if (in[i]->sizes[d] != first.sizes[d])
        return false;
    }
  }
  return true;
}

bool infer_slice(const NodeView& n, const Shape& x, Shape& result) {
  if (n.numbers.size() != 2 * x.rank) return false;
  result = x;
  for (int d = 0; d < x.rank; ++d) {
    const int64_t offset = n.numbers[d], size = n.numbers[x.rank + d];
    if (offset < 0 || size < 0 || (size == 0 && offset != 0) || offset > x.sizes[d] ||
        size > x.sizes[d] - offset)
      return false;
    if (size > 0) result.sizes[d] = static_cast<index_t>(size);
  }
  return true;
}

bool infer_transpose(const NodeView& n, const Shape& x, Shape& result) {
  if (n.numbers.size() != x.rank) return false;
  unsigned seen = 0;
  result.rank = x.rank;
  for (int d = 0; d < x.rank; ++d) {
    const int64_t from = n.numbers[d];
    if (from < 0 || from >= x.rank || (seen >> from & 1) != 0) return false;
    seen |= 1u << from;
    result.sizes[d] = x.sizes[from];
  }
  return true;
}

bool infer_reshape(const NodeView& n, const Shape& x, Shape& result) {
  if (n.numbers.size() > most_dimensions) return false;
  int64_t product = 1;
  int open = -1;
  result.rank = static_cast<int32_t>(n.numbers.size());
  for (int d = 0; d < result.rank; ++d) {
    const int64_t size = n.numbers[d];
    if (size == 0) {
      if (open >= 0) return false;
      open = d;
    } else if (size < 0 || size > most_elements ||
               __builtin_mul_overflow(product, size, &product) || product > most_elements) {
      return false;
    }
    result.sizes[d] = static_cast<index_t>(size);
  }
  const int64_t elements = x.numel();
  if (open < 0) return product == elements;
  if (elements % product != 0) return false;
  result.sizes[open] = static_cast<index_t>(elements / product);
  return true;
}

bool infer_pad(const NodeView& n, const Shape& x, Shape& result) {
  if (n.numbers.size() != 2 * x.rank || n.parameters.size() != 1 ||
      !are_between(n.numbers, 0, most_step))
    return false;
  result = x;
  for (int d = 0; d < x.rank; ++d)
    result.sizes[d] += static_cast<index_t>(n.numbers[d] + n.numbers[x.rank + d]);
  return true;
}

bool infer_grouped_product(const Shape* const* in, Shape& result) {
  const Shape &x = *in[0], &ends = *in[1], &filters = *in[2];
  if (x.rank != 2 || ends.rank != 1 || filters.rank != 3 || filters.sizes[0] > most_groups ||
      ends.sizes[0] != filters.sizes[0] || x.sizes[1] != filters.sizes[2])
    return false;
  result = x;
  result.sizes[1] = filters.sizes[1];
  return true;
}

bool has_parameters(const NodeView& n) {
  switch (n.function) {
    case blob::Function::clamp:
      return n.parameters.size() == 2 && n.parameters[0] < n.parameters[1] &&
             n.parameters[0] <= 0 && n.parameters[1] >= 0;
    case blob::Function::elu:
      return n.parameters.size() == 1 && n.parameters[0] > 0 && n.parameters[0] < 1e6f;
    case blob::Function::leaky_relu:
      return n.parameters.size() == 1 && n.parameters[0] > -1e6f && n.parameters[0] < 1e6f;
    default:
      return n.parameters.empty();
  }
}

bool infer_kind(const NodeView& n, const Shape* const* in, Shape& result) {
  const Shape& x = *in[0];
  switch (n.kind) {
    case blob::Kind::unary:
      return result = x, n.numbers.empty() && has_parameters(n);
    case blob::Kind::binary:
      return n.numbers.empty() && infer_binary(x, *in[1], result);
    case blob::Kind::convolution:
    case blob::Kind::depthwise:
      return infer_convolution(n, in, result);
    case blob::Kind::fully_connected:
      return n.numbers.empty() && infer_fully_connected(in, result);
    case blob::Kind::batch_matmul:
      return infer_batch_matmul(n, x, *in[1], result);
    case blob::Kind::max_pool:
    case blob::Kind::average_pool:
      return infer_pool(n, x, result);
    case blob::Kind::mean:
    case blob::Kind::sum:
      return infer_reduction(n, x, result);
    case blob::Kind::softmax:
      return result = x, n.numbers.empty() && x.rank > 0;
    case blob::Kind::concatenate:
      return infer_concatenate(n, in, result);
    case blob::Kind::slice:
      return infer_slice(n, x, result);
    case blob::Kind::transpose:
      return infer_transpose(n, x, result);
    case blob::Kind::reshape:
      return infer_reshape(n, x, result);
    case blob::Kind::pad:
      return infer_pad(n, x, result);
    case blob::Kind::deconvolution:
      return infer_deconvolution(n, in, result);
    case blob::Kind::resize_bilinear:
      return infer_resize(n, x, result);
    case blob::Kind::grouped_product:
      return n.numbers.size() == 1 && infer_grouped_product(in, result);
  }
  return false;
}

}  // namespace

bool is_countable(const Shape& s) {
  int64_t product = 1;
  if (s.rank > most_dimensions) return false;
  for (int i = 0; i < s.rank; ++i)
    if (s.sizes[i] < 1 || __builtin_mul_overflow(product, int64_t{s.sizes[i]}, &product) ||
        product > most_elements)
      return false;
  return true;
}

bool has_valid_bounds(const NodeView& n) {
  switch (n.kind) {
    case blob::Kind::unary:
    case blob::Kind::pad:
      return true;  // their parameters are something else
    case blob::Kind::binary:
    case blob::Kind::convolution:
    case blob::Kind::depthwise:
    case blob::Kind::fully_connected:
    case blob::Kind::max_pool:
    case blob::Kind::average_pool:
      return n.parameters.empty() ||
             (n.parameters.size() == 2 && n.parameters[0] < n.parameters[1]);
    default:
      return n.parameters.empty();
  }
}

bool infer_node(const NodeView& node, const Shape* const* inputs, Shape& result) {
  for (index_t i = 0; i < node.inputs.size(); ++i)
    if (inputs[i] != nullptr && !is_countable(*inputs[i])) return false;
  result = {};
  if (!has_valid_bounds(node) || !infer_kind(node, inputs, result) || !is_countable(result))
    return false;
  result.make_dense();
  return true;
}

}  // namespace taper::delegates::xnnpack
