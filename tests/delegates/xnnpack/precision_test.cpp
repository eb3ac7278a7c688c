// Parts that compute in f16, beside the same in f32.
#include <thread>

#include "delegated.h"
#include "taper/examples/support/allocations.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr float f16_tolerance = 1e-2f;

/// A program for the backend of f16.
struct InHalves {
  template <class F>
  InHalves(F&& function, const eager::Dims& sizes, bool require = true) {
    ExportOptions options;
    options.exact = false;
    options.backend = f16_delegate().name(), options.require_backend = require;
    Exporter exporter;
    exporter.method("forward", function, {input("x", sizes)});
    file = exporter.write(options, &report);
  }
  Module load(const Threads* threads = nullptr) const {
    ModuleOptions options;
    options.backends = {&f16_backend()}, options.threads = threads;
    return Module::load(file, options).value();
  }
  std::vector<std::byte> file;
  emit::Report report;
};

template <class F>
std::vector<float> in_f32(F&& function, const Tensor& x) {
  const std::vector<index_t> sizes = sizes_of(x);
  Delegated program(function, {sizes.begin(), sizes.end()});
  Result<Module> module = program.load();
  return call(module.value(), x);
}
template <class F>
std::vector<float> in_f16(F&& function, const Tensor& x) {
  const std::vector<index_t> sizes = sizes_of(x);
  const InHalves program(function, {sizes.begin(), sizes.end()});
  Module module = program.load();
  return call(module, x);
}

const Tensor filter = random_tensor({8, 3, 3, 3}, 1), depthwise = random_tensor({8, 1, 3, 3}, 2),
             weight = random_tensor({16, 8}, 3), offsets = random_tensor({16}, 4);

Tensor network(const Tensor& x) {
  const Tensor y = relu(conv2d(x, filter, {}, 2, 1));
  const Tensor z = hardswish(conv2d(y, depthwise, {}, 1, 1, 1, 8));
  return softmax(linear(mean(z, {2, 3}, false), weight) + offsets, -1);
}

/// Whether this processor has f16. Without it the backend computes in f32.
bool has_f16() {
  static const bool has = [] {
    const Tensor x = random_tensor({2, 8}, 5);
    const auto product = [](const Tensor& y) { return linear(y, weight); };
    return in_f16(product, x) != in_f32(product, x);
  }();
  return has;
}

template <class F>
void expect_rounded(F&& function, const Tensor& x) {
  const std::vector<float> have = in_f16(function, x), want = in_f32(function, x);
  expect_close(have, function(x).template to_vector<float>(), f16_tolerance);
  EXPECT_EQ(have == want, !has_f16());
}

TEST(xnnpack_f16, is_near_f32_and_not_the_same) {
  expect_rounded(network, random_tensor({2, 3, 33, 31}, 6));
}

TEST(xnnpack_f16, takes_every_kind_of_node) {
  const Tensor x = random_tensor({1, 8, 12, 12}, 7);
  const auto after_product = [](auto more) {
    return [=](const Tensor& y) {
      return more(conv2d(y, random_tensor({8, 8, 1, 1}, 8, -0.5f, 0.5f)));
    };
  };
  expect_rounded(after_product([](const Tensor& y) { return max_pool2d(y, 3, 2, 1); }), x);
  expect_rounded(after_product([](const Tensor& y) { return avg_pool2d(y, 2, 2); }), x);
  expect_rounded(after_product([](const Tensor& y) { return sum(y, {2, 3}, true); }), x);
  expect_rounded(after_product([](const Tensor& y) { return sigmoid(tanh(y)) * y - y; }), x);
  expect_rounded(after_product([](const Tensor& y) { return elu(y) + leaky_relu(y, 0.1); }), x);
  expect_rounded(after_product([](const Tensor& y) { return (abs(y) + 0.5) / (y * y + 1.0); }), x);
  expect_rounded(
      after_product([](const Tensor& y) { return clamp(ceil(y) * floor(y) + y, -1, 1); }), x);
  expect_rounded(after_product([](const Tensor& y) { return cat({y, -y, y * 2.0}, 1); }), x);
  expect_rounded(after_product([](const Tensor& y) { return slice(y, 2, 3, 9); }), x);
  expect_rounded(after_product([](const Tensor& y) { return permute(y, {0, 2, 3, 1}); }), x);
  const Tensor slope = random_tensor({8, 1, 1}, 9);  // the library rounds this constant itself
  expect_rounded(after_product([&](const Tensor& y) { return maximum(y, slope) * slope; }), x);
}

TEST(xnnpack_f16, multiplies_what_it_has_computed) {
  const auto attention = [](const Tensor& x) {
    const Tensor q = linear(x, random_tensor({16, 16}, 10)),
                 k = linear(x, random_tensor({16, 16}, 11));
    return matmul(softmax(matmul(q, transpose(k, -1, -2)) * 0.25, -1), x);
  };
  expect_rounded(attention, random_tensor({2, 9, 16}, 12));
}

TEST(xnnpack_f16, rounds_what_stands_around_functions_without_kernels) {
  const Tensor x = random_tensor({3, 8}, 13);
  const auto expect_around = [&](auto function) {
    const auto network = [&](const Tensor& y) {
      return linear(function(linear(y, random_tensor({8, 8}, 14))), weight);
    };
    const InHalves program(network, {3, 8}, false);
    EXPECT_EQ(program.report.methods[0].operators.at("taper::delegate"), 2);
    Module module = program.load();
    const std::vector<float> have = call(module, x), want = network(x).template to_vector<float>();
    expect_close(have, want, f16_tolerance);
    float worst = 0;
    for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(have[i] - want[i]));
    EXPECT_EQ(worst > 1e-5f, has_f16());
  };
  expect_around([](const Tensor& y) { return gelu(y); });
  expect_around([](const Tensor& y) { return exp(y); });
  expect_around([](const Tensor& y) { return log(abs(y) + 1.0); });
}

// The library makes zeros a part of the convolution, and would round the operand too late.
TEST(xnnpack_f16, reads_an_operand_beside_its_padding) {
  const auto padded = [](const Tensor& x) {
    return cat({conv2d(constant_pad_nd(x, {1, 1, 1, 1}), filter), conv2d(x, filter, {}, 1, 1)}, 1);
  };
  expect_close(in_f16(padded, random_tensor({1, 3, 9, 9}, 16)),
               padded(random_tensor({1, 3, 9, 9}, 16)).to_vector<float>(), f16_tolerance);
}

TEST(xnnpack_f16, packs_half_the_bytes_once) {
  const Tensor large = random_tensor({512, 1024}, 17);
  const auto product = [&](const Tensor& x) { return linear(x, large); };
  const auto f32_bytes = [&] {
    Delegated program(product, {2, 1024});
    const size_t before = memory_use().bytes;
    Result<Module> module = program.load();
    call(module.value(), random_tensor({2, 1024}, 18));
    return memory_use().bytes - before;
  };
  const InHalves program(product, {2, 1024});
  const size_t before = memory_use().bytes;
  Module one = program.load();
  const std::vector<float> want = call(one, random_tensor({2, 1024}, 18));
  const size_t of_one = memory_use().bytes - before;
  Module other = program.load();
  EXPECT_EQ(call(other, random_tensor({2, 1024}, 18)), want);
  EXPECT_LT(memory_use().bytes - before, of_one + of_one / 4);
  if (has_f16()) {
    EXPECT_LT(of_one, f32_bytes() * 6 / 10);
  }
}

TEST(xnnpack_f16, gives_the_same_bits_in_two_threads_and_two_sessions) {
  const Tensor x = random_tensor({4, 3, 33, 31}, 19);
  const InHalves program(network, {4, 3, 33, 31});
  Module alone = program.load();
  const std::vector<float> want = call(alone, x);
  ThreadPool pool(2);
  Module with_threads = program.load(pool.threads());
  EXPECT_EQ(call(with_threads, x), want);
  Module session = program.load();
  std::vector<float> have;
  std::thread other([&] { have = call(session, x); });
  EXPECT_EQ(call(alone, x), want);
  other.join();
  EXPECT_EQ(have, want);
}

TEST(xnnpack_f16, allocates_nothing_for_sizes_that_it_has_seen) {
  const InHalves program(network, {Dim::symbol("n", 1, 8), 3, 16, 16});
  Module module = program.load();
  Result<Method> method = module.method("forward");
  ASSERT_TRUE(method.ok());
  const std::vector<float> x(8 * 3 * 16 * 16, 0.5f);
  const auto run = [&](index_t rows) {
    ASSERT_EQ(method.value().set_input(0, x.data(), {rows, 3, 16, 16}), Error::ok);
    ASSERT_EQ(method.value().execute(), Error::ok);
  };
  for (const index_t rows : {8, 3, 1}) run(rows);
  const size_t before = allocation_count(), in_library = memory_use().allocations;
  for (const index_t rows : {8, 8, 3, 1, 3, 8}) run(rows);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(memory_use().allocations, in_library);
}

TEST(xnnpack_f16, gives_its_memory_back) {
  const InHalves program(network, {1, 3, 16, 16});
  const auto once = [&] {
    Module module = program.load();
    call(module, random_tensor({1, 3, 16, 16}, 20));
  };
  once();
  const size_t bytes = memory_use().bytes;
  for (int i = 0; i < 100; ++i) once();
  EXPECT_EQ(memory_use().bytes, bytes);
}

struct Sources final : NodeObserver {
  void ran(const Node* nodes, size_t count) override {
    for (size_t i = 0; i < count; ++i) lines.emplace_back(nodes[i].source);
  }
  uint64_t now_us() const override { return 0; }
  std::vector<std::string> lines;
};

TEST(xnnpack_f16, tells_the_times_of_nodes_with_their_lines) {
  const auto twice = [](const Tensor& x) {  // rounded once for each operand of the product
    const Tensor y = clamp(conv2d(x * x, filter), -1, 1);
    return y + tanh(y);
  };
  Sources sources;
  f16_backend().observe(&sources);
  (void)in_f16(twice, random_tensor({1, 3, 9, 9}, 21));
  f16_backend().observe(nullptr);
  size_t named = 0;
  for (const std::string& line : sources.lines) named += line.empty() ? 0 : 1;
  EXPECT_GE(named, 4u);
  EXPECT_EQ(sources.lines.size() > named, has_f16());
}

}  // namespace
}  // namespace taper::delegates::xnnpack
