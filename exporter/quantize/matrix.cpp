#include "taper/exporter/quantize/matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "taper/exporter/base/error.h"
#include "taper/exporter/quantize/calibration.h"
#include "taper/exporter/quantize/fit.h"
#include "taper/exporter/quantize/hqq.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantize {
namespace {

constexpr size_t readable_behind = 64;  // what kernels may read behind a constant

double decibels(double signal, double noise) {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

/// The bytes of a weight in blocks, row by row.
class Writer {
 public:
  Writer(const Matrix& w, const BlockFormat& format, const Hessian* hessian)
      : w_(w),
        format_(format),
        hessian_(hessian),
        bytes_(std::make_shared<std::vector<std::byte>>(size() + readable_behind)) {
    if (hessian != nullptr) importance_ = hessian->diagonal();
  }

  void write(Method method) {
    switch (method) {
      case Method::hqq:
        return write_half_quadratic();
      case Method::gptq:
      case Method::gptq_act_order:
        return write_gptq(method == Method::gptq_act_order);
      default:
        for_each_block([&](std::span<const float> w, int64_t first, std::byte* block) {
          fit_block(format_, method == Method::nearest ? Fit::range : Fit::mse, w,
                    importance(first), block);
          round_block(format_, w, block);
        });
    }
  }

  std::shared_ptr<const ir::Payload> payload() const {
    return std::make_shared<const ir::Payload>(
        ir::Payload{DType::f32,
                    {w_.rows, w_.depth},
                    std::shared_ptr<const std::byte>(bytes_, bytes_->data()),
                    size(),
                    format_.layout});
  }

 private:
  int64_t blocks_of_row() const { return w_.depth / format_.elements; }
  size_t size() const {
    return static_cast<size_t>(w_.rows * blocks_of_row()) * static_cast<size_t>(format_.bytes);
  }
  std::byte* block(int64_t row, int64_t column) const {
    return bytes_->data() + (row * blocks_of_row() + column / format_.elements) * format_.bytes;
  }
  std::span<const float> importance(int64_t first) const {
    if (importance_.empty()) return {};
    return std::span(importance_)
        .subspan(static_cast<size_t>(first), static_cast<size_t>(format_.elements));
  }

  template <class F>
  void for_each_block(const F& body) {
    for (int64_t r = 0; r < w_.rows; ++r)
      for (int64_t c = 0; c < w_.depth; c += format_.elements)
        body(w_.row(r).subspan(static_cast<size_t>(c), static_cast<size_t>(format_.elements)), c,
             block(r, c));
  }

  void write_half_quadratic() {
    const Hqq found = half_quadratic(w_.elements, format_.shared, format_.highest);
    const auto grids = static_cast<size_t>(format_.grids());
    std::vector<BlockGrid> wanted(grids);
    size_t next = 0;
    for_each_block([&](std::span<const float> w, int64_t, std::byte* block) {
      for (BlockGrid& g : wanted) {
        g = {found.scale[next], -found.zero[next] * found.scale[next]};
        ++next;
      }
      write_grids(format_, wanted, block);
      round_block(format_, w, block);
    });
  }

  void write_gptq(bool act_order) {
    std::vector<float> w = w_.elements;
    std::vector<int8_t> values(w.size());
    const auto grids_of_row = static_cast<size_t>(w_.depth / format_.shared);
    std::vector<BlockGrid> grids(static_cast<size_t>(w_.rows) * grids_of_row);
    const Rounding rounding{
        format_.elements,
        [&](int64_t row, int64_t first, std::span<const float> present) {
          fit_block(format_, Fit::mse, present, importance(first), block(row, first));
          read_grids(format_, block(row, first),
                     std::span(grids).subspan(static_cast<size_t>(row) * grids_of_row +
                                                  static_cast<size_t>(first / format_.shared),
                                              static_cast<size_t>(format_.grids())));
        },
        [&](int64_t row, int64_t column, float x) {
          const BlockGrid& g = grids[static_cast<size_t>(row) * grids_of_row +
                                     static_cast<size_t>(column / format_.shared)];
          // a weight that was pruned stays zero; others make up for it
          if (w_.row(row)[static_cast<size_t>(column)] == 0) x = 0;
          const int q = nearest(format_, g, x);
          values[static_cast<size_t>(row * w_.depth + column)] = static_cast<int8_t>(q);
          return value_of(format_, g, q);
        }};
    gptq(w, w_.rows, *hessian_, {.act_order = act_order}, rounding);
    for (int64_t r = 0; r < w_.rows; ++r)
      for (int64_t c = 0; c < w_.depth; c += format_.elements)
        write_values(format_,
                     std::span<const int8_t>(values).subspan(static_cast<size_t>(r * w_.depth + c),
                                                             static_cast<size_t>(format_.elements)),
                     block(r, c));
  }

  const Matrix& w_;
  const BlockFormat& format_;
  const Hessian* hessian_;
  std::vector<float> importance_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

std::vector<float> decoded(const ir::Payload& payload, size_t count) {
  std::vector<float> values(count);
  quantized::dequantize(payload.layout, payload.bytes.get(), static_cast<index_t>(count),
                        values.data());
  return values;
}

Method chosen(Method method, const BlockFormat& format, const Hessian* hessian) {
  if (method != Method::best) return method;
  if (format.layout == Layout::q8_0) return Method::nearest;  // it costs nothing that one can see
  return hessian != nullptr ? Method::gptq : Method::mse;
}

void count_zeros(const Matrix& w, const std::vector<float>& values, Measure& m) {
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.depth - w.padding; ++c) {
      const auto i = static_cast<size_t>(r * w.depth + c);
      if (w.elements[i] != 0) continue;
      ++m.zeros;
      m.lost += values[i] != 0;
    }
}

}  // namespace

Measure measure(const Matrix& w, const std::vector<float>& values, const Hessian* hessian) {
  Matrix e{w.rows, w.depth, values};
  Measure m;
  for (size_t i = 0; i < e.elements.size(); ++i) {
    const double x = w.elements[i], y = e.elements[i];
    m.signal += x * x, m.decoded += y * y, m.product += x * y, m.noise += (y - x) * (y - x);
    e.elements[i] -= w.elements[i];
    m.most = std::max(m.most, std::fabs(e.elements[i]));
  }
  count_zeros(w, values, m);
  for (const float d : e.elements) {
    const double place = m.most > 0 ? (static_cast<double>(d) / m.most + 1) / 2 : 0.5;
    ++m.histogram[static_cast<size_t>(std::min(place * Measure::bins, Measure::bins - 1.0))];
  }
  if (hessian != nullptr)
    m.output_signal = result_energy(w.elements, *hessian),
    m.output_noise = result_energy(e.elements, *hessian);
  return m;
}

double Measure::sqnr_db() const { return decibels(signal, noise); }
double Measure::output_sqnr_db() const { return decibels(output_signal, output_noise); }
double Measure::cosine() const {
  const double sizes = std::sqrt(signal) * std::sqrt(decoded);
  return sizes > 0 ? product / sizes : signal == decoded ? 1 : 0;
}

Quantized quantize_matrix(const Matrix& w, Layout layout, Method method, const Hessian* hessian) {
  const BlockFormat& format = *find_format(layout);
  const Method taken = chosen(method, format, hessian);
  if (hessian == nullptr && learns(taken))
    throw ExportError("the method gptq needs calibration data that reach this weight");
  Writer writer(w, format, hessian);
  writer.write(taken);
  Quantized result{writer.payload(), {}, taken, 0};
  result.measure = measure(w, decoded(*result.payload, w.elements.size()), hessian);
  return result;
}

Quantized quantize_stack(const Matrix& w, int64_t matrices, Layout layout, Method method,
                         std::span<const std::shared_ptr<const Hessian>> hessians) {
  if (hessians.empty()) return quantize_matrix(w, layout, method, nullptr);
  const int64_t rows = w.rows / matrices;
  const auto elements = static_cast<size_t>(rows * w.depth);
  auto bytes = std::make_shared<std::vector<std::byte>>();
  Measure learned;
  Quantized result;
  for (int64_t m = 0; m < matrices; ++m) {
    const Hessian* hessian = hessians[static_cast<size_t>(m)].get();
    const auto first = w.elements.begin() + static_cast<std::ptrdiff_t>(m * rows * w.depth);
    const Matrix one{rows, w.depth, {first, first + static_cast<std::ptrdiff_t>(elements)}};
    const Quantized part = quantize_matrix(
        one, layout, hessian == nullptr && learns(method) ? Method::mse : method, hessian);
    bytes->insert(bytes->end(), part.payload->bytes.get(),
                  part.payload->bytes.get() + part.payload->size_bytes);
    learned.output_signal += part.measure.output_signal;
    learned.output_noise += part.measure.output_noise;
    if (hessian == nullptr) ++result.unreached;
    if (hessian != nullptr) result.method = part.method;
  }
  const size_t size = bytes->size();
  bytes->resize(size + readable_behind);
  result.payload = std::make_shared<const ir::Payload>(
      ir::Payload{DType::f32,
                  {w.rows, w.depth},
                  std::shared_ptr<const std::byte>(bytes, bytes->data()),
                  size,
                  layout});
  result.measure = measure(w, decoded(*result.payload, w.elements.size()), nullptr);
  result.measure.output_signal = learned.output_signal;
  result.measure.output_noise = learned.output_noise;
  return result;
}

bool learns(Method method) { return method == Method::gptq || method == Method::gptq_act_order; }

std::string name_of(Method method) {
  constexpr const char* names[] = {"best", "nearest", "mse", "hqq", "gptq", "gptq-act-order"};
  return names[static_cast<size_t>(method)];
}

}  // namespace taper::quantize
