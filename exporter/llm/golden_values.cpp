#include "taper/exporter/llm/golden_values.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/files.h"

namespace taper::llm {

double distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]});
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  return most;
}

double largest(std::span<const float> a) {
  double most = 0;
  for (const float x : a) most = std::max(most, std::abs(double{x}));
  return most;
}

Compared compare_states(const std::string& name, const eager::Tensor& got,
                        const eager::Tensor& want, double tolerance) {
  const std::vector<float> a = got.to_vector<float>(), b = want.to_vector<float>();
  return {name, distance(a, b), tolerance * std::max(largest(b), 1e-30)};
}

const io::Array& GoldenValues::array(const std::string& name, DType dtype) const {
  const io::Array& a = file_.at(name);
  if (a.dtype != dtype)
    throw ExportError("golden results: " + name + " is " + a.describe() + ", not " +
                      name_of(dtype));
  return a;
}

eager::Tensor GoldenValues::tensor(const std::string& name) const {
  return eager::tensor_of(file_.at(name));
}

std::vector<int64_t> GoldenValues::ids(const std::string& name) const {
  const auto all = array(name, DType::i64).values<int64_t>();
  return {all.begin(), all.end()};
}

std::pair<size_t, size_t> GoldenValues::rows(const std::string& name) const {
  const io::Array& a = file_.at(name);
  const auto count = a.sizes.empty() ? size_t{1} : static_cast<size_t>(a.sizes[0]);
  size_t elements = 1;
  for (const int64_t size : a.sizes) elements *= static_cast<size_t>(size);
  return {count, elements / std::max<size_t>(count, 1)};
}

Compared GoldenValues::logits(const std::string& name, const eager::Tensor& got) const {
  return {name, distance(got.to_vector<float>(), floats(name)), logit_tolerance};
}

Compared GoldenValues::tokens(const std::string& name, const std::vector<int64_t>& got) const {
  const std::vector<int64_t> want = ids(name);
  double wrong = want.size() == got.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) wrong += got[i] != want[i];
  return {name, wrong, 0};
}

}  // namespace taper::llm
