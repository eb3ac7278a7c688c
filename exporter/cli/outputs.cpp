#include "taper/exporter/cli/outputs.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <numeric>
#include <ostream>
#include <span>

#include "taper/exporter/io/element.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

constexpr int64_t most_rows = 10, most_elements = 16;

bool is_scores(const io::Array& array) {
  const size_t rank = array.sizes.size();
  return array.dtype == DType::f32 && (rank == 1 || rank == 2) && array.sizes[rank - 1] >= 2;
}

std::vector<double> probabilities(std::span<const float> scores) {
  std::vector<double> p(scores.begin(), scores.end());
  const bool given = std::ranges::all_of(p, [](double x) { return x >= 0; }) &&
                     std::abs(std::accumulate(p.begin(), p.end(), 0.0) - 1) < 1e-3;
  if (given) return p;
  const double peak = *std::ranges::max_element(p);
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - peak);
  for (double& x : p) x /= sum;
  return p;
}

void print_best(std::ostream& out, std::span<const float> scores, const TopOptions& top) {
  const std::vector<double> p = probabilities(scores);
  std::vector<size_t> best(p.size());
  std::iota(best.begin(), best.end(), size_t{0});
  const auto shown =
      best.begin() + std::min<std::ptrdiff_t>(top.count, static_cast<std::ptrdiff_t>(best.size()));
  std::partial_sort(best.begin(), shown, best.end(),
                    [&](size_t a, size_t b) { return p[a] > p[b]; });
  for (const size_t i : std::span(best.begin(), shown)) {
    const std::string label = i < top.labels.size() ? "  " + top.labels[i] : "";
    out << "  " << std::setw(6) << i << std::fixed << std::setprecision(1) << std::setw(8)
        << 100 * p[i] << " %" << label << '\n';
  }
}

void print_elements(std::ostream& out, const io::Array& array) {
  const int64_t n = array.numel();
  const bool complex = is_complex(array.dtype);
  out << std::defaultfloat << std::setprecision(6);
  if (n <= most_elements) {
    out << "  ";
    for (int64_t i = 0; i < n; ++i) out << (i > 0 ? ", " : "") << io::element_text(array, i, 6);
  } else {
    double least = std::numeric_limits<double>::infinity(), greatest = -least, sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double x = complex ? std::abs(io::complex_element(array, i)) : io::element(array, i);
      least = std::min(least, x), greatest = std::max(greatest, x), sum += x;
    }
    out << (complex ? "  magnitudes from " : "  from ") << least << " to " << greatest << ", mean "
        << sum / static_cast<double>(n);
  }
  out << '\n';
}

}  // namespace

void print_output(std::ostream& out, const std::string& name, const io::Array& output,
                  const TopOptions& top) {
  out << io::printable(name) << ": " << output.describe() << '\n';
  if (top.count == 0 || !is_scores(output)) return print_elements(out, output);
  const size_t classes = static_cast<size_t>(output.sizes.back());
  const int64_t rows = output.numel() / static_cast<int64_t>(classes);
  for (int64_t row = 0; row < std::min(rows, most_rows); ++row) {
    if (rows > 1) out << "  row " << row << '\n';
    print_best(out, output.values<float>().subspan(static_cast<size_t>(row) * classes, classes),
               top);
  }
  if (rows > most_rows)
    out << "  and " << rows - most_rows << " more rows; --output FILE.npy keeps them all\n";
}

}  // namespace taper::cli
