// Packed weights in files that processes share.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

namespace fs = std::filesystem;
constexpr size_t weight_bytes = 512 * 512 * sizeof(float);

// A folder that the backend keeps packed weights in.
struct Folder {
  Folder() {
    fs::create_directory(path);
    keep_packed_weights(path.string());
  }
  ~Folder() {
    keep_packed_weights("");
    fs::remove_all(path);
  }
  std::vector<fs::path> files() const {
    return {fs::directory_iterator(path), fs::directory_iterator()};
  }
  const fs::path path =
      fs::temp_directory_path() / ("taper_pack_folder_" + std::to_string(::getpid()));
};

const Tensor large = random_tensor({512, 512}, 70), x = random_tensor({1, 512}, 71);
Tensor product(const Tensor& t) { return linear(t, large); }

// Loads and calls the program. `heap`: what its packed weights take of it.
std::vector<float> load_and_call(Delegated& program, size_t& heap) {
  const size_t before = memory_use().bytes;
  Result<Module> module = program.load();
  if (!module.ok()) return ADD_FAILURE() << program.why, std::vector<float>();
  std::vector<float> y = call(module.value(), x);
  heap = memory_use().bytes - before;
  return y;
}

TEST(xnnpack_pack_folder, holds_large_weights_instead_of_the_heap) {
  Delegated program(product, {1, 512});
  const std::vector<float> want = product(x).to_vector<float>();
  size_t heap;
  expect_close(load_and_call(program, heap), want);
  EXPECT_GT(heap, weight_bytes);

  const Folder folder;
  expect_close(load_and_call(program, heap), want);
  EXPECT_LT(heap, weight_bytes / 2);
  ASSERT_EQ(folder.files().size(), 1u);
  EXPECT_GE(fs::file_size(folder.files()[0]), weight_bytes);
}

TEST(xnnpack_pack_folder, removes_what_a_killed_process_left) {
  Delegated program(product, {1, 512});
  size_t heap;
  const Folder folder;
  (void)load_and_call(program, heap);
  ASSERT_EQ(folder.files().size(), 1u);
  const fs::path whole = folder.files()[0];
  fs::rename(whole, whole.string() + ".7.partial");
  (void)load_and_call(program, heap);
  EXPECT_EQ(folder.files(), std::vector<fs::path>{whole});
}

TEST(xnnpack_pack_folder, serves_a_second_process_with_the_same_file) {
  Delegated program(product, {1, 512});
  const Folder folder;
  const pid_t other = ::fork();
  if (other == 0) {  // the first process, which writes the file
    size_t heap = 0;
    const bool has_result = !load_and_call(program, heap).empty();
    ::_exit(has_result && heap < weight_bytes / 2 && folder.files().size() == 1 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(folder.files().size(), 1u);
  const auto written = fs::last_write_time(folder.files()[0]);

  size_t heap;
  expect_close(load_and_call(program, heap), product(x).to_vector<float>());
  EXPECT_LT(heap, weight_bytes / 2);
  ASSERT_EQ(folder.files().size(), 1u);
  EXPECT_EQ(fs::last_write_time(folder.files()[0]), written) << "it was not written again";
}

TEST(xnnpack_pack_folder, writes_a_damaged_file_again) {
  Delegated program(product, {1, 512});
  const std::vector<float> want = product(x).to_vector<float>();
  const Folder folder;
  size_t heap;
  expect_close(load_and_call(program, heap), want);
  ASSERT_EQ(folder.files().size(), 1u);
  const fs::path path = folder.files()[0];
  const auto bytes = fs::file_size(path);
  const auto damage = [&](uintmax_t at, uintmax_t keep) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(77);
    file.close();
    fs::resize_file(path, keep);
  };
  for (const auto& [at, keep] : {std::pair{bytes / 3, bytes}, {0, bytes / 2}, {0, uintmax_t{0}}}) {
    damage(at, keep);
    expect_close(load_and_call(program, heap), want);
    EXPECT_LT(heap, weight_bytes / 2);
    EXPECT_EQ(fs::file_size(path), bytes);
  }
}

TEST(xnnpack_pack_folder, leaves_weights_in_memory_if_it_cannot_be_written) {
  Delegated program(product, {1, 512});
  keep_packed_weights("/nowhere/at/all");
  size_t heap;
  expect_close(load_and_call(program, heap), product(x).to_vector<float>());
  EXPECT_GT(heap, weight_bytes);
  keep_packed_weights("");
}

}  // namespace
}  // namespace taper::delegates::xnnpack
