#include "compare.h"

#include <cmath>
#include <complex>
#include <limits>
#include <sstream>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/ops/movement.h"

namespace taper::golden {
namespace {

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }
template <class T>
auto shown(T x) {
  return +x;
}
std::string shown(std::complex<float> z) {
  return std::to_string(z.real()) + " + " + std::to_string(z.imag()) + "i";
}

template <class T>
std::string compare_elements(const Tensor& got, const Tensor& want, double rtol, double atol) {
  const std::vector<T> a = got.to_vector<T>(), b = want.to_vector<T>();
  size_t wrong = 0;
  std::ostringstream first;
  first.precision(std::is_same_v<T, float> ? 9 : 17);
  for (size_t i = 0; i < a.size(); ++i) {
    bool equal;
    if constexpr (std::is_integral_v<T>) {
      equal = a[i] == b[i];
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      const std::complex<double> x = a[i], y = b[i];
      equal = (same(x.real(), y.real()) && same(x.imag(), y.imag())) ||
              std::abs(x - y) <= atol + rtol * std::abs(y);
    } else {
      const double x = a[i], y = b[i];
      equal = same(x, y) || (std::isfinite(x) && std::isfinite(y) &&
                             std::fabs(x - y) <= atol + rtol * std::fabs(y));
    }
    if (equal) continue;
    if (wrong++ == 0) first << "element " << i << " is " << shown(a[i]) << ", not " << shown(b[i]);
  }
  if (wrong == 0) return "";
  return first.str() + " (" + std::to_string(wrong) + " of " + std::to_string(a.size()) +
         " differ)";
}

}  // namespace

std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  eager::NoGrad guard;
  if (!got.defined()) return "no result";
  if (got.dtype() != want.dtype())
    return std::string("dtype is ") + name_of(got.dtype()) + ", not " + name_of(want.dtype());
  if (eager::to_string(got.sizes()) != eager::to_string(want.sizes()))
    return "size is " + eager::to_string(got.sizes()) + ", not " + eager::to_string(want.sizes());
  switch (want.dtype()) {
    case DType::boolean:
      return compare_elements<int64_t>(eager::to(got, DType::i64), eager::to(want, DType::i64), 0,
                                       0);
    case DType::f32:
      return compare_elements<float>(got, want, rtol, atol);
    case DType::f64:
      return compare_elements<double>(got, want, rtol, atol);
    case DType::c64:
      return compare_elements<std::complex<float>>(got, want, rtol, atol);
    case DType::f16:
    case DType::bf16:
      return compare_elements<float>(eager::to(got, DType::f32), eager::to(want, DType::f32), rtol,
                                     atol);
    default:
      return compare_elements<int64_t>(eager::to(got, DType::i64), eager::to(want, DType::i64), 0,
                                       0);
  }
}

std::string difference(const CaseFile& file, const Tensor& got, const Json& want, double rtol,
                       double atol) {
  if (want.contains("none")) return got.defined() ? "a result where there is none" : "";
  if (want.contains("tensor")) return difference(got, file.tensor(want), rtol, atol);
  if (!want.contains("shape")) throw NotHere("a result that is not a tensor");
  if (!got.defined()) return "no result";
  if (got.dtype() != parse_dtype(want.at("dtype").get<std::string>()))
    return std::string("dtype is ") + name_of(got.dtype());
  const eager::Ints sizes = want.at("shape").get<eager::Ints>();
  return eager::to_string(got.sizes()) == eager::to_string(eager::Dims(sizes.begin(), sizes.end()))
             ? ""
             : "size is " + eager::to_string(got.sizes());
}

}  // namespace taper::golden
