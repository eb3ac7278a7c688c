#include "taper/runtime/extension/module/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../support/data.h"
#include "../support/environment.h"
#include "programs.h"
#include "taper/runtime/extension/module/message.h"
#include "test_kernels.h"

namespace taper::test {
namespace {

using format::NumberType;
using format::SymbolSource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string written(const AlignedBytes& file, const char* name = "program.taper") {
  const std::string path = tests::scratch_file(name).string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  return path;
}

TEST(module, loads_and_runs_in_three_lines) {
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  Module model = Module::load(written(sums_program().bytes()), kernels).value();
  std::array<float, 2> sums;
  Error error = model.forward({{x.data(), {2, 4}}}, {sums});
  EXPECT_EQ(error, Error::ok) << model.message();
  EXPECT_THAT(sums, ElementsAre(30, 78));
}

TEST(module, gives_results_with_memory_of_their_own) {
  Module model = Module::load(written(sums_program().bytes()), kernels).value();
  EXPECT_THAT(model.method_names(), ElementsAre("forward"));
  const std::vector<float> x(12, 1.0f);
  Result<std::vector<OwnedTensor>> results = model.execute("forward", {{x.data(), {3, 4}}});
  ASSERT_TRUE(results.ok()) << model.message();
  const OwnedTensor& y = results.value()[0];
  EXPECT_THAT(y.sizes, ElementsAre(3));
  EXPECT_EQ(y.data<float>()[2], 12.0f);
}

TEST(module, says_in_words_what_is_wrong) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  EXPECT_EQ(Module::load("/nowhere/model.taper", kernels, options).error(),
            Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("/nowhere/model.taper: No such file"));

  ProgramFile unknown = sums_program();
  unknown.kernels[1].op = "aten::special_airy_ai";
  EXPECT_EQ(Module::load(written(unknown.bytes()), kernels, options).error(),
            Error::missing_kernel);
  EXPECT_THAT(message, HasSubstr("aten::special_airy_ai"));

  Module model = Module::load(written(sums_program().bytes()), kernels, options).value();
  const std::vector<double> doubles(8);
  const std::vector<float> x(40);
  std::vector<float> y(3);
  EXPECT_EQ(model.forward({{doubles.data(), {2, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("x: an input is f64, and must be f32"));
  EXPECT_EQ(model.forward({{x.data(), {10, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("10"));
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y has 8 bytes, the buffer has 12"));
  EXPECT_EQ(model.forward({}, {y}), Error::invalid_argument);
  EXPECT_EQ(model.run("backward", {}, {}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("backward"));
}

#if defined(__x86_64__)
TEST(module, refuses_a_cpu_feature_that_does_not_exist) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const tests::Environment wrong("TAPER_CPU", "avx1024");
  const Result<Module> model = Module::load(written(sums_program().bytes()), kernels, options);
  EXPECT_EQ(model.error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("TAPER_CPU is avx1024; it can be portable, or names"));
}
#endif

// A kernel that reads its second argument backwards, if it is packed, and how often it packed.
std::atomic<int> packings{0};
constexpr Packing packs_second{
    1, -1, Layout::panels_of_first,
    [](const TensorRef& dense) { return static_cast<size_t>(dense.size_bytes()); },
    [](const TensorRef& dense, void* packed) {
      ++packings;
      const index_t n = dense.shape->numel();
      for (index_t i = 0; i < n; ++i)
        static_cast<float*>(packed)[n - 1 - i] = static_cast<const float*>(dense.data)[i];
    }};
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
  kernel.run = run_packed_add, kernel.packing = &packs_second;
  return kernel;
}();
const Kernel* const packing_kernels[] = {&packed_add};

// forward(x: f32[n]) -> x + w
constexpr int64_t weight_count = 1 << 16;
ProgramFile weight_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  std::vector<float> weight(weight_count);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i);
  const uint32_t w = p.constant<float>("w", {weight_count}, weight);
  MethodTables m;
  const uint32_t n = m.literal(weight_count), x = io_tensor(m, {n}), y = io_tensor(m, {n}),
                 constant = m.value(format::Storage::constant, w, m.shape({n}));
  m.run(add, {m.tensor(x), m.tensor(constant), m.tensor(y)});
  m.input("x", x);
  m.output("y", y);
  p.methods.push_back(m);
  return p;
}

void expect_weighted(Module& model) {
  const std::vector<float> x(weight_count, 1.0f);
  std::vector<float> y(weight_count);
  ASSERT_EQ(model.forward({{x.data(), {weight_count}}}, {y}), Error::ok) << model.message();
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 1 + static_cast<float>(i));
}

TEST(module, packs_weights_once_for_all_modules_of_a_file) {
  const std::string path = written(weight_program().bytes(), "weights.taper");
  packings = 0;
  {
    Module first = Module::load(path, packing_kernels).value();
    Module second = Module::load(path, packing_kernels).value();
    EXPECT_TRUE(first.program().is_packed(0) && second.program().is_packed(0));
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
    EXPECT_FALSE(model->program().is_packed(0));
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
  EXPECT_TRUE(first.program().is_packed(0));
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
    EXPECT_TRUE(model.program().is_packed(0));
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
  // the header has 64 bytes, then come the key, the size, and a place and a layout
  for (const std::string& bytes :
       {std::string(), whole.substr(0, 63), whole.substr(0, 64), whole.substr(0, whole.size() - 1),
        whole + " ", changed(0, 1, true), changed(8, 1, true), changed(whole.size() / 2, 1, false),
        changed(64, 1, true), changed(72, 1, true), changed(80, 64, true), changed(87, 1, true),
        changed(88, 3, true), changed(88, 1, true)}) {
    std::ofstream(file, std::ios::binary) << bytes;
    EXPECT_EQ(store.packings_of_a_load(path), 1);
    EXPECT_EQ(store.packings_of_a_load(path), 0);
  }
}

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
// Kilobytes of the mapping around an address that are in memory.
int64_t resident_kilobytes(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, at = reinterpret_cast<uintptr_t>(address);
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      inside = begin <= at && at < end;
    else if (inside && line.rfind("Rss:", 0) == 0)
      return std::stoll(line.substr(4));
  }
  return -1;
}

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
#endif

// A few hundred bytes can ask for any amount of memory.
TEST(module, says_how_much_memory_it_cannot_have) {
  std::string message;
  ModuleOptions options;
  options.message = &message;

  ProgramFile large_batch = sums_program();
  large_batch.methods[0].symbols[0] = {1, int64_t{1} << 50,           0,
                                       0, SymbolSource::input_extent, NumberType::i64};
  Module model = Module::load(written(large_batch.bytes()), kernels, options).value();
  const std::vector<float> x(8);
  std::vector<float> y(2);
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::out_of_memory);
  EXPECT_THAT(model.message(), MatchesRegex(".*maximum, forward needs [0-9]{17} bytes"));
  EXPECT_EQ(model.execute("forward", {{x.data(), {2, 4}}}).error(), Error::out_of_memory);

  ProgramFile large_state;
  large_state.state("cache", {int64_t{1} << 50}, DType::f32);
  EXPECT_EQ(Module::load(written(large_state.bytes()), kernels, options).error(),
            Error::out_of_memory);
  EXPECT_THAT(message, HasSubstr("program.taper: out_of_memory: the session needs 45035996273"));
}

#ifdef __linux__
// States are written when a session is created, and a method with fixed sizes uses all of its
// memory: memory that the machine does not have would end the process. With another setting of the
// system, that is what the system was told to do.
TEST(module, refuses_what_surely_needs_more_memory_than_the_machine_has) {
  std::ifstream setting("/proc/sys/vm/overcommit_memory");
  if (setting.get() != '0') GTEST_SKIP() << "the system promises more memory than it has";
  ProgramFile large_state;
  large_state.state("cache", {int64_t{1} << 42}, DType::f32);
  EXPECT_EQ(Module::load(written(large_state.bytes()), kernels).error(), Error::out_of_memory);

  ProgramFile large_method;
  MethodTables m;
  m.buffer(m.literal(int64_t{1} << 44));
  large_method.methods.push_back(m);
  Module model = Module::load(written(large_method.bytes()), kernels).value();
  EXPECT_EQ(model.run("forward", {}, {}), Error::out_of_memory);
  EXPECT_THAT(model.message(), MatchesRegex("out_of_memory: forward needs [0-9]{14} bytes"));
}
#endif

/// The most memory that this process ever had, in bytes.
size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<size_t>(usage.ru_maxrss);
#else
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
#endif
}

// A bound costs address space: memory is that of the sizes which are run.
TEST(module, pays_for_the_batch_it_runs_and_not_for_the_largest) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs the addresses itself";
#endif
  for (const int64_t largest : {int64_t{1} << 26, int64_t{1} << 40}) {
    ProgramFile p = sums_program();
    p.methods[0].symbols[0] = {1, largest, 0, 0, SymbolSource::input_extent, NumberType::i64};
    const std::string path = written(p.bytes());
    const size_t before = peak_memory();
    Module model = Module::load(path, kernels).value();
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<float> y(2);
    ASSERT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::ok) << model.message();
    EXPECT_THAT(y, ElementsAre(30, 78));
    EXPECT_LT(peak_memory() - before, size_t{16} << 20) << "of a region of 2 GiB and more";
  }
}

TEST(module, names_the_range_that_a_batch_is_outside) {
  ProgramFile p = sums_program();
  p.methods[0].symbol_names = {"batch"};
  Module model = Module::load(written(p.bytes()), kernels).value();
  const std::vector<float> x(40);
  std::vector<float> y(10);
  EXPECT_EQ(model.forward({{x.data(), {10, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("invalid_argument: input 0: batch = 10 is outside 1..8"));
  EXPECT_EQ(model.forward({{x.data(), {0, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("batch = 0 is outside 1..8"));
  EXPECT_EQ(model.forward({{x.data(), {2, 5}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(),
              HasSubstr("x (input 0): dimension 1 of an input is 5, and must be 4"));

  Module nameless = Module::load(written(sums_program().bytes()), kernels).value();
  EXPECT_EQ(nameless.forward({{x.data(), {10, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(nameless.message(), HasSubstr("a size = 10 is outside 1..8"));
}

// forward(a: f32[2], b: f32[2]) -> a + b
ProgramFile two_inputs_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables m;
  const uint32_t two = m.literal(2);
  const uint32_t a = io_tensor(m, {two}), b = io_tensor(m, {two}), y = io_tensor(m, {two});
  m.run(add, {m.tensor(a), m.tensor(b), m.tensor(y)});
  m.input("a", a), m.input("b", b);
  m.output("y", y);
  p.methods.push_back(m);
  return p;
}

TEST(module, takes_as_many_inputs_as_the_method_has) {
  Module model = Module::load(written(two_inputs_program().bytes()), kernels).value();
  const std::array<float, 2> x = {1, 2};
  const Input input(x.data(), {2});
  std::array<float, 2> y = {7, 7};
  for (const size_t count : {0, 1, 3}) {
    const std::vector<Input> inputs(count, input);
    const std::string why =
        "invalid_argument: forward takes 2 inputs, not " + std::to_string(count);
    EXPECT_EQ(model.forward(inputs, {y}), Error::invalid_argument);
    EXPECT_EQ(model.message(), why);
    EXPECT_EQ(model.execute("forward", inputs).error(), Error::invalid_argument);
    EXPECT_EQ(model.message(), why);
  }
  EXPECT_THAT(y, ElementsAre(7, 7)) << "nothing was computed";
  EXPECT_EQ(model.forward({input, input}, {y}), Error::ok) << model.message();
  EXPECT_THAT(y, ElementsAre(2, 4));
}

TEST(module, writes_an_output_to_a_buffer_of_its_dtype_only) {
  Module model = Module::load(written(two_inputs_program().bytes()), kernels).value();
  const std::array<float, 2> x = {1, 2};
  const std::vector<Input> inputs(2, Input(x.data(), {2}));
  std::array<int32_t, 2> integers = {7, 7};
  EXPECT_EQ(model.forward(inputs, {integers}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y is f32, the buffer is i32"));
  EXPECT_THAT(integers, ElementsAre(7, 7));
  std::array<float, 1> small = {7};
  EXPECT_EQ(model.forward(inputs, {small}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y has 8 bytes, the buffer has 4"));
  std::array<float, 2> y;
  EXPECT_EQ(model.forward(inputs, {y, y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("forward has 1 outputs"));
}

TEST(module, copies_no_number_to_a_buffer) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  m.outputs.push_back({"batch", none, m.of_symbol(0), format::NumberType::i64});
  Module model = Module::load(written(p.bytes()), kernels).value();
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 2> sums;
  std::array<int64_t, 1> batch = {7};
  const std::vector<Input> inputs = {{x.data(), {2, 4}}};
  EXPECT_EQ(model.forward(inputs, {sums, batch}), Error::invalid_argument);
  EXPECT_EQ(model.message(), "invalid_argument: output batch is a number: use execute");
  EXPECT_THAT(batch, ElementsAre(7));
  const std::vector<OwnedTensor> results = model.execute("forward", inputs).value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].dtype, DType::i64);
  EXPECT_EQ(*results[1].data<int64_t>(), 2);
}

TEST(module, verifies_the_weights_if_it_is_told_to) {
  ProgramFile p;
  p.state("weight", {4}, DType::f32, p.constant<float>("initial", {4}, {1, 2, 3, 4}));
  AlignedBytes file = p.bytes();
  std::string message;
  ModuleOptions options;
  options.verify = true;
  options.message = &message;
  EXPECT_TRUE(Module::load(written(file), kernels, options).ok()) << message;

  const float three = 3;
  std::byte* at = file.data();
  while (std::memcmp(at, &three, 4) != 0) at += 4;
  *at ^= std::byte{1};
  const std::string path = written(file);
  EXPECT_TRUE(Module::load(path, kernels).ok()) << "weights are not read at load";
  for (const Loading loading : {Loading::map, Loading::read}) {
    options.loading = loading;
    EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_program);
    EXPECT_THAT(message,
                HasSubstr("program.taper: invalid_program: the checksum of the weights ("));
    EXPECT_THAT(message, HasSubstr("the file is damaged; copy it again"));
  }
  const Span<const std::byte> bytes = file;
  EXPECT_EQ(Module::load(bytes, kernels, options).error(), Error::invalid_program);
}

TEST(module, that_read_its_file_does_not_care_what_becomes_of_it) {
  const std::string path = written(sums_program().bytes());
  ModuleOptions options;
  options.loading = Loading::read;
  Module model = Module::load(path, kernels, options).value();
  std::filesystem::resize_file(path, 0);  // `forward` reads the tables of its method
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 2> sums;
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {sums}), Error::ok) << model.message();
  EXPECT_THAT(sums, ElementsAre(30, 78));
  EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
}

TEST(module, refuses_what_is_no_file_and_does_not_wait_for_it) {
  const std::string pipe = written(sums_program().bytes()) + ".pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string message;
  ModuleOptions options;
  options.message = &message;
  for (const Loading loading : {Loading::map, Loading::read}) {
    options.loading = loading;
    for (const std::string& path : {pipe, std::string("/tmp"), std::string("/dev/zero")}) {
      EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
      EXPECT_THAT(message, HasSubstr(path + ": empty, or not a regular file"));
    }
  }
}

// As docs/running.md says how to replace a file.
TEST(module, keeps_the_file_that_it_mapped_when_another_takes_its_name) {
  const std::string path = written(sums_program().bytes());
  Module old = Module::load(path, kernels).value();
  ProgramFile other = sums_program();
  other.methods[0].name = "other";
  std::filesystem::rename(written(other.bytes(), "new"), path);
  EXPECT_THAT(Module::load(path, kernels).value().method_names(), ElementsAre("other"));
  const std::array<float, 4> x = {1, 2, 3, 4};
  std::array<float, 1> sums;
  EXPECT_EQ(old.forward({{x.data(), {1, 4}}}, {sums}), Error::ok) << old.message();
}

// ---- threads: docs/threads.md ----

std::atomic<bool> is_inside, may_leave;

// `add`, which says that a thread is inside, and keeps it there.
Kernel waiting_add() {
  Kernel k = add_f32;
  k.run = [](Context& context, const void* plan, const Slot* slots) {
    is_inside = true;
    while (!may_leave) std::this_thread::yield();
    return add_f32.run(context, plan, slots);
  };
  return k;
}

TEST(module, refuses_a_thread_while_another_one_is_inside) {
  const Kernel add = waiting_add();
  const Kernel* const set[] = {&add, &sum_rows_f32};
  is_inside = false, may_leave = false;
  Module model = Module::load(written(sums_program().bytes()), set).value();
  const std::array<float, 4> x = {1, 2, 3, 4};
  std::array<float, 1> first, second;
  std::thread inside([&] {
    EXPECT_EQ(model.forward({{x.data(), {1, 4}}}, {first}), Error::ok);
    EXPECT_EQ(model.message(), "");
  });
  while (!is_inside) std::this_thread::yield();
  const std::vector<Input> input = {{x.data(), {1, 4}}};
  EXPECT_EQ(model.forward(input, {second}), Error::busy);
  EXPECT_EQ(model.execute("forward", input).error(), Error::busy);
  EXPECT_EQ(model.method("forward").error(), Error::busy);
  EXPECT_EQ(model.state("weight").error(), Error::busy);
  EXPECT_EQ(model.set_state("weight", {}), Error::busy);
  const std::string why = "busy: another thread is inside this Module; give each thread its own";
  EXPECT_EQ(model.message(), why);
  may_leave = true;
  inside.join();
  EXPECT_EQ(first[0], 30);
  EXPECT_EQ(model.message(), why) << "why the last call of this thread failed";
  EXPECT_EQ(model.forward(input, {second}), Error::ok);
  EXPECT_EQ(model.message(), "");
  EXPECT_EQ(second[0], 30);
}

TEST(module, is_never_entered_twice) {
  Module model = Module::load(written(sums_program().bytes()), kernels).value();
  std::atomic<int> computed = 0;
  const auto call_often = [&](float start) {
    const std::array<float, 4> x = {start, 2, 3, 4};
    std::array<float, 1> sum;
    for (int i = 0; i < 2000; ++i) {
      const Error e = model.forward({{x.data(), {1, 4}}}, {sum});
      if (e == Error::ok) {
        EXPECT_EQ(sum[0], 3 * (start + 9));
        ++computed;
      } else {
        EXPECT_EQ(e, Error::busy);
        EXPECT_THAT(model.message(), HasSubstr("another thread is inside"));
      }
    }
  };
  std::thread a(call_often, 1.0f), b(call_often, 5.0f);
  a.join(), b.join();
  EXPECT_GE(computed, 1);
}

TEST(module, runs_beside_others_of_the_same_file) {
  const std::string path = written(sums_program().bytes());
  const auto call_often = [&](float start) {
    Module model = Module::load(path, kernels).value();
    const std::array<float, 4> x = {start, 2, 3, 4};
    std::array<float, 1> sum;
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(model.forward({{x.data(), {1, 4}}}, {sum}), Error::ok) << model.message();
      EXPECT_EQ(sum[0], 3 * (start + 9));
    }
  };
  std::thread a(call_often, 1.0f), b(call_often, 5.0f);
  a.join(), b.join();
}

TEST(module, formats_errors_for_people) {
  ErrorInfo info;
  info.error = Error::invalid_argument, info.instruction = 3,
  info.message = "index {} is outside [0, {})";
  info.values[0] = 7, info.values[1] = 5, info.source = "model.cpp:10", info.subject = "take";
  EXPECT_EQ(describe(info),
            "invalid_argument: take (model.cpp:10, instruction 3): index 7 is outside [0, 5)");
}

TEST(module, reads_and_writes_states_by_path) {
  ProgramFile p;
  p.state("encoder.weight", {2}, DType::f32, p.constant<float>("initial", {2}, {1, 2}));
  Module model = Module::load(written(p.bytes()), kernels).value();
  EXPECT_THAT(model.state_names(), ElementsAre("encoder.weight"));
  OwnedTensor w = std::move(model.state("encoder.weight").value());
  EXPECT_EQ(w.data<float>()[1], 2.0f);
  const float changed[] = {3, 4};
  std::memcpy(w.bytes.data(), changed, 8);
  EXPECT_EQ(model.set_state("encoder.weight", w), Error::ok);
  EXPECT_EQ(model.state("encoder.weight").value().data<float>()[0], 3.0f);
  EXPECT_EQ(model.state("decoder.weight").error(), Error::invalid_argument);
  w.bytes.resize(4);
  EXPECT_EQ(model.set_state("encoder.weight", w), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("has 8 bytes of f32, the value 4 of f32"));
  w.bytes.resize(8);
  EXPECT_EQ(model.set_state("encoder.weight", w), Error::ok);
  EXPECT_EQ(model.message(), "");
}

// As many bytes of another dtype would be other numbers.
TEST(module, gives_a_state_a_value_of_its_dtype_only) {
  ProgramFile p;
  p.state("weight", {2}, DType::f32, p.constant<float>("initial", {2}, {1, 2}));
  Module model = Module::load(written(p.bytes()), kernels).value();
  for (const DType dtype : {DType::i32, DType::f16, DType::f64, DType::i8}) {
    OwnedTensor value{dtype, {8 / size_bytes(dtype)}, std::vector<std::byte>(8, std::byte{1})};
    EXPECT_EQ(model.set_state("weight", value), Error::invalid_argument);
    EXPECT_EQ(model.message(), std::string("invalid_argument: state weight has 8 bytes of f32, the "
                                           "value 8 of ") +
                                   name_of(dtype));
  }
  const OwnedTensor w = std::move(model.state("weight").value());
  EXPECT_EQ(w.data<float>()[0], 1.0f);
  EXPECT_EQ(w.data<float>()[1], 2.0f);
}

}  // namespace
}  // namespace taper::test
