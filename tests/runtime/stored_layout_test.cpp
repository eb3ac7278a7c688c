// Constants that a program stores in layouts of kernels.
#include <gmock/gmock.h>

#include <cstring>

#include "weighing.h"

namespace taper::test {
namespace {

using testing::ElementsAre;

/// The same program with its constant packed in the file.
Weighing stored() {
  Weighing w;
  auto& c = w.file.constants[w.constant];
  std::vector<float> panel(3 * 16);
  const index_t sizes[] = {2, 3};
  const Shape shape = Shape::dense(sizes);
  pack_weight({c.data.data(), &shape, DType::f32}, panel.data());
  c.layout = format::Layout::panels_of_first;
  c.data.resize(panel.size() * sizeof(float));
  std::memcpy(c.data.data(), panel.data(), c.data.size());
  return w;
}

TEST(stored_layout, is_read_where_it_lies) {
  const Weighing w = stored();
  Loaded loaded(w.file, {}, set);
  ASSERT_EQ(loaded.error(), Error::ok);
  packings = packed_calls = 0;
  EXPECT_THAT(result_of(loaded), ElementsAre(6, 15));
  EXPECT_EQ(packed_calls, 1);
  EXPECT_TRUE(loaded.program->value().data().constants[0].is_packed());
  EXPECT_EQ(w.packed().size(), 0u);  // nothing is left to pack
  EXPECT_EQ(packings, 0);
}

TEST(stored_layout, is_refused_by_kernels_that_do_not_read_it) {
  const auto error_of = [](Weighing& w, KernelSet kernels = set) {
    Loaded loaded(w.file, {}, kernels);
    EXPECT_EQ(loaded.error(), Error::ok);
    return loaded.method("forward").error();
  };
  Kernel plain = weigh_packed;
  plain.packings = {};
  const Kernel* const dense[] = {&plain};
  const Kernel* const other[] = {&weigh_otherwise};
  Weighing w = stored();
  EXPECT_EQ(error_of(w, dense), Error::invalid_program);
  EXPECT_EQ(error_of(w, other), Error::invalid_program);
  for (const char* what : {"a kernel that wants it dense", "a flag that is set", "a list"})
    for (const Reader& reader : readers) {
      if (std::string_view(reader.what) != what) continue;
      Weighing other_reader = stored();
      reader.add(other_reader);
      EXPECT_EQ(error_of(other_reader), Error::invalid_program) << what;
    }
}

TEST(stored_layout, is_not_read_behind_its_end) {
  struct View {
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
  };
  const View views[] = {
      {{17, 3}, {3, 1}},                // two panels
      {{2, 4}, {4, 1}},                 // a deeper one
      {{1, 2}, {2, 1}, 1},              // a part that begins later
      {{2, 3}, {100, 1}},               // strides that leave it
      {{16}, {1}},                      // a vector, which a kernel may read as one row
      {{int64_t{1} << 40, 3}, {0, 0}},  // many times the same
      {{2, int64_t{1} << 60}, {0, 0}},  //
  };
  for (const View& view : views) {
    Weighing w = stored();
    MethodTables& m = w.m();
    const uint32_t v =
        m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, view.sizes, view.strides),
                DType::f32, view.offset);
    m.arguments[0] = m.tensor(v);
    m.arguments[2] = m.tensor(io_tensor(m, {m.literal(view.sizes[0] > 64 ? 1 : view.sizes[0])}));
    Loaded loaded(w.file, {}, set);
    EXPECT_EQ(loaded.error(), Error::ok);
    EXPECT_EQ(loaded.method("forward").error(), Error::invalid_program)
        << view.sizes[0] << " x " << view.sizes[1];
  }
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

/// A weight in blocks, as they lie or in panels.
TEST(stored_layout, in_blocks_holds_whole_rows_of_blocks) {
  static constexpr Packing reads[] = {{0, 1, Layout::q4_0, Layout::q4_0_panels, nullptr, nullptr},
                                      {0, 1, Layout::q6_k, Layout::q6_k_panels, nullptr, nullptr}};
  constexpr Kernel weigh_blocks =
      make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_blocks", {}, reads);
  const Kernel* const kernels[] = {&weigh_blocks};
  struct Case {
    format::Layout layout;
    size_t bytes;
    std::vector<int64_t> stored, seen;
    bool loads, runs;
    int64_t offset = 0;
  };
  using enum format::Layout;
  const Case cases[] = {
      {q4_0, 72, {2, 64}, {2, 64}, true, true},
      {q4_0, 74, {2, 64}, {2, 64}, false, false},
      {q4_0, 54, {2, 64}, {2, 64}, false, false},
      {q4_0, 72, {2, 64}, {4, 32}, true, true},
      {q4_0, 72, {2, 64}, {8, 16}, true, false},      // a block in two rows
      {q4_0, 72, {2, 64}, {3, 64}, true, false},      // more than there is
      {q4_0, 72, {2, 64}, {1, 64}, true, false, 64},  // a part that begins later
      {q6_k, 420, {2, 256}, {2, 256}, true, true},
      {q6_k, 420, {2, 256}, {4, 128}, true, false},
      {q4_0_panels, 576, {2, 64}, {2, 64}, true, true},
      {q4_0_panels, 574, {2, 64}, {2, 64}, true, false},
      {q4_0_panels, 576, {2, 64}, {17, 64}, true, false},
      {q4_0_panels, 576, {2, 64}, {2, 48}, true, false},
      {q4_0_panels, 320, {2, 32}, {2, 32}, true, true},  // up to a multiple of 64
      {q4_0_panels, 288, {2, 32}, {2, 32}, true, false},
      {q6_k_panels, 3392, {2, 256}, {2, 256}, true, true},
      {q6_k_panels, 3360, {2, 256}, {2, 256}, true, false},
      {q6_k_panels, 3392, {2, 256}, {2, 257}, true, false},
      {q4_0_panels, 1152, {2, 16, 64}, {2, 16, 64}, true, true},  // a stack of matrices
      {q4_0_panels, 1088, {2, 16, 64}, {2, 16, 64}, true, false},
      {q4_0_panels, 1152, {2, 16, 64}, {3, 16, 64}, true, false},
      {q4_0_panels, 1152, {2, 16, 64}, {2, 32, 64}, true, false},
      {q4_0_panels, 1152, {2, 16, 64}, {2, 16, 65}, true, false},
      {q4_0_panels, 1152, {2, 16, 64}, {2, 8, 64}, true, false},  // half a panel each
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << &c - cases);
    Weighing w;
    auto& constant = w.file.constants[w.constant];
    constant.layout = c.layout, constant.sizes = c.stored;
    constant.data.resize(c.bytes);
    MethodTables& m = w.m();
    const uint32_t v =
        m.value(Storage::constant, w.constant,
                Weighing::fixed_shape(m, c.seen, dense_strides(c.seen)), DType::f32, c.offset);
    m.values[w.weight] = m.values[v];  // the view of (2, 3) would not hold whole blocks
    m.arguments[0] = m.tensor(v);
    m.arguments[2] = m.tensor(io_tensor(m, {m.literal(c.seen[0])}));
    Loaded loaded(w.file, {}, kernels);
    EXPECT_EQ(loaded.error(), c.loads ? Error::ok : Error::invalid_program);
    if (c.loads) {
      EXPECT_EQ(loaded.method("forward").error(), c.runs ? Error::ok : Error::invalid_program);
    }
  }
}

/// The method's memory lies right behind the file, where the same weight in f32 would still be.
TEST(stored_layout, in_blocks_takes_no_more_memory_than_its_blocks) {
  static constexpr Packing reads[] = {{0, 1, Layout::q4_0, Layout::q4_0_panels, nullptr, nullptr}};
  constexpr Kernel weigh_blocks =
      make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_blocks", {}, reads);
  const Kernel* const kernels[] = {&weigh_blocks};
  Weighing w;
  auto& constant = w.file.constants[w.constant];
  constant.layout = format::Layout::q4_0, constant.sizes = {2, 4096};
  constant.data.resize(2 * 4096 / 32 * 18);
  const uint32_t v = w.m().value(Storage::constant, w.constant,
                                 Weighing::fixed_shape(w.m(), {2, 4096}, {4096, 1}));
  w.m().values[w.weight] = w.m().values[v];
  const AlignedBytes file = w.file.bytes();
  const size_t begin = (file.size() + 63) / 64 * 64;
  AlignedBytes memory(begin + 4096);
  std::memcpy(memory.data(), file.data(), file.size());
  const Span<const std::byte> bytes(memory.data(), static_cast<index_t>(file.size()));

  ErrorInfo info;
  AlignedBytes metadata(Program::metadata_bytes(bytes).value());
  Result<Program> program = Program::load(bytes, kernels, metadata);
  ASSERT_TRUE(program.ok());
  AlignedBytes session_memory(program.value().session_bytes());
  Result<Session> session = Session::create(program.value(), session_memory);
  ASSERT_TRUE(session.ok());
  const Span<std::byte> behind(memory.data() + begin, 4096);
  const Result<Method> method =
      Method::create(session.value(), "forward", MethodMemory(behind), &info);
  EXPECT_TRUE(method.ok()) << info.message;
}

/// A weight in halves, which a kernel reads as it lies or in panels.
TEST(stored_layout, in_halves_holds_two_bytes_for_each_element) {
  static constexpr Packing reads[] = {
      {0, 1, Layout::dense_bf16, Layout::bf16_panels_of_first, nullptr, nullptr},
      {0, 1, Layout::dense_f16, Layout::f16_panels_of_first, nullptr, nullptr}};
  constexpr Kernel weigh_halves =
      make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_halves", {}, reads);
  const Kernel* const kernels[] = {&weigh_halves};
  struct Case {
    format::Layout layout;
    size_t bytes;
    std::vector<int64_t> sizes;
    bool loads, runs;
    int64_t offset = 0;
  };
  const Case cases[] = {
      {format::Layout::dense_bf16, 12, {2, 3}, true, true},
      {format::Layout::dense_f16, 12, {2, 3}, true, true},
      {format::Layout::dense_bf16, 24, {2, 3}, false, false},
      {format::Layout::dense_f16, 10, {2, 3}, false, false},
      {format::Layout::dense_bf16, 12, {1, 2}, true, false, 1},  // a part that begins later
      {format::Layout::dense_bf16, 12, {3, 3}, true, false},     // more than there is
      {format::Layout::bf16_panels_of_first, 128, {2, 3}, true, true},
      {format::Layout::bf16_panels_of_first, 126, {2, 3}, true, false},
      {format::Layout::bf16_panels_of_first, 128, {17, 3}, true, false},
      {format::Layout::f16_panels_of_first, 96, {2, 3}, true, true},
      {format::Layout::f16_panels_of_first, 94, {2, 3}, true, false},
      {format::Layout::f16_panels_of_first, 96, {2, 3}, true, false, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << &c - cases);
    Weighing w;
    auto& constant = w.file.constants[w.constant];
    constant.layout = c.layout;
    constant.data.resize(c.bytes);
    MethodTables& m = w.m();
    const uint32_t v =
        m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, c.sizes, {c.sizes[1], 1}),
                DType::f32, c.offset);
    m.arguments[0] = m.tensor(v);
    m.arguments[2] = m.tensor(io_tensor(m, {m.literal(c.sizes[0])}));
    Loaded loaded(w.file, {}, kernels);
    EXPECT_EQ(loaded.error(), c.loads ? Error::ok : Error::invalid_program);
    if (c.loads) {
      EXPECT_EQ(loaded.method("forward").error(), c.runs ? Error::ok : Error::invalid_program);
    }
  }
}

// They would be read as if they were dense.
TEST(stored_layout, is_no_output_and_gives_no_size) {
  for (const bool as_output : {true, false}) {
    Weighing w = stored();
    MethodTables& m = w.m();
    if (as_output)
      m.output("w", w.weight);
    else
      m.symbol(format::SymbolSource::element, w.weight, 0, 0, 0, format::NumberType::f64);
    Loaded loaded(w.file, {}, set);
    ASSERT_EQ(loaded.error(), Error::ok);
    EXPECT_EQ(loaded.method("forward").error(), Error::invalid_program) << as_output;
  }
}

// A newer version may have more layouts than this one.
TEST(stored_layout, that_is_unknown_is_passed_over) {
  Weighing w;
  w.file.constants[w.constant].unknown = 2;
  Loaded loaded(w.file, {}, set);
  ASSERT_EQ(loaded.error(), Error::ok);
  EXPECT_THAT(result_of(loaded), ElementsAre(6, 15));
}

TEST(stored_layout, that_is_unknown_refuses_only_the_methods_that_read_it) {
  Weighing w;
  const uint32_t known = w.constant,
                 newer = w.file.constant<float>("newer", {2, 3}, {6, 5, 4, 3, 2, 1});
  w.file.constants[newer].unknown = 1, w.file.constants[newer].encodings = 0;
  w.constant = newer;
  w.file.methods.push_back(w.method("newer"));
  w.constant = known;
  Loaded loaded(w.file, {}, set);
  ASSERT_EQ(loaded.error(), Error::ok);
  EXPECT_THAT(result_of(loaded), ElementsAre(6, 15));
  EXPECT_EQ(loaded.method("newer").error(), Error::not_supported);
  EXPECT_THAT(w.packed().size(), testing::Gt(0u));  // of the constant that is known
}

// The sizes of an encoding say how kernels see a constant, not how much there is of it.
TEST(stored_layout, in_halves_has_the_bytes_of_the_constant) {
  Weighing w;
  auto& c = w.file.constants[w.constant];
  c.layout = format::Layout::dense_bf16, c.encoded = {1}, c.data.resize(2);
  Loaded loaded(w.file, {}, set);
  ASSERT_EQ(loaded.error(), Error::ok);
  EXPECT_EQ(loaded.program->value().data().constants[0].data, nullptr);
}

TEST(stored_layout, of_winograd_has_sixteen_elements_for_each_nine_of_a_filter) {
  static constexpr Packing reads[] = {
      {0, 1, Layout::dense, Layout::winograd_panels, nullptr, nullptr}};
  constexpr Kernel weigh_winograd =
      make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_winograd", {}, reads);
  const Kernel* const kernels[] = {&weigh_winograd};
  const auto error_of = [&](size_t floats, int64_t filters, int64_t elements) {
    Weighing w;
    auto& c = w.file.constants[w.constant];
    c.sizes = {filters, elements};
    c.layout = format::Layout::winograd_panels;
    c.data.resize(floats * sizeof(float));
    MethodTables& m = w.m();
    const uint32_t v =
        m.value(Storage::constant, w.constant,
                Weighing::fixed_shape(m, {filters, elements}, {elements, 1}), DType::f32);
    m.arguments[0] = m.tensor(v);
    m.arguments[2] = m.tensor(io_tensor(m, {m.literal(filters)}));
    Loaded loaded(w.file, {}, kernels);
    EXPECT_EQ(loaded.error(), Error::ok);
    return loaded.method("forward").error();
  };
  EXPECT_EQ(error_of(256, 2, 9), Error::ok);
  EXPECT_EQ(error_of(255, 2, 9), Error::invalid_program);
  EXPECT_EQ(error_of(512, 16, 18), Error::ok);
  EXPECT_EQ(error_of(511, 16, 18), Error::invalid_program);
  EXPECT_EQ(error_of(512, 17, 9), Error::ok);
  EXPECT_EQ(error_of(511, 17, 9), Error::invalid_program);
}

}  // namespace
}  // namespace taper::test
