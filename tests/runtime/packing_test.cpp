// Constants that kernels read in a layout of their own: which are packed, where, and how often.
#include "taper/runtime/packing/packing.h"

#include <gmock/gmock.h>

#include <cstring>

#include "weighing.h"

namespace taper::test {
namespace {

using testing::ElementsAre;

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

TEST(packing, leaves_a_constant_dense_that_is_read_in_another_way_too) {
  for (const Reader& reader : readers) {
    Weighing w;
    reader.add(w);
    EXPECT_EQ(w.packed().size(), 0u) << reader.what;
    Loaded loaded(w.file, {}, set);
    EXPECT_EQ(result_of(loaded), reader.result) << reader.what;
  }
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
}  // namespace taper::test
