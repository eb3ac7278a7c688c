// Prints tensors like PyTorch: four digits, one width for all elements, long tensors abbreviated.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <sstream>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/tensor.h"
#include "taper/kernels/float8.h"

namespace taper::eager {
namespace {

constexpr int64_t summarize_above = 1000, edge_items = 3;
constexpr size_t line_width = 80;

/// The format of all elements of one tensor.
struct Format {
  bool floating = false, whole = false, scientific = false, boolean = false;
  int width = 0;

  std::string plain(double v) const {
    if (boolean) return v != 0 ? "True" : "False";
    char text[64];
    if (!floating) {
      std::snprintf(text, sizeof text, "%.0f", v);
      return text;
    }
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    std::snprintf(text, sizeof text, scientific ? "%.4e" : whole ? "%.0f." : "%.4f", v);
    return text;
  }
  std::string operator()(double v) const {
    const std::string text = plain(v);
    return std::string(static_cast<size_t>(std::max(0, width - static_cast<int>(text.size()))),
                       ' ') +
           text;
  }
};

Format format_for(DType dtype, const std::vector<double>& shown) {
  Format f;
  f.floating = is_floating(dtype) || is_complex(dtype) || is_float8(dtype);
  f.boolean = dtype == DType::boolean;
  double least = INFINITY, most = 0;
  f.whole = true;
  for (const double v : shown) {
    if (!std::isfinite(v) || v == 0) continue;
    least = std::min(least, std::abs(v)), most = std::max(most, std::abs(v));
    if (v != std::ceil(v)) f.whole = false;
  }
  if (f.floating && most > 0)
    f.scientific = most / least > 1000 || most > 1e8 || (!f.whole && least < 1e-4);
  if (f.scientific && f.whole && most / least <= 1000 && most <= 1e8) f.scientific = false;
  for (const double v : shown) f.width = std::max(f.width, static_cast<int>(f.plain(v).size()));
  return f;
}

/// The elements of a tensor as numbers; of a complex one, its real or its imaginary parts.
std::vector<double> numbers_of(const Tensor& dense, bool imaginary) {
  if (!is_complex(dense.dtype())) return dense.to(DType::f64).to_vector<double>();
  std::vector<double> parts;
  for (const Complex64 z : dense.to_vector<Complex64>())
    parts.push_back(static_cast<double>(imaginary ? z.imag : z.real));
  return parts;
}

/// Visits the elements that are shown, in order. Calls `gap` where some are left out.
class Printer {
 public:
  explicit Printer(const Tensor& dense)
      : dtype_(dense.dtype()),
        shape_(dense.impl()->shape),
        values_(numbers_of(dense, false)),
        exact_(exact_texts(dense)) {
    summarize_ = shape_.numel() > summarize_above;
    std::vector<double> shown;
    collect(values_, 0, 0, shown);
    format_ = format_for(dtype_, shown);
    if (is_complex(dtype_)) {
      imaginary_ = numbers_of(dense, true);
      shown.clear();
      collect(imaginary_, 0, 0, shown);
      imaginary_format_ = format_for(dtype_, shown);
    }
    for (const std::string& text : exact_)
      format_.width = std::max(format_.width, summarize_ ? 0 : static_cast<int>(text.size()));
  }
  std::string run(size_t indent) const {
    if (shape_.rank > 0) return block(0, 0, indent);
    return !exact_.empty()      ? exact_[0]
           : imaginary_.empty() ? format_.plain(values_[0])
                                : element(0);
  }

 private:
  template <class T>
  static std::vector<std::string> texts_of(const Tensor& t) {
    std::vector<std::string> texts;
    for (const T v : t.to_vector<T>()) texts.push_back(std::to_string(v));
    return texts;
  }
  /// The digits of wide integers. A double would print others beyond 2^53.
  static std::vector<std::string> exact_texts(const Tensor& t) {
    if (t.dtype() == DType::i64) return texts_of<int64_t>(t);
    if (t.dtype() == DType::u64) return texts_of<uint64_t>(t);
    return {};
  }
  std::vector<index_t> shown_indices(int dim) const {
    std::vector<index_t> list;
    const index_t n = shape_.sizes[dim];
    for (index_t i = 0; i < n; ++i) {
      if (summarize_ && n > 2 * edge_items && i == edge_items) {
        list.push_back(-1);
        i = n - edge_items - 1;
        continue;
      }
      list.push_back(i);
    }
    return list;
  }
  void collect(const std::vector<double>& values, int dim, index_t at,
               std::vector<double>& shown) const {
    if (dim == shape_.rank) {
      shown.push_back(values[static_cast<size_t>(at)]);
      return;
    }
    for (const index_t i : shown_indices(dim))
      if (i >= 0) collect(values, dim + 1, at + i * shape_.strides[dim], shown);
  }
  std::string element(index_t at) const {
    if (!imaginary_.empty()) {
      const std::string text = imaginary_format_.plain(imaginary_[static_cast<size_t>(at)]) + "j";
      return format_(values_[static_cast<size_t>(at)]) + (text[0] == '-' ? "" : "+") + text;
    }
    if (exact_.empty()) return format_(values_[static_cast<size_t>(at)]);
    const std::string& text = exact_[static_cast<size_t>(at)];
    return std::string(
               static_cast<size_t>(std::max(0, format_.width - static_cast<int>(text.size()))),
               ' ') +
           text;
  }
  int width() const {
    return format_.width + (imaginary_.empty() ? 0 : imaginary_format_.width + 1);
  }
  std::string line(index_t at, size_t indent) const {
    const size_t per_line =
        std::max<size_t>(1, (line_width - indent) / static_cast<size_t>(width() + 2));
    std::string text = "[";
    size_t n = 0;
    for (const index_t i : shown_indices(shape_.rank - 1)) {
      if (n > 0) text += n % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      text += i < 0 ? " ..." : element(at + i * shape_.strides[shape_.rank - 1]);
      ++n;
    }
    return text + "]";
  }
  std::string block(int dim, index_t at, size_t indent) const {
    if (dim == shape_.rank - 1) return line(at, indent);
    std::string text = "[";
    const std::string separator = "," +
                                  std::string(static_cast<size_t>(shape_.rank - dim - 1), '\n') +
                                  std::string(indent + 1, ' ');
    bool first = true;
    for (const index_t i : shown_indices(dim)) {
      if (!first) text += separator;
      text += i < 0 ? "..." : block(dim + 1, at + i * shape_.strides[dim], indent + 1);
      first = false;
    }
    return text + "]";
  }

  DType dtype_;
  Shape shape_;
  std::vector<double> values_, imaginary_;  // of complex numbers, the parts
  std::vector<std::string> exact_;
  bool summarize_ = false;
  Format format_, imaginary_format_;
};

const char* torch_name(DType d) {
  constexpr const char* names[dtype_count] = {
      "bool",        "uint8",    "int8",    "int16",   "int32",     "int64",
      "float16",     "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn",
      "float8_e5m2", "uint16",   "uint32",  "uint64"};
  return names[static_cast<int>(d)];
}

}  // namespace

bool same_sizes(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Dim x, Dim y) { return same(x, y); });
}
std::string to_string(const Dims& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + sizes[i].to_string();
  return text + ")";
}

std::string Tensor::to_string() const {
  if (!defined()) return "tensor(undefined)";
  if (is_traced())
    return "tensor(traced " + std::string(taper::name_of(dtype())) + eager::to_string(sizes()) +
           ")";
  NoGrad guard;
  const bool empty = impl_->shape.numel() == 0;
  std::string text =
      "tensor(" + (empty ? std::string("[]") : Printer(contiguous(Location{})).run(7));
  if (empty && rank() > 1) text += ", size=" + eager::to_string(sizes());
  const bool is_default = dtype() == DType::f32 || dtype() == DType::i64 ||
                          dtype() == DType::boolean || dtype() == DType::c64;
  if (!is_default || (empty && dtype() != DType::f32))
    text += std::string(", dtype=") + torch_name(dtype());
  if (grad_fn())
    text += ", grad_fn=<" + grad_fn()->name() + ">";
  else if (requires_grad())
    text += ", requires_grad=True";
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.to_string();
}

}  // namespace taper::eager
