// The values of a file of golden results, and how far others are from them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/llm/golden.h"

namespace taper::llm {

/// The largest absolute difference. Not a number counts as infinitely far.
double distance(std::span<const float> a, std::span<const float> b);
double largest(std::span<const float> a);

inline constexpr double logit_tolerance = 2e-4, hidden_tolerance = 1e-4;

/// Hidden states: the tolerance is relative to the largest value.
Compared compare_states(const std::string& name, const eager::Tensor& got,
                        const eager::Tensor& want, double tolerance = hidden_tolerance);

class GoldenValues {
 public:
  explicit GoldenValues(const io::SafeTensors& file) : file_(file) {}

  bool has(const std::string& name) const { return file_.tensors.contains(name); }
  /// Throws ExportError if it is missing, or has another dtype.
  const io::Array& array(const std::string& name, DType dtype) const;
  eager::Tensor tensor(const std::string& name) const;
  std::vector<int64_t> ids(const std::string& name) const;
  std::span<const float> floats(const std::string& name) const {
    return array(name, DType::f32).values<float>();
  }
  /// How many rows `tensor` has, and the elements of each.
  std::pair<size_t, size_t> rows(const std::string& name) const;

  Compared logits(const std::string& name, const eager::Tensor& got) const;
  Compared states(const std::string& name, const eager::Tensor& got,
                  double tolerance = hidden_tolerance) const {
    return compare_states(name, got, tensor(name), tolerance);
  }
  Compared tokens(const std::string& name, const std::vector<int64_t>& got) const;

 private:
  const io::SafeTensors& file_;
};

}  // namespace taper::llm
