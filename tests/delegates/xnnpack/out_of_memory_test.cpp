// What happens when the memory of the library ends. The process has a memory of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

/// The heap, which has no bytes for one allocation, or for that and all later ones.
class FailingHeap final : public Memory {
 public:
  void* allocate(size_t bytes) override {
    const int64_t left = bytes < least_ ? INT64_MAX : left_--;
    if (left == 0 || (left < 0 && is_empty_)) return nullptr;
    bytes_ += bytes;
    return ::operator new(bytes, alignment, std::nothrow);
  }
  void release(void* memory, size_t bytes) override {
    bytes_ -= bytes;
    ::operator delete(memory, alignment);
  }
  /// Fails after so many allocations from now on.
  void fail_after(int64_t allocations, bool and_all_later) {
    left_ = allocations, is_empty_ = and_all_later;
  }
  /// Smaller allocations neither fail nor count.
  void fail_from(size_t bytes) { least_ = bytes; }
  bool has_failed() const { return left_ < 0; }
  void fail_no_more() { left_ = INT64_MAX; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t alignment{64};
  std::atomic<int64_t> left_{INT64_MAX};
  std::atomic<bool> is_empty_{false};
  std::atomic<size_t> least_{0};
  std::atomic<size_t> bytes_{0};
};

FailingHeap& heap() {
  static FailingHeap heap;
  return heap;
}
XnnpackBackend& failing_backend(Precision precision = Precision::f32) {
  static XnnpackBackend backend(heap()), f16_backend(heap(), Precision::f16);
  return precision == Precision::f16 ? f16_backend : backend;
}

// Two parts: cumsum stays with the kernels.
Tensor network(const Tensor& x) {
  const Tensor first = random_tensor({8, 3, 3, 3}, 1), second = random_tensor({8, 8, 3, 3}, 2);
  const auto padded = [](const Tensor& y, const Tensor& weight) {
    return relu(conv2d(y, weight, {}, {1, 1}, {1, 1}));
  };
  return padded(sigmoid(padded(cumsum(padded(x, first), 0), second)), second);
}

// One part of many nodes.
Tensor deep_network(const Tensor& x) {
  Tensor y = conv2d(x, random_tensor({2, 3, 1, 1}, 4));
  for (int i = 0; i < 1000; ++i) y = tanh(sigmoid(y));
  return y;
}

// A product of a mixture of experts is made of operators, not of a graph. The ends come from x.
Tensor experts(const Tensor& x) {
  static const Tensor matrices = random_tensor({40, 16, 24}, 7);
  const Tensor sizes = abs(reshape(narrow(x, 0, 0, 3), {48}));
  const Tensor ends = minimum(cumsum(narrow(sizes, 0, 0, 40), 0), full({40}, 25.0));
  return grouped_mm(x, matrices, ends.to(DType::i64));
}

template <class F>
std::vector<std::byte> program(F&& function, const eager::Dims& sizes,
                               Precision precision = Precision::f32) {
  static const XnnpackDelegate delegate(&failing_backend()),
      f16_delegate(&failing_backend(Precision::f16), Precision::f16);
  partition::hand_in(delegate);
  partition::hand_in(f16_delegate);
  ExportOptions options;
  options.exact = false, options.backend = name_of(precision), options.quiet = true;
  Exporter exporter;
  exporter.method("forward", function, {input("x", sizes)});
  return exporter.write(options);
}

template <class F>
void expect_reports_and_then_results(F&& function, const Tensor& x, int least_failures,
                                     bool and_all_later, Precision precision = Precision::f32) {
  const std::vector<index_t> sizes = sizes_of(x);
  const std::vector<std::byte> file = program(function, {sizes.begin(), sizes.end()}, precision);
  const std::vector<float> elements = x.to_vector<float>(),
                           want = function(x).template to_vector<float>();
  const float tolerance = precision == Precision::f16 ? 1e-2f : 1e-4f;
  ModuleOptions options;
  options.backends = {&failing_backend(precision)};
  bool has_failed = true;
  int64_t failures = 0;
  size_t bytes = 0;
  for (int64_t n = 0; has_failed; ++n) {
    SCOPED_TRACE(n);
    Module module = Module::load(file, options).value();
    if (n == 0) bytes = heap().bytes();
    EXPECT_EQ(heap().bytes(), bytes);
    heap().fail_after(n, and_all_later);
    const auto y = module.execute("forward", {{elements.data(), sizes}});
    has_failed = heap().has_failed(), heap().fail_no_more();
    if (!y.ok()) {
      ++failures;
      EXPECT_EQ(y.error(), Error::out_of_memory) << module.message();
    }
    expect_close(call(module, x), want, tolerance);
    ASSERT_LT(n, 1000);
  }
  EXPECT_GE(failures, least_failures);
}

TEST(xnnpack_out_of_memory, of_one_allocation_is_reported_and_the_next_call_computes) {
  expect_reports_and_then_results(network, random_tensor({1, 3, 40, 24}, 3), 20, false);
}
TEST(xnnpack_out_of_memory, of_all_allocations_is_reported_and_the_next_call_computes) {
  expect_reports_and_then_results(network, random_tensor({1, 3, 40, 24}, 3), 20, true);
}
TEST(xnnpack_out_of_memory, of_a_grouped_product_is_reported_and_the_next_call_computes) {
  for (const bool and_all_later : {false, true})
    expect_reports_and_then_results(experts, random_tensor({30, 16}, 8), 80, and_all_later);
}
TEST(xnnpack_out_of_memory, of_f16_is_reported_and_the_next_call_computes) {
  for (const bool and_all_later : {false, true})
    expect_reports_and_then_results(network, random_tensor({1, 3, 40, 24}, 3), 20, and_all_later,
                                    Precision::f16);
}
TEST(xnnpack_out_of_memory, of_other_sizes_is_reported) {
  const auto pooled = [](const Tensor& x) {
    const Tensor y = conv2d(x, random_tensor({6, 3, 3, 3}, 5), {}, 1, 1);
    return avg_pool2d(y, 3, 2, 1, false, false);
  };
  const std::vector<std::byte> file = program(pooled, {1, 3, Dim::symbol("height", 4, 64), 9});
  ModuleOptions options;
  options.backends = {&failing_backend()};
  bool has_failed = true;
  for (int64_t n = 0; has_failed; ++n) {
    SCOPED_TRACE(n);
    Module module = Module::load(file, options).value();
    for (const int64_t height : {8, 16, 32}) {
      const Tensor x = random_tensor({1, 3, height, 9}, 6);
      const std::vector<float> elements = x.to_vector<float>();
      if (height == 16) {
        heap().fail_after(n, false);
        (void)module.execute("forward", {{elements.data(), sizes_of(x)}});
        has_failed = heap().has_failed(), heap().fail_no_more();
      }
      expect_close(call(module, x), pooled(x).to_vector<float>());
    }
    ASSERT_LT(n, 1000);
  }
}

TEST(xnnpack_out_of_memory, of_a_part_of_many_nodes_is_reported) {
  heap().fail_from(size_t{1} << 15);
  for (const bool and_all_later : {false, true})
    expect_reports_and_then_results(deep_network, random_tensor({1, 3, 4, 5}, 3), 3, and_all_later);
  heap().fail_from(0);
}

}  // namespace
}  // namespace taper::delegates::xnnpack
