// What parts take of memory beside their weights.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "delegated.h"
#include "taper/tests/support/sanitizers.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr int64_t tokens = 256, width = 256;
constexpr size_t hidden_bytes = tokens * 4 * width * sizeof(float);

// Blocks of a transformer without attention. The norms stay with the kernels, so that each block is
// a part of its own.
struct Blocks {
  explicit Blocks(size_t count, bool have_equal_weights = false) {
    for (size_t i = 0; i < count; ++i) {
      const unsigned seed = have_equal_weights ? 0 : static_cast<unsigned>(2 * i);
      up.push_back(random_tensor({4 * width, width}, seed, -0.1f, 0.1f));
      down.push_back(random_tensor({width, 4 * width}, seed + 1, -0.1f, 0.1f));
    }
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (size_t i = 0; i < up.size(); ++i)
      y = layer_norm(y + linear(gelu(linear(y, up[i])), down[i]), {width});
    return y;
  }
  std::vector<Tensor> up, down;
};

// Bytes of the library while a method of so many blocks exists.
size_t bytes_of_blocks(size_t count) {
  const Blocks blocks(count, true);
  Delegated program(blocks, {tokens, width}, false);
  EXPECT_EQ(program.delegates(), static_cast<int>(count));
  const size_t before = memory_use().bytes;
  Result<Module> module = program.load();
  if (!module.ok()) return ADD_FAILURE() << program.why, 0;
  const Tensor x = random_tensor({tokens, width}, 90);
  expect_close(call(module.value(), x), blocks(x).to_vector<float>());
  return memory_use().bytes - before;
}

TEST(xnnpack_memory, is_shared_by_the_parts_of_a_method) {
  const size_t of_two = bytes_of_blocks(2), of_eight = bytes_of_blocks(8);
  EXPECT_GT(of_two, hidden_bytes);
  EXPECT_LT(of_eight, of_two + hidden_bytes / 2);
}

TEST(xnnpack_memory, is_shared_by_the_methods_of_a_session) {
  const Blocks blocks(2, true);
  ExportOptions options;
  options.exact = false, options.backend = delegate().name(), options.quiet = true;
  const auto bytes_of = [&](const std::vector<int64_t>& lengths) {
    Exporter exporter;
    for (const int64_t length : lengths)
      exporter.method("of_" + std::to_string(length), blocks, {input("x", {length, width})});
    const std::vector<std::byte> file = exporter.write(options);
    ModuleOptions load;
    load.backends = {&backend()};
    const size_t before = memory_use().bytes;
    Module module = Module::load(file, load).value();
    for (const int round : {0, 1})
      for (const int64_t length : lengths) {
        const Tensor x = random_tensor({length, width}, static_cast<unsigned>(round));
        const std::vector<float> elements = x.to_vector<float>();
        const auto y =
            module.execute("of_" + std::to_string(length), {{elements.data(), {length, width}}});
        if (!y.ok()) return ADD_FAILURE() << module.message(), size_t{0};
        const float* have = y.value()[0].data<float>();
        expect_close({have, have + length * width}, blocks(x).to_vector<float>());
      }
    return memory_use().bytes - before;
  };
  EXPECT_LT(bytes_of({tokens, tokens - 1, tokens + 1}), bytes_of({tokens + 1}) + hidden_bytes / 2);
}

#ifdef __linux__
/// The bytes of this process in memory but for pages of files.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/status");
  int64_t kilobytes = 0, more = 0;
  for (std::string word; file >> word;)
    if ((word == "RssAnon:" || word == "RssShmem:") && file >> more) kilobytes += more;
  return kilobytes << 10;
}

/// A thread that looks again and again what is in memory.
class Watcher {
 public:
  ~Watcher() { (void)most(); }
  /// The most that it saw, beyond what was there before.
  int64_t most() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    most_ = std::max(most_, resident_bytes());
    return most_ - before_;
  }

 private:
  const int64_t before_ = resident_bytes();
  int64_t most_ = before_;
  std::atomic<bool> ends_{false};
  std::thread thread_{[this] {
    do most_ = std::max(most_, resident_bytes());
    while (!ends_);
  }};
};

// Loads and calls the program in this process, which has done nothing else.
void expect_peak_of_weights_and_arena(const char* path, int64_t packed_bytes) {
  ModuleOptions options;
  options.backends = {&backend()};
  Watcher watcher;
  Result<Module> module = Module::load(path, options);
  ASSERT_TRUE(module.ok());
  Result<Method> method = module.value().method("forward");
  ASSERT_TRUE(method.ok());
  ASSERT_EQ(method.value().execute(), Error::ok);
  const int64_t most = watcher.most();
  const MethodRequirements r = module.value().requirements("forward").value().method;
  const auto arena =
      static_cast<int64_t>(r.activations + r.io + r.scratch + hidden_bytes + hidden_bytes / 4);
  EXPECT_GE(most, packed_bytes);
  EXPECT_LE(most, packed_bytes + arena + 3'000'000);
}

// A child process knows the program from this variable.
constexpr char variable[] = "TAPER_TEST_PROGRAM";

TEST(xnnpack_memory, at_its_peak_is_that_of_packed_weights_and_the_arena) {
#if defined(TAPER_ADDRESS_SANITIZER) || defined(TAPER_THREAD_SANITIZER)
  GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
  constexpr int count = 12;
  constexpr int64_t packed_bytes = count * 2 * (4 * width * width) * int64_t{sizeof(float)};
  if (const char* path = std::getenv(variable))
    return expect_peak_of_weights_and_arena(path, packed_bytes);
  Delegated program(Blocks(count), {tokens, width}, false);
  EXPECT_EQ(program.delegates(), count);
  const std::string path = testing::TempDir() + "xnnpack_peak.taper";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(program.file.data()),
             static_cast<std::streamsize>(program.file.size()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(variable, path.c_str(), 1);
    const std::string filter =
        "--gtest_filter=xnnpack_memory.at_its_peak_is_that_of_packed_weights_and_the_arena";
    ::execl("/proc/self/exe", "delegates_xnnpack_test", filter.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  std::remove(path.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    GTEST_SKIP() << "an emulator does not start a second process";
  EXPECT_EQ(status, 0) << "what the other process says";
}
#endif

}  // namespace
}  // namespace taper::delegates::xnnpack
