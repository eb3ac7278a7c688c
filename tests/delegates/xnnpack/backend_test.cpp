// The backend on the device: sizes that change, threads, memory.
#include <atomic>
#include <cmath>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>

#include "delegated.h"
#include "taper/examples/support/allocations.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/support/resident.h"

namespace taper::delegates::xnnpack {
namespace {

const Tensor filter = random_tensor({8, 3, 3, 3}, 1), weight = random_tensor({5, 8}, 2);

Tensor network(const Tensor& x) {
  const Tensor y = relu(conv2d(x, filter, {}, 2, 1));
  return linear(mean(y, {2, 3}, false), weight);
}

TEST(xnnpack_backend, runs_symbolic_sizes_and_shapes_again) {
  const Dim n = Dim::symbol("n", 1, 5), h = Dim::symbol("h", 4, 40);
  Delegated program(network, {n, 3, h, 16});
  EXPECT_EQ(program.delegates(), 1);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  for (const auto& [rows, height] : {std::pair{1, 4}, {5, 40}, {2, 17}, {1, 4}, {5, 40}}) {
    const Tensor x = random_tensor({rows, 3, height, 16}, 3);
    expect_close(call(module.value(), x), network(x).to_vector<float>());
  }
}

TEST(xnnpack_backend, tells_the_constants_of_many_parts_apart) {
  // cumsum cuts the network into parts; every third bias is equal
  std::vector<Tensor> weights, biases;
  for (unsigned i = 0; i < 12; ++i) {
    weights.push_back(random_tensor({8 + i % 2, 8 + (i + 1) % 2}, 20 + i));
    biases.push_back(random_tensor({8 + i % 2}, 40 + i / 6));
  }
  const auto deep = [&](const Tensor& x) {
    Tensor y = x;
    for (size_t i = 0; i < weights.size(); ++i) y = cumsum(linear(y, weights[i], biases[i]), 0);
    return y;
  };
  Delegated program(deep, {2, 9}, false);
  EXPECT_EQ(program.delegates(), 12);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  const Tensor x = random_tensor({2, 9}, 3);
  expect_close(call(module.value(), x), deep(x).to_vector<float>());
}

TEST(xnnpack_backend, takes_an_operand_that_is_a_constant) {
  const Tensor token = random_tensor({1, 1, 8}, 50), matrix = random_tensor({8, 8}, 51);
  const auto with_token = [&](const Tensor& x) {  // the backend does not take `expand`
    return linear(cat({linear(x, matrix), expand(token, {2, 1, 8})}, 1), matrix);
  };
  Delegated program(with_token, {2, 3, 8});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  const Tensor x = random_tensor({2, 3, 8}, 52);
  expect_close(call(module.value(), x), with_token(x).to_vector<float>());
}

TEST(xnnpack_backend, gives_the_same_bits_with_any_number_of_threads) {
  Delegated program(network, {4, 3, 33, 31});
  const Tensor x = random_tensor({4, 3, 33, 31}, 4);
  Result<Module> alone = program.load();
  ASSERT_TRUE(alone.ok()) << program.why;
  const std::vector<float> want = call(alone.value(), x);
  for (const int count : {2, 3}) {
    ThreadPool pool(count);
    Result<Module> module = program.load(pool.threads());
    ASSERT_TRUE(module.ok()) << program.why;
    EXPECT_EQ(call(module.value(), x), want) << count;
  }
}

TEST(xnnpack_backend, allocates_nothing_for_sizes_that_it_has_seen) {
  const Dim n = Dim::symbol("n", 1, 8);
  Delegated program(network, {n, 3, 16, 16});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  Result<Method> method = module.value().method("forward");
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

TEST(xnnpack_backend, gives_its_memory_back) {
  Delegated program(network, {1, 3, 16, 16});
  const auto once = [&] {
    Result<Module> module = program.load();
    ASSERT_TRUE(module.ok()) << program.why;
    call(module.value(), random_tensor({1, 3, 16, 16}, 5));
  };
  once();
  const size_t bytes = memory_use().bytes;
  for (int i = 0; i < 1000; ++i) once();
  EXPECT_EQ(memory_use().bytes, bytes);
}

#ifdef __linux__
TEST(xnnpack_backend, gives_large_pages_back) {
  if (!tests::hears_wishes_for_large_pages())
    GTEST_SKIP() << "this system has no large pages, or an emulator does not ask for them";
  const Tensor large = random_tensor({2048, 2048}, 62);
  Delegated program([&](const Tensor& x) { return linear(x, large); }, {1, 2048});
  // glibc keeps memory of up to the largest size that was released
  std::make_unique<std::vector<char>>(24 << 20).reset();
  const int64_t before = tests::kilobytes_in_large_pages();
  for (int i = 0; i < 3; ++i) {
    {
      Result<Module> module = program.load();
      ASSERT_TRUE(module.ok()) << program.why;
      ASSERT_TRUE(module.value().method("forward").ok());
      EXPECT_GE(tests::kilobytes_in_large_pages(), before + 16384);
    }
    EXPECT_EQ(tests::kilobytes_in_large_pages(), before);
  }
}
#endif

TEST(xnnpack_backend, gives_back_the_pages_of_weights_that_it_packed) {
  const Tensor large = random_tensor({2048, 2048}, 60);
  Delegated program([&](const Tensor& x) { return linear(x, large); }, {1, 2048});
  const std::string path = testing::TempDir() + "xnnpack_pages.taper";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(program.file.data()),
             static_cast<std::streamsize>(program.file.size()));
  ModuleOptions options;
  options.backends = {&backend()}, options.verify = true;  // this reads all pages
  Module module = Module::load(path, options).value();
  const auto resident = [&] { return tests::resident_kilobytes(module.program().file().data()); };
  EXPECT_GE(resident(), 16384);
  const Tensor x = random_tensor({1, 2048}, 61);
  ASSERT_TRUE(module.method("forward").ok());
  EXPECT_LT(resident(), 8192);  // the system may map 2 MB for a byte
  expect_close(call(module, x), linear(x, large).to_vector<float>());
}

TEST(xnnpack_backend, packs_weights_once_for_a_method) {
  Delegated program(network, {1, 3, 16, 16});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  ASSERT_TRUE(module.value().requirements("forward").ok());
  const size_t packed = memory_use().bytes;
  ASSERT_TRUE(module.value().method("forward").ok());
  EXPECT_LE(memory_use().bytes, packed) << "the instance that was measured is used again";
}

TEST(xnnpack_backend, packs_weights_once_for_all_sessions) {
  const Tensor large = random_tensor({512, 512}, 60);
  const size_t bytes = 512 * 512 * sizeof(float);
  Delegated program([&](const Tensor& x) { return linear(x, large); }, {1, 512});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  const std::vector<float> x = random_tensor({1, 512}, 61).to_vector<float>();
  const std::vector<float> want = call(module.value(), random_tensor({1, 512}, 61));
  const size_t one = memory_use().bytes;
  struct alignas(64) Memory {
    std::byte session[1 << 12], method[1 << 16];
  };
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<Session> sessions;
  std::vector<Method> methods;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(std::make_unique<Memory>());
    Result<Session> session = Session::create(module.value().program(), memory.back()->session);
    ASSERT_TRUE(session.ok());
    sessions.push_back(session.value());
    Result<Method> method = Method::create(sessions.back(), "forward", {memory.back()->method});
    ASSERT_TRUE(method.ok());
    methods.push_back(method.value());
    ASSERT_EQ(methods.back().set_input(0, x.data()), Error::ok);
    ASSERT_EQ(methods.back().execute(), Error::ok);
    const auto* y = static_cast<const float*>(methods.back().output(0).data);
    EXPECT_EQ(std::vector<float>(y, y + 512), want);
  }
  EXPECT_LT(memory_use().bytes, one + bytes);
  for (Method& method : methods) EXPECT_EQ(method.close(), Error::ok);
  for (Session& session : sessions) EXPECT_EQ(session.close(), Error::ok);
}

TEST(xnnpack_backend, packs_weights_once_for_all_modules) {
  const Tensor large = random_tensor({512, 512}, 62), x = random_tensor({1, 512}, 63);
  const size_t bytes = 512 * 512 * sizeof(float), before = memory_use().bytes;
  const auto product = [&](const Tensor& t) { return linear(t, large); };
  Delegated program(product, {1, 512}),
      other([&](const Tensor&t) { return relu(product(t)); }, {1, 512});
  {
    Result<Module> second = program.load();
    {
      Result<Module> first = program.load(), third = other.load();
      ASSERT_TRUE(first.ok() && second.ok() && third.ok());
      for (Module* module : {&first.value(), &second.value()})
        expect_close(call(*module, x), product(x).to_vector<float>());
      expect_close(call(third.value(), x), relu(product(x)).to_vector<float>());
      EXPECT_LT(memory_use().bytes - before, bytes + bytes / 2) << "of three modules";
    }
    expect_close(call(second.value(), x), product(x).to_vector<float>());
    EXPECT_GT(memory_use().bytes - before, bytes);
  }
  EXPECT_LT(memory_use().bytes, before + bytes / 2) << "the last module is gone";
}

TEST(xnnpack_backend, shares_packed_weights_between_threads) {
  Delegated program(network, {1, 3, 16, 16});
  const Tensor x = random_tensor({1, 3, 16, 16}, 66);
  const std::vector<float> elements = x.to_vector<float>(), want = network(x).to_vector<float>();
  const size_t before = memory_use().bytes;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        ModuleOptions options;
        options.backends = {&backend()};
        Result<Module> module = Module::load(program.file, options);
        if (!module.ok()) return void(++wrong);
        const auto y = module.value().execute("forward", {{elements.data(), {1, 3, 16, 16}}});
        if (!y.ok()) return void(++wrong);
        for (size_t k = 0; k < want.size(); ++k)
          wrong += std::abs(y.value()[0].data<float>()[k] - want[k]) > 1e-4f;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(memory_use().bytes, before);
}

TEST(xnnpack_backend, packs_weights_once_for_all_methods) {
  const Tensor large = random_tensor({512, 512}, 64);
  const size_t bytes = 512 * 512 * sizeof(float), before = memory_use().bytes;
  ExportOptions options;
  options.exact = false, options.backend = delegate().name(), options.quiet = true;
  Exporter exporter;
  for (const int rows : {1, 3})
    exporter.method("of_" + std::to_string(rows), [&](const Tensor& t) { return linear(t, large); },
                    {input("x", {rows, 512})});
  const std::vector<std::byte> file = exporter.write(options);
  ModuleOptions load;
  load.backends = {&backend()};
  Result<Module> module = Module::load(file, load);
  ASSERT_TRUE(module.ok());
  for (const index_t rows : {1, 3}) {
    const Tensor x = random_tensor({rows, 512}, 65);
    const std::vector<float> elements = x.to_vector<float>();
    const auto y =
        module.value().execute("of_" + std::to_string(rows), {{elements.data(), {rows, 512}}});
    ASSERT_TRUE(y.ok());
    const float* have = y.value()[0].data<float>();
    expect_close({have, have + rows * 512}, linear(x, large).to_vector<float>());
  }
  EXPECT_LT(memory_use().bytes - before, bytes + bytes / 2);
}

TEST(xnnpack_backend, knows_lines_of_the_model_only_with_debug_information) {
  const auto knows_lines = [](bool debug) {
    ExportOptions options;
    options.exact = false, options.backend = delegate().name(), options.debug = debug;
    Exporter exporter;
    exporter.method("forward", network, {input("x", {1, 3, 16, 16})});
    const std::vector<std::byte> file = exporter.write(options);
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    return text.find("backend_test.cpp") != text.npos;
  };
  EXPECT_TRUE(knows_lines(true));
  EXPECT_FALSE(knows_lines(false));
}

TEST(xnnpack_backend, works_after_a_call_that_was_cancelled) {
  Delegated program(network, {1, 3, 16, 16});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  Result<Method> method = module.value().method("forward");
  ASSERT_TRUE(method.ok());
  Limits none;
  none.steps = 0;
  EXPECT_EQ(method.value().execute(none), Error::limit_reached);
  const Tensor x = random_tensor({1, 3, 16, 16}, 6);
  expect_close(call(module.value(), x), network(x).to_vector<float>());
}

/// A session of a program, with one method.
class OwnSession {
 public:
  explicit OwnSession(const Program& program)
      : session_(Session::create(program, memory_->session)),
        method_(Method::create(session_.value(), "forward", {memory_->method})) {}
  ~OwnSession() {
    EXPECT_EQ(method_.value().close(), Error::ok);
    EXPECT_EQ(session_.value().close(), Error::ok);
  }
  OwnSession(const OwnSession&) = delete;

  /// How many results differ from `want`.
  int wrong_results(const std::vector<float>& x, const std::vector<float>& want) {
    Method& method = method_.value();
    if (method.set_input(0, x.data()) != Error::ok || method.execute() != Error::ok) return -1;
    const auto* y = static_cast<const float*>(method.output(0).data);
    int wrong = 0;
    for (size_t i = 0; i < want.size(); ++i) wrong += !(std::abs(y[i] - want[i]) <= 1e-4f);
    return wrong;
  }

 private:
  struct alignas(64) Memory {
    std::byte session[1 << 12], method[1 << 17];
  };
  const std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  Result<Session> session_;
  Result<Method> method_;
};

TEST(xnnpack_backend, runs_two_sessions_of_a_program) {
  const Tensor square = random_tensor({5, 5}, 67);
  const auto parts = [&](const Tensor& x) {  // cumsum stays with the kernels
    Tensor y = cumsum(network(x), 0);
    for (int i = 0; i < 2; ++i) y = cumsum(linear(gelu(linear(y, square)), square), 0);
    return y;
  };
  Delegated program(parts, {1, 3, 16, 16}, false);
  EXPECT_EQ(program.delegates(), 3);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  std::vector<std::vector<float>> inputs, results;
  for (unsigned seed : {68, 69}) {
    Tensor x = random_tensor({1, 3, 16, 16}, seed);
    results.push_back(parts(x).to_vector<float>()), inputs.push_back(x.to_vector<float>());
    inputs.back().resize(inputs.back().size() + 16);  // kernels read 64 bytes behind
  }
  {
    OwnSession first(module.value().program()), second(module.value().program());
    EXPECT_EQ(first.wrong_results(inputs[0], results[0]), 0);
    EXPECT_EQ(second.wrong_results(inputs[1], results[1]), 0);
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        OwnSession own(module.value().program());
        for (int i = 0; i < 10; ++i) wrong += own.wrong_results(inputs[t], results[t]) != 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace taper::delegates::xnnpack
