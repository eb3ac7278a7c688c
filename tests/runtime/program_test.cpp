// Bytes from outside: whatever they are, the answer is a program that runs or an Error.
#include <gmock/gmock.h>

#include <random>

#include "programs.h"

namespace taper::test {
namespace {

using testing::HasSubstr;
using testing::StrEq;

Error load_error(const AlignedBytes& file, ErrorInfo& info, KernelSet set = kernels) {
  AlignedBytes metadata(1 << 16);
  LoadOptions options;
  options.info = &info;
  return Program::load(file, set, metadata, options).error();
}

TEST(program, tells_its_methods_and_kernels) {
  Loaded loaded(sums_program());
  ASSERT_EQ(loaded.error(), Error::ok);
  const Program& p = loaded.program->value();
  EXPECT_EQ(p.method_count(), 1);
  EXPECT_THAT(p.method_name(0), StrEq("forward"));
  EXPECT_EQ(p.find_method("forward").value(), 0);
  EXPECT_EQ(p.find_method("train").error(), Error::invalid_argument);
  EXPECT_EQ(&p.kernel(1), &sum_rows_f32);
  EXPECT_EQ(p.verify_segments(), Error::ok);
}

TEST(program, says_which_segment_is_damaged_when_it_is_asked) {
  Loaded loaded(sums_program());
  ASSERT_EQ(loaded.error(), Error::ok);
  const Program& p = loaded.program->value();
  const format::Segment& last = *p.table().segments()->Get(1);
  ASSERT_EQ(last.kind(), format::SegmentKind::debug);
  loaded.file.data()[last.offset() + last.size_bytes() - 1] ^= std::byte{4};
  ErrorInfo info;
  EXPECT_EQ(p.verify_segments(&info), Error::invalid_program);
  EXPECT_EQ(info.values[0], 1);
  EXPECT_THAT(info.message, HasSubstr("checksum of segment {} differs"));
}

TEST(program, names_the_operator_that_has_no_kernel) {
  const AlignedBytes file = sums_program().bytes();
  const Kernel* const only_add[] = {&add_f32};
  ErrorInfo info;
  EXPECT_EQ(load_error(file, info, only_add), Error::missing_kernel);
  EXPECT_THAT(info.subject, StrEq("test::sum_rows"));

  ProgramFile other_schema = sums_program();
  other_schema.kernels[0].hash ^= 1;
  EXPECT_EQ(load_error(other_schema.bytes(), info), Error::missing_kernel);
  ProgramFile other_dtype = sums_program();
  other_dtype.kernels[0].dtypes[1] = static_cast<uint8_t>(DType::f64);
  EXPECT_EQ(load_error(other_dtype.bytes(), info), Error::missing_kernel);
}

constexpr CpuFeatures needs[] = {{CpuFeature::avx512_bf16, CpuFeature::avx2},
                                 {CpuFeature::avx_vnni, CpuFeature::avx2},
                                 CpuFeature::avx2,
                                 {}};

/// Kernels of sums_program(), with a record of `add` for each set of `needs`.
struct FeaturedKernels {
  Kernel add[4] = {add_f32, add_f32, add_f32, add_f32};
  const Kernel* set[5] = {&add[0], &add[1], &add[2], &add[3], &sum_rows_f32};
  FeaturedKernels() {
    for (int i = 0; i < 4; ++i) add[i].needs = needs[i];
  }
};

TEST(program, takes_the_first_kernel_that_its_features_allow) {
  const FeaturedKernels kernels;
  const AlignedBytes file = sums_program().bytes();
  AlignedBytes metadata(1 << 16);
  for (int i = 0; i < 4; ++i) {
    LoadOptions options;
    options.cpu = needs[i];
    Result<Program> program = Program::load(file, kernels.set, metadata, options);
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(&program.value().kernel(0), &kernels.add[i]);
  }
}

// The list of dimensions ends inside the last shape. Behind the list lies the number of shapes,
// which is the index of a size, too: only the bound of the list tells that it is not a dimension.
TEST(program, reads_no_dimension_behind_the_last) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  const auto last = static_cast<uint8_t>(m.shapes.back().rank());
  m.shapes.back() = format::Shape(static_cast<uint32_t>(m.dims.size()) - 2u * last + 1, last);
  ErrorInfo info;
  EXPECT_EQ(load_error(p.bytes(), info), Error::invalid_program);
  ASSERT_NE(info.message, nullptr);
  EXPECT_STREQ(info.message, "shape {} is damaged");
}

TEST(program, takes_the_fastest_kernel_of_this_machine_by_default) {
  const FeaturedKernels kernels;
  const CpuFeatures cpu = cpu_features();
  int first = 0;
  while (!cpu.has(needs[first])) ++first;
  const AlignedBytes file = sums_program().bytes();
  AlignedBytes metadata(1 << 16);
  Result<Program> program = Program::load(file, kernels.set, metadata);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(&program.value().kernel(0), &kernels.add[first]);
}

TEST(program, asks_the_processor_before_it_loads_and_not_for_each_record) {
  // What `load` gets is a set of bits: looking into it is a constant expression, which CPUID is
  // not.
  static_assert(std::is_same_v<decltype(LoadOptions::cpu), CpuFeatures>);
  static_assert(std::is_trivially_copyable_v<CpuFeatures> && sizeof(CpuFeatures) == 2);
  constexpr CpuFeatures cpu = CpuFeature::avx2;
  static_assert(cpu.has(CpuFeatures()) && cpu.has(CpuFeature::avx2));
  static_assert(!cpu.has(CpuFeature::avx512) && !cpu.has(needs[1]));
  LoadOptions options;
  options.cpu = cpu;
  const FeaturedKernels kernels;
  const AlignedBytes file = sums_program().bytes();
  AlignedBytes metadata(1 << 16);
  Result<Program> program = Program::load(file, kernels.set, metadata, options);
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(program.value().kernel(0).needs == CpuFeature::avx2);
}

TEST(program, refuses_what_is_not_a_whole_program) {
  const AlignedBytes good = sums_program().bytes();
  ErrorInfo info;
  ASSERT_EQ(load_error(good, info), Error::ok);
  const auto with = [&](size_t at, uint8_t value) {
    AlignedBytes bad = good;
    bad.data()[at] = std::byte{value};
    return bad;
  };
  EXPECT_EQ(load_error(with(0, 'X'), info), Error::invalid_program);
  EXPECT_THAT(info.message, HasSubstr("not a Taper program"));
  EXPECT_EQ(load_error(with(8, 9), info), Error::invalid_program);
  EXPECT_THAT(info.message, HasSubstr("version"));
  EXPECT_EQ(load_error(with(100, 0x5a), info), Error::invalid_program);
  EXPECT_THAT(info.message, HasSubstr("checksum"));

  AlignedBytes metadata(1 << 16);
  LoadOptions options;
  options.info = &info;
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_EQ(Program::load({good.data(), static_cast<index_t>(size)}, kernels, metadata, options)
                  .error(),
              Error::invalid_program);
  AlignedBytes moved(good.size() + 64);
  std::memcpy(moved.data() + 8, good.data(), good.size());
  EXPECT_EQ(Program::load({moved.data() + 8, static_cast<index_t>(good.size())}, kernels, metadata,
                          options)
                .error(),
            Error::invalid_argument);
  EXPECT_EQ(Program::load(good, kernels, Span<std::byte>(metadata.data(), 16), options).error(),
            Error::out_of_memory);
}

TEST(program, refuses_what_this_runtime_leaves_out_by_name) {
  ErrorInfo info;
  ProgramFile with_delegate = sums_program();
  with_delegate.delegates = {"xnnpack"};
  with_delegate.methods[0].instruction(format::InstructionKind::delegate, 0);
  const AlignedBytes file = with_delegate.bytes();  // `info` points into it
  EXPECT_EQ(load_error(file, info), Error::not_supported);
  EXPECT_THAT(info.subject, StrEq("xnnpack"));
}

// sums_program() with a second operand that is a constant somewhere else.
ProgramFile with_constant(format::ConstantSource source) {
  ProgramFile p = sums_program();
  p.constant<float>("encoder.weight", {8, 4}, std::vector<float>(32));
  p.constants[0].source = source;
  p.constants[0].hash.assign(32, 7), p.constants[0].slot = "encoder";
  MethodTables& m = p.methods[0];
  m.arguments[1] =
      m.tensor(m.value(format::Storage::constant, 0, m.shape({m.dims[0], m.literal(4)})));
  p.state("total", {8, 4}, DType::f32, 0);
  return p;
}

struct alignas(64) GivenElements {
  float elements[32] = {1, 2, 3, 4};
  std::byte slack[slack_bytes] = {};
  operator Span<const std::byte>() const {
    return {reinterpret_cast<const std::byte*>(this), sizeof *this};
  }
};

TEST(program, takes_constants_from_the_caller) {
  const GivenElements elements;
  std::vector<std::byte> hash(32, std::byte{7}), other(32, std::byte{8});
  const GivenConstant by_hash[] = {{Span<const std::byte>(other), Span<const std::byte>()},
                                   {Span<const std::byte>(hash), elements}};
  const GivenConstant by_name[] = {{"encode", Span<const std::byte>()}, {"encoder", elements}};
  for (const auto source : {format::ConstantSource::external, format::ConstantSource::slot}) {
    LoadOptions options;
    options.constants = by_hash;
    if (source == format::ConstantSource::slot) options.constants = by_name;
    Loaded loaded(with_constant(source), options);
    ASSERT_EQ(loaded.error(), Error::ok) << (loaded.info.message ? loaded.info.message : "");
    EXPECT_EQ(std::memcmp(loaded.session->value().state(0).data, elements.elements,
                          sizeof elements.elements),
              0);
    ASSERT_LOADED(method, loaded);
    Dense<float> zeros({1, 4}, {0, 0, 0, 0});
    ASSERT_EQ(method.set_input(0, zeros), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_EQ(test::elements(method.output(0))[0], 10);
  }
  // a hash is no name, and a name no hash
  LoadOptions options;
  options.constants = by_name;
  EXPECT_EQ(Loaded(with_constant(format::ConstantSource::external), options).error(),
            Error::not_supported);
}

TEST(program, keeps_its_constants_from_being_read_beyond_the_file) {
  ProgramFile p = sums_program();
  const uint32_t c = p.constant<float>("w", {4}, {1, 2, 3, 4});
  p.constants[c].sizes = {5};
  ErrorInfo info;
  const AlignedBytes file = p.bytes();  // `info` points into it
  EXPECT_EQ(load_error(file, info), Error::invalid_program);
  EXPECT_THAT(info.subject, StrEq("w"));
}

// The runtime places every buffer by its list again and again: lists that buffers shared could make
// a small file ask for hours.
TEST(program, has_a_list_below_each_buffer_that_no_other_shares) {
  const auto load_with = [](uint32_t first) {
    ProgramFile p = sums_program();
    MethodTables& m = p.methods[0];
    m.above.push_back(0);
    const uint32_t bytes = m.buffers[0].size_bytes();
    m.buffers.emplace_back(bytes, first, first == 0 ? 2u : 1u, format::Region::io, uint8_t{0});
    ErrorInfo info;
    return load_error(p.bytes(), info);
  };
  EXPECT_EQ(load_with(1), Error::ok);
  EXPECT_EQ(load_with(0), Error::invalid_program);
}

// Loads, creates every method and runs it: anything but a crash is right.
void use(AlignedBytes file) {
  Loaded loaded(std::move(file));
  if (loaded.error() != Error::ok) return;
  const Program& p = loaded.program->value();
  for (index_t i = 0; i < p.method_count(); ++i) {
    const Result<size_t> tables = p.method_metadata_bytes(p.method_name(i));
    if (!tables.ok() || tables.value() > (1u << 20)) continue;
    AlignedBytes memory(1 << 20);
    Result<Method> method =
        Method::create(loaded.session->value(), p.method_name(i), MethodMemory(memory));
    if (!method.ok()) continue;
    Limits limits;
    limits.steps = 1000;
    (void)method.value().execute(limits);
    (void)method.value().execute(limits);
  }
}

TEST(program, survives_every_changed_byte) {
  const AlignedBytes good = sums_program().bytes();
  for (size_t at = 0; at < good.size(); ++at)
    for (const int change : {1, 0x80, 0xff, 0x10}) {
      AlignedBytes bad = good;
      bad.data()[at] ^= std::byte{static_cast<uint8_t>(change)};
      fix_checksum(bad);
      use(std::move(bad));
    }
}

TEST(program, survives_random_words) {
  const AlignedBytes good = sums_program().bytes();
  std::mt19937 random(1);
  const uint32_t words[] = {0,          1,          2,          7,  0x7fffffff,
                            0x80000000, 0xffffffff, 0xfffffffe, 64, 0x10000};
  for (int round = 0; round < 20000; ++round) {
    AlignedBytes bad = good;
    for (uint32_t k = 0; k < 1 + random() % 4; ++k) {
      const uint32_t word = random() % 2 ? words[random() % 10] : random();
      const size_t at = random() % (good.size() / 4) * 4;
      std::memcpy(bad.data() + at, &word, 4);
    }
    fix_checksum(bad);
    use(std::move(bad));
  }
}

}  // namespace
}  // namespace taper::test
