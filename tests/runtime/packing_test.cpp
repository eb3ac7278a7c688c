// Constants that kernels read in a layout of their own: which are packed, where, and how often.
#include "taper/runtime/packing/packing.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>

#include "programs.h"
#include "taper/runtime/program/tables.h"

namespace taper::test {
namespace ops {
inline constexpr Operator weigh{"weigh", Category::kernel,
                                "test::weigh(Tensor weight, bool other) -> Tensor"};
}
}  // namespace taper::test

namespace taper {

template <>
struct Rule<test::ops::weigh> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& weight, bool, TensorType<D>& out) {
    if (!facts.require(weight.rank == 1 || weight.rank == 2, "needs one or two dimensions"))
      return false;
    out.dtype = weight.dtype, out.rank = 1, out[0] = weight[0];
    return true;
  }
};

namespace test {
namespace {

using testing::ElementsAre;

int packings = 0, packed_calls = 0;

size_t bytes_of_weight(const TensorRef& dense) {
  return static_cast<size_t>(dense.shape->sizes[1]) * 16 * sizeof(float);
}
void pack_weight(const TensorRef& dense, void* packed) {
  ++packings;
  for (index_t k = 0; k < dense.shape->sizes[1]; ++k)
    for (index_t i = 0; i < 16; ++i)
      static_cast<float*>(packed)[k * 16 + i] =
          i < dense.shape->sizes[0]
              ? static_cast<const float*>(
                    dense.data)[i * dense.shape->strides[0] + k * dense.shape->strides[1]]
              : 0;
}
constexpr Packing packs_weight[] = {
    {0, 1, Layout::dense, Layout::panels_of_first, bytes_of_weight, pack_weight}};
constexpr Packing packs_otherwise[] = {
    {0, 1, Layout::dense, Layout::panels_of_last, bytes_of_weight, pack_weight}};

struct WeighPlan {
  index_t row, column;
};
Error prepare_weigh(Context&, WeighPlan& plan, AnyView<const float> weight, bool, View<float>) {
  const bool packed = weight.layout() != Layout::dense;
  plan = {packed ? 1 : weight.stride(0), packed ? 16 : weight.stride(1)};
  return Error::ok;
}
// The sum of each row of up to 16.
Error run_weigh(Context&, const WeighPlan& plan, AnyView<const float> weight, bool,
                View<float> out) {
  if (weight.layout() != Layout::dense) ++packed_calls;
  for (index_t i = 0; i < weight.size(0); ++i) {
    out.data()[i] = 0;
    for (index_t k = 0; k < weight.size(1); ++k)
      out.data()[i] += weight.data()[i * plan.row + k * plan.column];
  }
  return Error::ok;
}
constexpr Kernel weigh_packed =
    make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_packed", {}, packs_weight);
constexpr Kernel weigh_otherwise =
    make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_other", {}, packs_otherwise);
const Kernel* const set[] = {&weigh_packed, &add_f32, &negate_f32, &join_f32};

format::Argument flag(bool value) {
  return {value, 0, format::ArgumentKind::boolean, format::ArgumentForm::literal};
}

/// forward() -> the row sums of a constant (2, 3).
struct Weighing {
  ProgramFile file;
  uint32_t kernel, constant, weight, result;

  Weighing() {
    kernel = file.kernel(ops::weigh, {DType::f32, DType::f32});
    constant = file.constant<float>("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    file.methods.push_back(method("forward"));
  }
  MethodTables& m() { return file.methods[0]; }
  MethodTables method(const char* name) {
    MethodTables m;
    m.name = name;
    weight = m.value(Storage::constant, constant, fixed_shape(m, {2, 3}, {3, 1}));
    result = io_tensor(m, {m.literal(2)});
    m.run(kernel, {m.tensor(weight), flag(false), m.tensor(result)});
    m.output("y", result);
    return m;
  }
  static uint32_t fixed_shape(MethodTables& m, std::vector<int64_t> sizes,
                              std::vector<int64_t> strides) {
    std::vector<uint32_t> s, t;
    for (const int64_t n : sizes) s.push_back(m.literal(n));
    for (const int64_t n : strides) t.push_back(m.literal(n));
    return m.shape(s, t);
  }
  /// What some kernels want packed: nothing, or the memory for LoadOptions::packed.
  AlignedBytes packed(KernelSet kernels = set) const {
    Loaded loaded(file, {}, kernels);
    EXPECT_EQ(loaded.error(), Error::ok) << (loaded.info.message ? loaded.info.message : "");
    if (!loaded.program->ok()) return AlignedBytes();
    const Program& program = loaded.program->value();
    AlignedBytes workspace(packing_workspace(program));
    AlignedBytes memory(find_packed(program, workspace));
    if (memory.size() > 0) {
      EXPECT_EQ(pack(program, workspace, memory), Error::ok);
    }
    return memory;
  }
};

/// A program with its constants packed for `set`.
Loaded load_packed(const ProgramFile& file, const AlignedBytes& packed) {
  LoadOptions options;
  options.packed = packed;
  return Loaded(file, options, set);
}

std::vector<float> result_of(Loaded& loaded, const char* name = "forward") {
  Result<Method> method = loaded.method(name);
  if (!method.ok() || method->execute() != Error::ok) return {};
  return elements(method->output(0));
}

TEST(packing, happens_once_for_all_methods_and_sessions) {
  Weighing w;
  w.file.methods.push_back(w.method("other"));
  packings = packed_calls = 0;
  const AlignedBytes packed = w.packed();
  EXPECT_EQ(packed.size(), size_t{64 + 3 * 16 * 4 + 64});
  EXPECT_EQ(packings, 1);
  Loaded loaded = load_packed(w.file, packed);
  ASSERT_EQ(loaded.error(), Error::ok);
  const Program& program = loaded.program->value();
  EXPECT_TRUE(program.data().constants[0].is_packed());
  // what kernels read is not in the file
  std::memset(loaded.file.data() + program.table().segments()->Get(0)->offset(), 0, 24);
  EXPECT_THAT(result_of(loaded), ElementsAre(6, 15));
  EXPECT_THAT(result_of(loaded, "other"), ElementsAre(6, 15));
  AlignedBytes memory(program.session_bytes());
  ASSERT_TRUE(Session::create(program, memory).ok());
  EXPECT_EQ(packings, 1);
  EXPECT_EQ(packed_calls, 2);
}

TEST(packing, does_not_happen_without_memory_for_it) {
  packings = packed_calls = 0;
  Loaded loaded(Weighing().file, {}, set);
  ASSERT_EQ(loaded.error(), Error::ok);
  EXPECT_FALSE(loaded.program->value().data().constants[0].is_packed());
  EXPECT_THAT(result_of(loaded), ElementsAre(6, 15));
  EXPECT_EQ(packings + packed_calls, 0);
}

TEST(packing, gives_bytes_without_addresses) {
  const Weighing w;
  const AlignedBytes packed = w.packed(), again = w.packed();
  ASSERT_EQ(packed.size(), again.size());
  EXPECT_EQ(std::memcmp(packed.data(), again.data(), packed.size() - 64), 0);
}

TEST(packing, refuses_memory_that_is_too_small_or_lies_anywhere) {
  Loaded loaded(Weighing().file, {}, set);
  const Program& program = loaded.program->value();
  AlignedBytes workspace(packing_workspace(program));
  const size_t bytes = find_packed(program, workspace);
  AlignedBytes memory(bytes + 64);
  EXPECT_EQ(pack(program, workspace, {memory.data(), static_cast<index_t>(bytes - 1)}),
            Error::out_of_memory);
  EXPECT_EQ(pack(program, workspace, {memory.data() + 8, static_cast<index_t>(bytes)}),
            Error::invalid_argument);
  Span<std::byte> all = workspace;
  EXPECT_EQ(find_packed(program, all.part(0, all.size() - 1)), 0u);
}

// The layout panels_of_first of a matrix with any number of rows.
size_t bytes_of_panels(const TensorRef& dense) {
  return static_cast<size_t>((dense.shape->sizes[0] + 15) / 16 * 16 * dense.shape->sizes[1]) *
         sizeof(float);
}
void pack_panels(const TensorRef& dense, void* packed) {
  std::memset(packed, 0, bytes_of_panels(dense));
  const index_t depth = dense.shape->sizes[1];
  for (index_t i = 0; i < dense.shape->sizes[0]; ++i)
    for (index_t k = 0; k < depth; ++k)
      static_cast<float*>(packed)[(i / 16 * depth + k) * 16 + i % 16] =
          static_cast<const float*>(dense.data)[i * depth + k];
}
constexpr Packing packs_panels[] = {
    {0, 1, Layout::dense, Layout::panels_of_first, bytes_of_panels, pack_panels}};
constexpr Kernel weigh_panels =
    make_kernel<ops::weigh, prepare_weigh, run_weigh>("weigh_f32_panels", {}, packs_panels);

// What a file would hold that gets its pieces.
struct Receiver {
  AlignedBytes whole, piece;
  std::vector<size_t> sizes;
  int most = 1000;  // pieces that are taken
};
PackedPieces pieces_to(Receiver& receiver) {
  PackedPieces pieces;
  pieces.user = &receiver;
  pieces.memory = [](void* user, size_t bytes) {
    Receiver& r = *static_cast<Receiver*>(user);
    r.piece = AlignedBytes(bytes);
    return r.piece.data();
  };
  pieces.write = [](void* user, size_t place, Span<const std::byte> piece) {
    Receiver& r = *static_cast<Receiver*>(user);
    std::memcpy(r.whole.data() + place, piece.data(), static_cast<size_t>(piece.size()));
    r.sizes.push_back(static_cast<size_t>(piece.size()));
    return --r.most >= 0;
  };
  return pieces;
}

TEST(packing, gives_the_same_bytes_in_pieces_of_some_panels) {
  constexpr int64_t rows = 16 * 20 + 5, depth = 2048;
  Weighing w;
  std::vector<float> weight(static_cast<size_t>(rows * depth));
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i);
  w.constant = w.file.constant<float>("large", {rows, depth}, weight);
  MethodTables& m = w.m();
  m = {};
  m.name = "forward";
  w.weight =
      m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, {rows, depth}, {depth, 1}));
  w.result = io_tensor(m, {m.literal(rows)});
  m.run(w.kernel, {m.tensor(w.weight), flag(false), m.tensor(w.result)});
  m.output("y", w.result);
  const Kernel* const kernels[] = {&weigh_panels};
  Loaded loaded(w.file, {}, kernels);
  ASSERT_EQ(loaded.error(), Error::ok) << loaded.info.message;
  const Program& program = loaded.program->value();
  AlignedBytes workspace(packing_workspace(program));
  const size_t bytes = find_packed(program, workspace);
  AlignedBytes memory(bytes), table(packed_table_bytes(program));
  ASSERT_EQ(pack(program, workspace, memory), Error::ok);

  Receiver receiver{AlignedBytes(bytes), AlignedBytes(), {}};
  const PackedPieces pieces = pieces_to(receiver);
  PackOptions options;
  options.pieces = &pieces;
  static size_t given_back;
  given_back = 0;
  options.done = [](void*, Span<const std::byte> dense) {
    given_back += static_cast<size_t>(dense.size());
  };
  ASSERT_EQ(pack(program, workspace, table, options), Error::ok);
  EXPECT_EQ(std::memcmp(receiver.whole.data(), memory.data(), bytes), 0);
  EXPECT_EQ(given_back, weight.size() * sizeof(float));
  // a megabyte has eight panels; then comes the table
  constexpr size_t panel = 16 * depth * sizeof(float);
  EXPECT_THAT(receiver.sizes,
              ElementsAre(8 * panel, 8 * panel, 5 * panel, packed_table_bytes(program)));

  const auto* entry = &reinterpret_cast<const internal::PackedConstants*>(memory.data())->of(1);
  const auto* packed = reinterpret_cast<const float*>(memory.data() + entry->place);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      ASSERT_EQ(packed[(i / 16 * depth + k) * 16 + i % 16], static_cast<float>(i * depth + k));

  Receiver full{AlignedBytes(bytes), AlignedBytes(), {}, 1};
  const PackedPieces refused = pieces_to(full);
  options.pieces = &refused;
  EXPECT_EQ(pack(program, workspace, table, options), Error::limit_reached);
  EXPECT_EQ(full.sizes.size(), 2u);
}

TEST(packing, is_for_one_program_and_its_kernels) {
  const Weighing w;
  const AlignedBytes packed = w.packed();
  LoadOptions options;
  options.packed = packed;
  const Kernel* const other[] = {&weigh_otherwise};
  EXPECT_EQ(Loaded(w.file, options, other).error(), Error::invalid_argument);
  Weighing another;
  another.file.constants[0].path = "v";
  EXPECT_EQ(Loaded(another.file, options, set).error(), Error::invalid_argument);
  EXPECT_EQ(Loaded(w.file, options, set).error(), Error::ok);
}

TEST(packing, follows_the_view_that_kernels_see) {
  Weighing w;
  MethodTables& m = w.m();
  m.shapes.clear(), m.values.clear(), m.instructions.clear(), m.arguments.clear();
  m.buffers.clear(), m.outputs.clear(), m.dims.clear();
  const uint32_t turned =
      m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, {3, 2}, {1, 3}));
  const uint32_t y = io_tensor(m, {m.literal(3)});
  m.run(w.kernel, {m.tensor(turned), flag(false), m.tensor(y)});
  m.output("y", y);
  const AlignedBytes packed = w.packed();
  Loaded loaded = load_packed(w.file, packed);
  ASSERT_EQ(loaded.error(), Error::ok);
  EXPECT_TRUE(loaded.program->value().data().constants[0].is_packed());
  EXPECT_THAT(result_of(loaded), ElementsAre(5, 7, 9));
}

struct Reader {
  const char* what;
  std::function<void(Weighing&)> add;
  std::vector<float> result = {6, 15};
};

// A second reader of the constant, or another way to read it.
const Reader readers[] = {
    {"a kernel that wants it dense",
     [](Weighing& w) {
       const uint32_t negate = w.file.kernel(ops::negate, {DType::f32, DType::f32});
       const uint32_t t = io_tensor(w.m(), {w.m().literal(2), w.m().literal(3)});
       w.m().run(negate, {w.m().tensor(w.weight), w.m().tensor(t)});
     }},
    {"the same kernel through another view",
     [](Weighing& w) {
       const uint32_t turned =
           w.m().value(Storage::constant, w.constant, Weighing::fixed_shape(w.m(), {3, 2}, {1, 3}));
       const uint32_t t = io_tensor(w.m(), {w.m().literal(3)});
       w.m().run(w.kernel, {w.m().tensor(turned), flag(false), w.m().tensor(t)});
     }},
    {"a part of it",
     [](Weighing& w) {
       const uint32_t part =
           w.m().value(Storage::constant, w.constant, Weighing::fixed_shape(w.m(), {1, 3}, {3, 1}));
       w.m().arguments[0] = w.m().tensor(part);
       w.m().arguments[2] = w.m().tensor(io_tensor(w.m(), {w.m().literal(1)}));
       w.m().outputs[0].value = w.m().size(w.m().values) - 1;
     },
     {6}},
    {"a size that is not a literal",
     [](Weighing& w) {
       MethodTables& m = w.m();
       const uint32_t two =
           m.node(format::Operation::add, format::NumberType::i64, m.literal(1), m.literal(1));
       const uint32_t view = m.value(Storage::constant, w.constant,
                                     m.shape({two, m.literal(3)}, {m.literal(3), m.literal(1)}));
       m.arguments[0] = m.tensor(view);
     }},
    {"a flag that is set", [](Weighing& w) { w.m().arguments[1] = flag(true); }},
    {"a list",
     [](Weighing& w) {
       MethodTables& m = w.m();
       const uint32_t join = w.file.kernel(ops::join, {DType::f32, DType::f32});
       const uint32_t row =
           m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, {6}, {1}));
       const uint32_t t = io_tensor(m, {m.literal(6)});
       const format::Argument list = m.tensors({row});
       m.run(join, {list, m.tensor(t)});
     }},
    {"an output", [](Weighing& w) { w.m().output("weight", w.weight); }},
    {"a state's initial value",
     [](Weighing& w) {
       w.file.state("s", {2, 3}, DType::f32, w.constant);
     }},
    {"another method, densely",
     [](Weighing& w) {
       MethodTables m = w.method("other");
       m.arguments[1] = flag(true);
       w.file.methods.push_back(m);
     }},
};

TEST(packing, leaves_a_constant_dense_that_is_read_in_another_way_too) {
  for (const Reader& reader : readers) {
    Weighing w;
    reader.add(w);
    EXPECT_EQ(w.packed().size(), 0u) << reader.what;
    Loaded loaded(w.file, {}, set);
    EXPECT_EQ(result_of(loaded), reader.result) << reader.what;
  }
}

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
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << &c - cases);
    Weighing w;
    auto& constant = w.file.constants[w.constant];
    constant.layout = c.layout, constant.sizes = c.stored;
    constant.data.resize(c.bytes);
    MethodTables& m = w.m();
    const uint32_t v =
        m.value(Storage::constant, w.constant, Weighing::fixed_shape(m, c.seen, {c.seen[1], 1}),
                DType::f32, c.offset);
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

TEST(packing, packs_in_the_layout_of_the_record_that_was_taken) {
  const Weighing w;
  const Kernel* const other[] = {&weigh_otherwise};
  Kernel plain = weigh_packed;
  plain.packings = {};
  const Kernel* const dense[] = {&plain};
  EXPECT_GT(w.packed(other).size(), 0u);
  EXPECT_EQ(w.packed(dense).size(), 0u);
}

}  // namespace
}  // namespace test
}  // namespace taper
