#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "../support/data.h"
#include "../support/resident.h"
#include "programs.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/extension/module/sha256.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/runtime/program/tables.h"
#include "test_kernels.h"
#include "written.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

namespace taper::test {
namespace {

using tests::resident_kilobytes;

// A kernel that reads its second argument backwards, if it is packed, how often it packed, and the
// most that was in memory of the file when it had packed something.
std::atomic<int> packings{0};
std::atomic<int64_t> most_resident{0};
constexpr Packing packs_second[] = {
    {1, -1, Layout::dense, Layout::panels_of_first,
     [](const TensorRef& dense) { return static_cast<size_t>(dense.size_bytes()); },
     [](const TensorRef& dense, void* packed) {
       ++packings;
       const index_t n = dense.shape->numel();
       for (index_t i = 0; i < n; ++i)
         static_cast<float*>(packed)[n - 1 - i] = static_cast<const float*>(dense.data)[i];
       most_resident = std::max(most_resident.load(), resident_kilobytes(dense.data));
     }}};
Error run_packed_add(Context&, const void*, const Slot* slots) {
  const View<const float> a{slots[0].tensor}, b{slots[1].tensor};
  const View<float> out{slots[2].tensor};
  const index_t n = a.numel();
  const bool packed = b.layout() != Layout::dense;
  for (index_t i = 0; i < n; ++i) out.data()[i] = a.data()[i] + b.data()[packed ? n - 1 - i : i];
  return Error::ok;
}
const Kernel packed_add = [] {
  Kernel kernel = add_f32;
  kernel.prepare = nullptr, kernel.plan_bytes = 0;
  kernel.run = run_packed_add, kernel.packings = packs_second;
  return kernel;
}();
const Kernel* const packing_kernels[] = {&packed_add};

// forward(x: f32[16, n]) -> x + w, computed once with each of the weights, which are equal
constexpr int64_t weight_count = 1 << 16, columns = weight_count / 16;
ProgramFile weight_program(int weights = 1) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  std::vector<float> weight(weight_count);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t rows = m.literal(16), n = m.literal(columns), x = io_tensor(m, {rows, n}),
                 y = io_tensor(m, {rows, n}), shape = m.shape({rows, n}, {n, m.literal(1)});
  for (int i = 0; i < weights; ++i) {
    const uint32_t w = p.constant<float>("w", {16, columns}, weight),
                   constant = m.value(format::Storage::constant, w, shape);
    m.run(add, {m.tensor(x), m.tensor(constant), m.tensor(y)});
  }
  m.input("x", x);
  m.output("y", y);
  return p;
}

void expect_weighted(Module& model) {
  const std::vector<float> x(weight_count, 1.0f);
  std::vector<float> y(weight_count);
  ASSERT_EQ(model.forward({{x.data(), {16, columns}}}, {y}), Error::ok) << model.message();
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 1 + static_cast<float>(i));
}

TEST(module, packs_weights_once_for_all_modules_of_a_file) {
  const std::string path = written(weight_program().bytes(), "weights.taper");
  packings = 0;
  {
    Module first = Module::load(path, packing_kernels).value();
    Module second = Module::load(path, packing_kernels).value();
    EXPECT_TRUE(first.program().data().constants[0].is_packed() &&
                second.program().data().constants[0].is_packed());
    EXPECT_EQ(packings, 1);
    expect_weighted(first);
    expect_weighted(second);
    first = std::move(second);
    expect_weighted(first);
  }
  Module later = Module::load(path, packing_kernels).value();
  EXPECT_EQ(packings, 2);
  expect_weighted(later);
}

TEST(module, packs_the_weights_of_a_file_that_took_the_name_of_another_one) {
  const std::string path = written(weight_program().bytes(), "weights.taper");
  Module old = Module::load(path, packing_kernels).value();
  std::filesystem::rename(written(weight_program().bytes(), "weights.new"), path);
  packings = 0;
  Module replaced = Module::load(path, packing_kernels).value();
  EXPECT_EQ(packings, 1);
  expect_weighted(old);
  expect_weighted(replaced);
}

TEST(module, packs_no_weights_that_would_be_there_twice) {
  const AlignedBytes file = weight_program().bytes();
  const std::string path = written(file, "weights.taper");
  packings = 0;
  ModuleOptions off, read;
  off.pack_weights = PackWeights::never;
  read.loading = Loading::read;
  Module unpacked = Module::load(path, packing_kernels, off).value();
  Module in_memory = Module::load(path, packing_kernels, read).value();
  Module of_bytes = Module::load(Span<const std::byte>(file), packing_kernels).value();
  EXPECT_EQ(packings, 0);
  for (Module* model : {&unpacked, &in_memory, &of_bytes}) {
    EXPECT_FALSE(model->program().data().constants[0].is_packed());
    expect_weighted(*model);
  }
}

TEST(module, packs_a_program_in_memory_when_it_is_told_to) {
  const AlignedBytes file = weight_program().bytes();
  ModuleOptions options;
  options.pack_weights = PackWeights::always;
  packings = 0;
  Module first = Module::load(Span<const std::byte>(file), packing_kernels, options).value();
  Module second = Module::load(Span<const std::byte>(file), packing_kernels, options).value();
  EXPECT_TRUE(first.program().data().constants[0].is_packed());
  EXPECT_EQ(packings, 2);
  expect_weighted(first);
  expect_weighted(second);
}

/// An empty folder, and options that keep packed weights there.
struct PackStore {
  std::filesystem::path folder = tests::scratch_file("packed");
  ModuleOptions options;
  PackStore() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    options.pack_store = folder.string();
  }
  std::vector<std::filesystem::path> files() const {
    return {std::filesystem::directory_iterator(folder), {}};
  }
  /// How often a load packs, which computes the right results.
  int packings_of_a_load(const std::string& path) const {
    packings = 0;
    Module model = Module::load(path, packing_kernels, options).value();
    EXPECT_TRUE(model.program().data().constants[0].is_packed());
    expect_weighted(model);
    return packings;
  }
};

TEST(module, finds_packed_weights_in_a_store) {
  const PackStore store;
  const std::string path = written(weight_program().bytes(), "weights.taper");
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  EXPECT_EQ(store.packings_of_a_load(path), 0);
  ASSERT_EQ(store.files().size(), 1u);

  // the same weights in another file, and other ones
  ProgramFile other = weight_program();
  const std::string copy = written(other.bytes(), "copy.taper");
  EXPECT_EQ(store.packings_of_a_load(copy), 0);
  other.constants[0].data[0] = std::byte{1};
  packings = 0;
  Module model =
      Module::load(written(other.bytes(), "other.taper"), packing_kernels, store.options).value();
  EXPECT_EQ(packings, 1);
  EXPECT_EQ(store.files().size(), 2u);
}

TEST(module, packs_again_what_a_store_holds_in_another_form) {
  const PackStore store;
  const std::string path = written(weight_program().bytes(), "weights.taper");
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  const std::filesystem::path file = store.files().at(0);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto changed = [&](size_t at, char by, bool mend) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ by);
    const uint64_t sum = checksum({reinterpret_cast<const std::byte*>(bytes.data()) + 64,
                                   static_cast<index_t>(bytes.size()) - 64});
    if (mend) std::memcpy(&bytes[24], &sum, sizeof sum);
    return bytes;
  };
  // the header has 64 bytes, at 32 the version of the code that packs; then come the key, the size,
  // and a place and a layout
  for (const std::string& bytes :
       {std::string(), whole.substr(0, 63), whole.substr(0, 64), whole.substr(0, whole.size() - 1),
        whole + " ", changed(0, 1, true), changed(8, 1, true), changed(32, 1, true),
        changed(whole.size() / 2, 1, false), changed(64, 1, true), changed(72, 1, true),
        changed(80, 64, true), changed(87, 1, true), changed(88, 3, true), changed(88, 1, true)}) {
    std::ofstream(file, std::ios::binary) << bytes;
    EXPECT_EQ(store.packings_of_a_load(path), 1);
    EXPECT_EQ(store.packings_of_a_load(path), 0);
  }
}

TEST(module, keeps_what_each_version_of_the_packing_code_stores_apart) {
  const PackStore store;
  const std::string path = written(weight_program().bytes(), "weights.taper");
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  const std::filesystem::path file = store.files().at(0);
  uint64_t version = 0;
  std::ifstream(file, std::ios::binary).seekg(32).read(reinterpret_cast<char*>(&version), 8);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(version));
  EXPECT_NE(version, 0u);
  EXPECT_THAT(file.filename().string(), testing::EndsWith("-" + std::string(hex) + ".packed"));
}

#ifdef __linux__
TEST(module, removes_what_killed_processes_left_in_a_store) {
  const PackStore store;
  const std::string path = written(weight_program().bytes(), "weights.taper");
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  const std::filesystem::path file = store.files().at(0);
  std::filesystem::remove(file);
  const std::string left = file.string() + ".123.partial",
                    being_written = file.string() + ".4.partial",
                    other = file.string() + ".x.partial", of_other = file.string() + "2.5.partial";
  for (const std::string& name : {left, being_written, other, of_other}) std::ofstream(name) << "x";
  const int writer = ::open(being_written.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  ::close(writer);
  EXPECT_THAT(store.files(), testing::UnorderedElementsAre(file, being_written, other, of_other));
}
#endif

TEST(module, packs_without_a_store_that_it_cannot_write) {
  PackStore store;
  store.options.pack_store += "/nowhere";
  const std::string path = written(weight_program().bytes(), "weights.taper");
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  EXPECT_EQ(store.packings_of_a_load(path), 1);
  EXPECT_TRUE(store.files().empty());
}

TEST(module, packs_weights_that_it_verified_before) {
  AlignedBytes file = weight_program().bytes();
  file.data()[file.size() / 2] ^= std::byte{1};
  ModuleOptions options;
  options.verify = true;
  packings = 0;
  EXPECT_EQ(Module::load(written(file, "weights.taper"), packing_kernels, options).error(),
            Error::invalid_program);
  EXPECT_EQ(packings, 0);
}

#ifdef __linux__
TEST(module, gives_back_the_pages_of_weights_that_it_packed) {
  const std::string path = written(weight_program().bytes(), "weights.taper");
  ModuleOptions options;
  for (const bool packs : {false, true}) {
    options.pack_weights = packs ? PackWeights::of_mapped_files : PackWeights::never;
    options.verify = true;  // this reads all pages
    Module model = Module::load(path, packing_kernels, options).value();
    const int64_t resident = resident_kilobytes(model.program().file().data());
    const int64_t weights = weight_count * 4 / 1024;
    EXPECT_EQ(resident >= weights, !packs) << resident << " kB";
    EXPECT_EQ(resident < weights / 2, packs) << resident << " kB";
    EXPECT_EQ(model.program().verify_segments(), Error::ok);  // they are read again
  }
}

// Otherwise a load would need memory for all weights twice. The system may map 2 MB for a byte.
TEST(module, gives_back_the_pages_of_a_weight_before_it_packs_the_next_ones) {
  const int count = 64;
  ProgramFile all_embedded = weight_program(count), external = all_embedded, weights;
  weights.constants = all_embedded.constants;
  for (auto& c : weights.constants)
    for (const std::byte b : sha256(c.data)) c.hash.push_back(static_cast<uint8_t>(b));
  external.constants = weights.constants;
  for (auto& c : external.constants) c.source = format::ConstantSource::external;
  for (auto& c : external.constants) c.external_file = "model.weights.taper";
  written(weights.bytes(), "model.weights.taper");
  for (const std::string& path : {written(all_embedded.bytes(), "embedded.taper"),
                                  written(external.bytes(), "external.taper")}) {
    packings = 0, most_resident = 0;
    Module model = Module::load(path, packing_kernels).value();
    EXPECT_EQ(packings, count);
    EXPECT_GT(most_resident, 0);
    EXPECT_LT(most_resident, 8192) << "kB, of 64 weights of 256 kB";
    expect_weighted(model);
  }
}
#endif

TEST(module, tells_the_bytes_of_packed_weights_and_of_a_method) {
  const std::string path = written(weight_program().bytes(), "weights.taper");
  ModuleOptions options;
  for (const bool packs : {true, false}) {
    options.pack_weights = packs ? PackWeights::of_mapped_files : PackWeights::never;
    Module model = Module::load(path, packing_kernels, options).value();
    const ModuleRequirements needed = model.requirements("forward").value();
    const size_t weight = weight_count * sizeof(float);
    EXPECT_EQ(needed.packed_weights > weight, packs);
    EXPECT_LT(needed.packed_weights, packs ? weight + 1024 : 1);
    EXPECT_GE(needed.method.io, 2 * weight);
    EXPECT_GT(needed.tables, 0u);
    EXPECT_EQ(needed.session, model.program().session_bytes());
    EXPECT_EQ(needed.total(),
              needed.packed_weights + needed.tables + needed.session + needed.method.total());
    expect_weighted(model);
    EXPECT_EQ(model.requirements("backward").error(), Error::invalid_argument);
    EXPECT_THAT(model.message(), testing::HasSubstr("backward"));
  }
}

TEST(module, packs_with_its_threads) {
  const std::string path = written(weight_program(32).bytes(), "weights.taper");
  ThreadPool pool(3);
  ModuleOptions options;
  options.threads = pool.threads();
  packings = 0;
  Module model = Module::load(path, packing_kernels, options).value();
  EXPECT_EQ(packings, 32);
  for (index_t i = 0; i < 32; ++i) EXPECT_TRUE(model.program().data().constants[i].is_packed());
  expect_weighted(model);
}

}  // namespace
}  // namespace taper::test
