// Weights that were packed once: the same bits as from dense ones, with less scratch.
#include <cstring>

#include "taper/kernels/optimized/narrow_records.h"
#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/optimized/packed.h"

namespace taper::tests {
namespace {

using namespace optimized;

/// A record that reads other layouts, and one of them.
struct Reader {
  const Kernel* kernel;
  const Packing* packing;
};

/// The records of an operator that read other layouts; `asking`: that ask for them.
std::vector<Reader> readers_of(const Operator& op, bool asking = true) {
  std::vector<Reader> found;
  const auto add = [&](const Kernel* k) {
    for (const Packing& p : k->packings) found.push_back({k, &p});
  };
  for (const Kernel* k : kernels_of(op)) add(k);
  for (const Kernel* k : portable::all)
    if (!asking && k->op == &op) add(k);
  return found;
}

TEST(layouts, are_read_by_a_portable_record_wherever_a_record_asks_for_one) {
  int asking = 0;
  for (const Kernel* k : optimized::all) {
    for (const Packing& wanted : k->packings) {
      ++asking;
      EXPECT_NE(wanted.bytes, nullptr) << k->name;
      int readers = 0;
      for (const Kernel* p : portable::all)
        for (const Packing& read : p->packings)
          if (p->op == k->op && read.from == wanted.from) {
            ++readers;
            EXPECT_EQ(p->expected[0].dtypes, k->expected[0].dtypes) << p->name;
            EXPECT_EQ(read.argument, wanted.argument) << p->name;
            EXPECT_EQ(read.unless, wanted.unless) << p->name;
            EXPECT_EQ(read.layout, wanted.layout) << p->name;
            EXPECT_EQ(read.bytes, nullptr) << p->name;
          }
      EXPECT_EQ(readers, 1) << k->name << " from layout " << static_cast<int>(wanted.from);
    }
  }
  EXPECT_GE(asking, 12);
}

size_t scratch_of(const Kernel& kernel, const std::vector<Slot>& slots) {
  alignas(8) std::byte plan[max_plan_bytes];
  Context context;
  EXPECT_EQ(kernel.prepare(context, plan, slots.data()), Error::ok);
  return context.scratch_bytes;
}

TEST(panels, lie_as_layout_says) {
  const Array dense = Array::random({21, 2, 3}, 1);
  for (const Reader& r : readers_of(ops::convolution)) {
    const Stored source(*dense.ref(), r.packing->from);
    const Packed packed(*r.packing, *source.ref());
    const std::vector<float> halves = source.widened();
    ASSERT_EQ(packed.bytes(), size_t{32 * 6 * 4});
    for (index_t i = 0; i < 32; ++i)
      for (index_t j = 0; j < 6; ++j)
        ASSERT_EQ(packed[static_cast<size_t>((i / 16 * 6 + j) * 16 + i % 16)],
                  i >= 21          ? 0
                  : halves.empty() ? dense[i * 6 + j]
                                   : halves[static_cast<size_t>(i * 6 + j)]);
  }
  const Array matrix = Array::random({6, 21}, 1);
  for (const Reader& r : readers_of(ops::mm)) {
    if (r.packing->from != Layout::dense) continue;
    const Packed packed(*r.packing, *matrix.ref());
    ASSERT_EQ(packed.bytes(), size_t{32 * 6 * 4});
    for (index_t i = 0; i < 32; ++i)
      for (index_t j = 0; j < 6; ++j)
        ASSERT_EQ(packed[static_cast<size_t>((i / 16 * 6 + j) * 16 + i % 16)],
                  i < 21 ? matrix[j * 21 + i] : 0);
  }
}

TEST(panels, of_halves_lie_as_layout_says) {
  constexpr index_t n = 21, depth = 7;
  const Array dense = Array::random({n, depth}, 1);
  int seen = 0;
  for (const Reader& r : readers_of(ops::linear)) {
    if (!is_in_halves(r.packing->layout)) continue;
    ++seen;
    const bool pairs = r.packing->layout == Layout::bf16_panels_of_first;
    const Stored source(*dense.ref(), r.packing->from);
    const auto* halves = static_cast<const uint16_t*>(source.ref()->data);
    const Packed packed(*r.packing, *source.ref());
    const index_t rows = pairs ? depth + 1 : depth;
    ASSERT_EQ(packed.bytes(), static_cast<size_t>(32 * rows * 2));
    for (index_t i = 0; i < 32; ++i)
      for (index_t k = 0; k < rows; ++k) {
        const index_t at = pairs ? 2 * ((i / 16 * rows / 2 + k / 2) * 16 + i % 16) + k % 2
                                 : (i / 16 * depth + k) * 16 + i % 16;
        ASSERT_EQ(packed.half(static_cast<size_t>(at)),
                  i < n && k < depth ? halves[i * depth + k] : 0);
      }
  }
  EXPECT_GE(seen, 2);
}

TEST(panels, are_not_for_matrices_that_would_be_mostly_zeros) {
  EXPECT_EQ(bytes_of_panels_of_first(*Array({15, 40}).ref()), 0u);
  EXPECT_EQ(bytes_of_panels_of_first(*Array({40}).ref()), 0u);
  EXPECT_EQ(bytes_of_panels_of_first(*Array({40, 0}).ref()), 0u);
  EXPECT_EQ(bytes_of_panels_of_last(*Array({40, 15}).ref()), 0u);
  EXPECT_EQ(bytes_of_panels_of_last(*Array({2, 40, 40}).ref()), 0u);
  EXPECT_EQ(bytes_of_filter_panels(*Array({32, 1, 3, 3}).ref()), 0u);  // one product a filter
}

/// A product of each kind, with the weight as given.
std::vector<Slot> arguments(const Kernel& k, const Array& x, const TensorRef* weight,
                            const Array& bias, const Array& out) {
  if (k.op == &ops::mm) return {slot(x), slot(weight), slot(out)};
  if (k.op == &ops::linear) return {slot(x), slot(weight), slot(bias), slot(out)};
  return {slot(bias), slot(x), slot(weight), slot(int64_t{2}), slot(int64_t{3}), slot(out)};
}

TEST(products, of_packed_weights_have_the_same_bits) {
  ThreadPool pool(2);
  int records = 0, portable_records = 0;
  for (const Operator* op : {&ops::mm, &ops::addmm, &ops::linear})
    for (const auto& [k, packing] : readers_of(*op, false)) {
      if (packing->bytes == nullptr) ++portable_records;
      ++records;
      const bool across = op == &ops::linear;
      for (const auto& [n, depth] : {std::pair<index_t, index_t>{16, 1},
                                     {17, 290},
                                     {31, 7},
                                     {40, 256},
                                     {65, 257},
                                     {200, 33},
                                     {129, 600}}) {
        const Array w = across ? Array::random({n, depth}, 2) : Array::random({depth, n}, 2),
                    bias = Array::random({n}, 3), all = Array::random({65, depth}, 4);
        Array turned = across ? Array::random({depth, n}, 5) : Array::random({n, depth}, 5);
        std::swap(turned.shape().sizes[0], turned.shape().sizes[1]);
        std::swap(turned.shape().strides[0], turned.shape().strides[1]);
        for (const Array* weight : {&w, static_cast<const Array*>(&turned)}) {
          if (weight == &turned && k->expected[packing->argument].strides == Strides::dense)
            continue;
          const Stored source(*weight->ref(), packing->from);
          const Packed packed(*packing, *source.ref());
          for (index_t m = 1; m <= 65; ++m) {
            Array x({m, depth});
            std::memcpy(x.data(), all.data(), static_cast<size_t>(x.numel()) * sizeof(float));
            const Threads* threads = m % 4 == 0 ? pool.threads() : nullptr;
            Array want({m, n}, 77), got({m, n}, 78);
            call(*k, arguments(*k, x, source.ref(), bias, want), threads);
            call(*k, arguments(*k, x, packed.ref(), bias, got), threads);
            ASSERT_EQ(std::memcmp(want.data(), got.data(),
                                  static_cast<size_t>(want.numel()) * sizeof(float)),
                      0)
                << k->name << ": " << m << " x " << depth << " x " << n;
          }
        }
      }
    }
  EXPECT_GE(records, 18);
  EXPECT_EQ(portable_records, 9);
}

// Rows that lie so far apart share the sets of a cache, so they are packed.
TEST(products, of_packed_weights_have_the_same_bits_if_rows_lie_far_apart) {
  constexpr index_t m = 65, depth = 4096, n = 145;
  const Array w = Array::random({n, depth}, 1), bias = Array::random({n}, 2),
              x = Array::random({m, depth}, 3);
  for (const auto& [k, packing] : readers_of(ops::linear)) {
    const Stored source(*w.ref(), packing->from);
    const Packed packed(*packing, *source.ref());
    Array want({m, n}, 77), got({m, n}, 78);
    call(*k, arguments(*k, x, source.ref(), bias, want));
    call(*k, arguments(*k, x, packed.ref(), bias, got));
    EXPECT_TRUE(same_bits(want, got)) << k->name;
  }
}

// Pairs are multiplied by an instruction of their own, from rounded rows. The weights are so large
// that threads share them where they are widened.
TEST(products, of_halves_are_those_of_the_widened_weights) {
  ThreadPool pool(3);
  for (const Operator* op : {&ops::mm, &ops::addmm, &ops::linear})
    for (const auto& [k, packing] : readers_of(*op, false)) {
      if (packing->from == Layout::dense) continue;
      const bool pairs =
          packing->from == Layout::dense_bf16 && k->needs.has(features_of(CpuLevel::avx512_bf16));
      constexpr index_t n = 70, depth = 300;
      const Array w = op == &ops::linear ? Array::random({n, depth}, 2)
                                         : Array::random({depth, n}, 2),
                  bias = Array::random({n}, 3), x = Array::random({9, depth}, 4);
      const Stored halves(*w.ref(), packing->from);
      const std::vector<float> values = halves.widened();
      Array wide({w.size(0), w.size(1)}), want({9, n}, 77), got({9, n}, 78);
      std::memcpy(wide.data(), values.data(), static_cast<size_t>(wide.numel()) * sizeof(float));
      call(*k, arguments(*k, x, wide.ref(), bias, want));
      call(*k, arguments(*k, x, halves.ref(), bias, got), pool.threads());
      for (index_t i = 0; i < want.numel(); ++i)
        ASSERT_NEAR(want[i], got[i], pairs ? 0.1 : 0) << k->name << ", element " << i;
    }
}

TEST(products, of_packed_weights_ask_for_less_scratch) {
  const Array x({64, 512}), w({256, 512}), bias({256}), out({64, 256});
  for (const auto& [k, packing] : readers_of(ops::linear)) {
    if (packing->from != Layout::dense) continue;
    const Packed packed(*packing, *w.ref());
    EXPECT_LT(2 * scratch_of(*k, arguments(*k, x, packed.ref(), bias, out)),
              scratch_of(*k, arguments(*k, x, w.ref(), bias, out)));
  }
}

TEST(products, of_packed_weights_take_rows_of_any_strides) {
  const Array w = Array::random({300, 50}, 1);
  Array x = Array::random({300, 7}, 2);  // columns dense
  std::swap(x.shape().sizes[0], x.shape().sizes[1]);
  std::swap(x.shape().strides[0], x.shape().strides[1]);
  for (const auto& [k, packing] : readers_of(ops::mm, false))
    for (const index_t m : {1, 3, 7}) {
      x.shape().sizes[0] = m;
      const Stored source(*w.ref(), packing->from);
      const Packed packed(*packing, *source.ref());
      Array want({m, 50}, 77), got({m, 50}, 78);
      call(*k, {slot(x), slot(source.ref()), slot(want)});
      call(*k, {slot(x), slot(packed.ref()), slot(got)});
      EXPECT_EQ(want.values(), got.values()) << k->name;
    }
}

void expect_refused(const NarrowRecord& r, const std::vector<Slot>& slots) {
  EXPECT_FALSE(r.fits(slots.data())) << r.narrow->name;
  alignas(8) std::byte plan[max_plan_bytes];
  ErrorInfo info;
  Context context;
  context.info = &info;
  EXPECT_EQ(r.narrow->prepare(context, plan, slots.data()), Error::not_supported);
  EXPECT_NE(std::strstr(info.message, "taper export --kernels"), nullptr) << r.narrow->name;
}

TEST(narrow_products, have_the_bits_of_the_record_that_reads_all_layouts) {
  for (const NarrowRecord& r : narrow_products) {
    if (!cpu_features().has(r.any->needs)) continue;
    const Kernel& k = *r.narrow;
    const bool is_of_rows = std::strstr(k.name, "_row") != nullptr;
    EXPECT_EQ(k.op, r.any->op);
    const bool across = k.op == &ops::linear;
    constexpr index_t n = 213, depth = 300;
    const Array w = across ? Array::random({n, depth}, 1) : Array::random({depth, n}, 1),
                bias = Array::random({n}, 2);
    const Packed packed(k.packings[0], *w.ref());
    for (const index_t m : {1, 2, 3, 4, 5, 12, 65}) {
      const Array x = Array::random({m, depth}, 3);
      Array want({m, n}, 77), got({m, n}, 78);
      const std::vector<Slot> slots = arguments(k, x, packed.ref(), bias, got);
      if (is_of_rows && m > 1) {
        expect_refused(r, slots);
        continue;
      }
      EXPECT_TRUE(r.fits(slots.data())) << k.name;
      call(*r.any, arguments(k, x, packed.ref(), bias, want));
      call(k, slots);
      EXPECT_TRUE(same_bits(want, got)) << k.name << " of " << m << " rows";
    }
  }
}

TEST(narrow_products, refuse_weights_that_are_not_packed) {
  const Array x({1, 32}), w({32, 32}), bias({32}), out({1, 32});
  for (const NarrowRecord& r : narrow_products)
    expect_refused(r, arguments(*r.any, x, w.ref(), bias, out));
}

TEST(narrow_products, of_rows_do_not_fit_a_batch_of_unknown_size) {
  Array x({1, 32});
  const Array w({32, 32}), bias({32}), out({1, 32});
  int of_rows = 0;
  for (const NarrowRecord& r : narrow_products) {
    if (std::strstr(r.narrow->name, "_row") == nullptr) continue;
    ++of_rows;
    const Packed packed(r.narrow->packings[0], *w.ref());
    x.shape().sizes[0] = 1;
    EXPECT_TRUE(r.fits(arguments(*r.any, x, packed.ref(), bias, out).data())) << r.narrow->name;
    x.shape().sizes[0] = NarrowRecord::unknown_size;
    EXPECT_FALSE(r.fits(arguments(*r.any, x, packed.ref(), bias, out).data())) << r.narrow->name;
  }
  EXPECT_GE(of_rows, 1);
}

struct Filters {
  std::vector<index_t> input, weight;
  std::vector<int64_t> stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
};
const Filters filters[] = {
    {{1, 64, 7, 7}, {48, 64, 1, 1}},                      // panels are read as they lie
    {{2, 40, 14, 14}, {72, 40, 3, 3}, {1}, {1}},          //
    {{1, 24, 7, 7}, {33, 24, 3, 3}, {1}, {1}},            // the last panel is narrow
    {{1, 96, 14, 14}, {192, 96, 3, 3}, {2}, {1}},         //
    {{1, 600, 7, 7}, {40, 600, 1, 1}},                    // three blocks of sums
    {{1, 64, 7, 7}, {96, 16, 3, 3}, {1}, {1}, {1}, 4},    // panels cross groups
    {{1, 64, 7, 7}, {64, 16, 3, 3}, {1}, {1}, {1}, 4},    // panels belong to one group
    {{1, 128, 9, 9}, {128, 4, 3, 3}, {1}, {1}, {1}, 32},  //
    {{1, 32, 9, 9}, {16, 2, 3, 3}, {1}, {1}, {1}, 16},    // one channel a group
    {{1, 3, 40, 40}, {32, 3, 3, 3}, {2}, {1}},            // a large image: packed again
    {{1, 16, 56, 56}, {24, 16, 1, 1}},                    //
    {{3, 20, 5, 3}, {50, 20, 2, 2}, {1}, {1}, {2}},       // a narrow one
    {{1, 64, 300}, {48, 64, 3}, {1}, {1}},                // one dimension
    {{1, 20, 4, 6, 7}, {33, 20, 2, 3, 3}, {1}, {1}},      // three
};

TEST(convolution, of_packed_filters_has_the_same_bits) {
  ThreadPool pool(3);
  const std::vector<int64_t> none{0};
  int records = 0;
  for (const auto& [k, packing] : readers_of(ops::convolution, false)) {
    ++records;
    for (const Filters& f : filters) {
      const Array x = Array::random(f.input, 1), w = Array::random(f.weight, 2),
                  bias = Array::random({f.weight[0]}, 3);
      const Stored source(*w.ref(), packing->from);
      const Packed packed(*packing, *source.ref());
      std::vector<Slot> slots = {slot(x),         slot(w),          slot(bias),  slot(f.stride),
                                 slot(f.padding), slot(f.dilation), slot(false), slot(none),
                                 slot(f.groups),  absent()};
      Facts<Extent> facts;
      TensorType<Extent> type;
      ASSERT_TRUE(k->shape(facts, slots.data(), &type)) << facts.message;
      std::vector<index_t> sizes;
      for (int d = 0; d < type.rank; ++d) sizes.push_back(type.sizes[d].value);
      for (const Threads* threads : {static_cast<const Threads*>(nullptr), pool.threads()}) {
        Array want(sizes, 77), got(sizes, 78);
        slots[1] = slot(source.ref()), slots.back() = slot(want);
        call(*k, slots, threads);
        slots[1] = slot(packed.ref()), slots.back() = slot(got);
        call(*k, slots, threads);
        ASSERT_EQ(want.values(), got.values())
            << k->name << ", filters of " << f.weight[0] << " channels for " << f.input[2];
      }
    }
  }
  EXPECT_GE(records, 2);
}

}  // namespace
}  // namespace taper::tests
