// Products of a mixture of experts: ranges of rows, each with a matrix of its own.
#include <thread>

#include "delegated.h"
#include "taper/examples/support/allocations.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr int64_t groups = 4, inputs = 19, outputs = 33;
const Tensor matrices = random_tensor({groups, inputs, outputs}, 1);

/// A program of rows and ends, all of which XNNPACK takes.
struct Experts {
  explicit Experts(Dim rows, const char* backend_name = "xnnpack", DType ends = DType::i64) {
    ExportOptions options;
    options.exact = false, options.backend = backend_name, options.require_backend = true;
    Exporter exporter;
    exporter.method("forward",
                    [](const Tensor& x, const Tensor& e) { return grouped_mm(x, matrices, e); },
                    {input("x", {rows, inputs}), input("ends", {groups}, ends)});
    file = exporter.write(options, &report);
  }
  Module load(const Threads* threads = nullptr) const {
    ModuleOptions options;
    options.backends = {&backend(), &f16_backend()}, options.threads = threads;
    return Module::load(file, options).value();
  }
  std::vector<std::byte> file;
  emit::Report report;
};

template <class I>
std::vector<float> multiply(Module& module, const std::vector<float>& x,
                            const std::vector<I>& ends) {
  const auto rows = static_cast<index_t>(x.size()) / static_cast<index_t>(inputs);
  const auto results = module.execute(
      "forward", {{x.data(), {rows, static_cast<index_t>(inputs)}}, {ends.data(), {groups}}});
  if (!results.ok()) return ADD_FAILURE() << module.message(), std::vector<float>();
  const OwnedTensor& y = results.value()[0];
  return {y.data<float>(), y.data<float>() + y.numel()};
}

/// The sums in double.
template <class I>
std::vector<float> by_formula(const std::vector<float>& x, const std::vector<I>& ends) {
  const std::vector<float> w = matrices.to_vector<float>();
  const size_t rows = x.size() / inputs;
  std::vector<float> y(rows * outputs);
  size_t group = 0;
  for (size_t r = 0; r < rows; ++r) {
    while (group < groups && static_cast<size_t>(ends[group]) <= r) ++group;
    if (group == groups) break;  // no group has it: zeros
    for (size_t n = 0; n < outputs; ++n) {
      double sum = 0;
      for (size_t k = 0; k < inputs; ++k)
        sum += double{x[r * inputs + k]} * w[(group * inputs + k) * outputs + n];
      y[r * outputs + n] = static_cast<float>(sum);
    }
  }
  return y;
}

const std::vector<float> twelve_rows = random_tensor({12, inputs}, 2).to_vector<float>();

TEST(xnnpack_grouped_product, multiplies_the_rows_of_each_group_with_its_matrix) {
  delegate();
  const Experts program(12);
  Module module = program.load();
  for (const std::vector<int64_t>& ends : std::vector<std::vector<int64_t>>{{3, 6, 9, 12},
                                                                            {0, 12, 12, 12},
                                                                            {1, 1, 5, 12},
                                                                            {12, 12, 12, 12},
                                                                            {2, 3, 5, 7},
                                                                            {0, 0, 0, 0}})
    expect_close(multiply(module, twelve_rows, ends), by_formula(twelve_rows, ends));
}

TEST(xnnpack_grouped_product, reads_ends_of_32_bits) {
  delegate();
  const Experts program(12, "xnnpack", DType::i32);
  Module module = program.load();
  const std::vector<int32_t> ends{1, 4, 4, 11};
  expect_close(multiply(module, twelve_rows, ends), by_formula(twelve_rows, ends));
}

TEST(xnnpack_grouped_product, takes_any_number_of_rows) {
  delegate();
  const Experts program(Dim::symbol("rows", 1, 40));
  Module module = program.load();
  for (const int64_t rows : {40, 1, 7, 40}) {
    const std::vector<float> x =
        random_tensor({rows, inputs}, static_cast<unsigned>(rows)).to_vector<float>();
    const std::vector<int64_t> ends{rows / 3, rows / 2, rows / 2, rows};
    expect_close(multiply(module, x, ends), by_formula(x, ends));
  }
}

TEST(xnnpack_grouped_product, refuses_ends_that_are_no_ranges_and_works_again) {
  delegate();
  const Experts program(12);
  Module module = program.load();
  const std::vector<int64_t> right{3, 6, 9, 12};
  for (const std::vector<int64_t>& wrong : std::vector<std::vector<int64_t>>{
           {3, 6, 9, 13}, {3, 2, 9, 12}, {-1, 6, 9, 12}, {0, 0, 0, int64_t{1} << 40}}) {
    const auto results =
        module.execute("forward", {{twelve_rows.data(), {12, inputs}}, {wrong.data(), {groups}}});
    ASSERT_FALSE(results.ok());
    EXPECT_EQ(results.error(), Error::invalid_argument);
    EXPECT_NE(module.message().find("offs must ascend"), std::string::npos) << module.message();
    expect_close(multiply(module, twelve_rows, right), by_formula(twelve_rows, right));
  }
}

TEST(xnnpack_grouped_product, is_a_part_of_its_own_between_others) {
  const Tensor before = random_tensor({inputs, inputs}, 3), behind = random_tensor({5, outputs}, 4);
  const auto network = [&](const Tensor& x, const Tensor& ends) {
    return relu(linear(relu(grouped_mm(linear(x, before), matrices, ends)), behind));
  };
  const auto written = [&](const auto& function) {
    ExportOptions options;
    options.exact = false, options.backend = delegate().name();
    Exporter exporter;
    exporter.method("forward", function,
                    {input("x", {12, inputs}), input("ends", {groups}, DType::i64)});
    Experts program(12);
    program.report = {};
    program.file = exporter.write(options, &program.report);
    return program;
  };
  const std::vector<int64_t> ends{2, 4, 7, 9};
  const Experts program = written(network);
  EXPECT_EQ(program.report.methods[0].operators.at("taper::delegate"), 3);
  Module module = program.load();
  const Tensor x = Tensor::from<float>(twelve_rows, {12, inputs});
  expect_close(multiply(module, twelve_rows, ends),
               network(x, Tensor::from<int64_t>(ends, {groups})).to_vector<float>());
  const auto constant_ends = [&](const Tensor& rows, const Tensor&) {
    return grouped_mm(rows, matrices, Tensor::from<int64_t>(ends, {groups}));
  };
  EXPECT_EQ(written(constant_ends).report.methods[0].operators.count("taper::delegate"), 0u);
}

TEST(xnnpack_grouped_product, gives_the_same_bits_with_threads) {
  delegate();
  const Experts program(12);
  Module alone = program.load();
  ThreadPool pool(2);
  Module with_threads = program.load(pool.threads());
  const std::vector<int64_t> ends{1, 6, 6, 12};
  const std::vector<float> want = multiply(alone, twelve_rows, ends);
  EXPECT_EQ(multiply(with_threads, twelve_rows, ends), want);
  std::vector<float> have;
  Module session = program.load();
  std::thread other([&] { have = multiply(session, twelve_rows, ends); });
  EXPECT_EQ(multiply(alone, twelve_rows, ends), want);
  other.join();
  EXPECT_EQ(have, want);
}

TEST(xnnpack_grouped_product, computes_in_f32_beside_parts_of_f16) {
  delegate(), f16_delegate();
  const Experts of_f32(12), of_f16(12, "xnnpack-f16");
  Module f32 = of_f32.load(), f16 = of_f16.load();
  const std::vector<int64_t> ends{1, 6, 6, 12};
  EXPECT_EQ(multiply(f16, twelve_rows, ends), multiply(f32, twelve_rows, ends));
}

TEST(xnnpack_grouped_product, allocates_nothing_whatever_the_groups_are) {
  delegate();
  const Experts program(12);
  Module module = program.load();
  Result<Method> method = module.method("forward");
  ASSERT_TRUE(method.ok());
  ASSERT_EQ(method.value().set_input(0, twelve_rows.data(), {12, inputs}), Error::ok);
  const size_t before = allocation_count(), in_library = memory_use().allocations;
  for (const auto& ends :
       {std::array<int64_t, groups>{3, 6, 9, 12}, {0, 0, 12, 12}, {1, 1, 1, 2}}) {
    ASSERT_EQ(method.value().set_input(1, ends.data(), {groups}), Error::ok);
    ASSERT_EQ(method.value().execute(), Error::ok);
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(memory_use().allocations, in_library);
}

struct Names final : NodeObserver {
  void ran(const Node* nodes, size_t count) override {
    calls.emplace_back();
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(nodes[i].us, 1u) << "of its clock";
    for (size_t i = 0; i < count; ++i)
      calls.back().push_back(std::string(nodes[i].name) + " of " + nodes[i].source);
  }
  uint64_t now_us() const override { return ++us; }
  std::vector<std::vector<std::string>> calls;
  mutable uint64_t us = 0;
};

TEST(xnnpack_grouped_product, is_a_node_of_profiles_with_its_line) {
  delegate();
  const Experts program(12);
  Names names;
  backend().observe(&names);
  {
    Module module = program.load();
    for (int i = 0; i < 2; ++i)
      (void)multiply(module, twelve_rows, std::vector<int64_t>{3, 6, 9, 12});
  }
  backend().observe(nullptr);
  ASSERT_EQ(names.calls.size(), 2u);
  for (const auto& call : names.calls) {
    ASSERT_EQ(call.size(), 1u);
    EXPECT_NE(call[0].find(
                  "Grouped Fully Connected (NC, F32) of _grouped_mm at grouped_product_test.cpp"),
              std::string::npos)
        << call[0];
  }
}

TEST(xnnpack_grouped_product, packs_its_matrices_once_and_gives_memory_back) {
  delegate();
  const Experts program(12);
  const std::vector<int64_t> ends{1, 6, 6, 12};
  const size_t before = memory_use().bytes;
  {
    Module one = program.load();
    (void)multiply(one, twelve_rows, ends);
    const size_t of_one = memory_use().bytes - before;
    Module other = program.load();
    (void)multiply(other, twelve_rows, ends);
    EXPECT_LT(memory_use().bytes - before, 2 * of_one - groups * inputs * outputs * sizeof(float));
  }
  EXPECT_EQ(memory_use().bytes, before);
}

}  // namespace
}  // namespace taper::delegates::xnnpack
