// Programs whose weights lie in blocks: as in the file, packed at load, packed at export, and in a
// weights file.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"
#include "taper/tests/support/blocks.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper {
namespace {

using eager::Tensor;

constexpr int64_t words = 50, width = 256;

/// A table of words that is also the last product, as in language models.
struct Tied {
  Tensor table;

  explicit Tied(Layout layout)
      : table(ir::tensor_of(tests::random_blocks(layout, {words, width}))) {
    table.set_name("table");
  }
  Tensor operator()(const Tensor& indices) const {
    return eager::linear(eager::relu(eager::embedding(table, indices)), table);
  }
  void add_to(Exporter& exporter) const {
    exporter.method("forward", [this](Tensor i) { return (*this)(i); },
                    {input("i", {Dim::symbol("n", 1, 40)}, DType::i64)});
  }
};

std::vector<float> run(Module& module, const std::vector<int64_t>& indices) {
  std::vector<float> scores(indices.size() * words);
  const auto n = static_cast<int64_t>(indices.size());
  const Error error = module.forward({Input(indices.data(), {n})}, {scores});
  EXPECT_EQ(error, Error::ok) << module.message();
  return scores;
}

class BlockWeights : public testing::TestWithParam<Layout> {};

TEST_P(BlockWeights, give_the_bits_of_eager_however_they_lie) {
  const Tied model(GetParam());
  const std::vector<int64_t> indices{3, 0, 49, 17, 3};
  const std::vector<float> want = model(Tensor::from<int64_t>(indices, {5})).to_vector<float>();
  for (const bool exact : {true, false}) {
    std::vector<float> first;
    for (const std::string target : {"", "host"})
      for (const bool outside : {false, true}) {
        SCOPED_TRACE(testing::Message() << exact << " " << target << " " << outside);
        Exporter exporter;
        model.add_to(exporter);
        ExportOptions options;
        options.exact = exact, options.quiet = true;
        if (!target.empty()) options.target = Target(target);
        if (outside) options.weights = tests::scratch_file("w.taper").string();
        const std::string path = tests::scratch_file("m.taper").string();
        exporter.write(path, options);
        for (const bool pack : {true, false}) {
          ModuleOptions load;
          std::string why;
          load.pack_weights = pack ? PackWeights::always : PackWeights::never, load.message = &why;
          Result<Module> module = Module::load(path, load);
          ASSERT_TRUE(module.ok()) << why;
          const std::vector<float> got = run(module.value(), indices);
          if (exact)
            ASSERT_EQ(got, want);
          else if (first.empty())
            first = got;
          else
            ASSERT_EQ(got, first) << "packing changes no bit";
        }
      }
    if (exact) continue;
    float most = 0;
    for (const float v : want) most = std::max(most, std::fabs(v));
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(first[i], want[i], 0.02 * most) << i;
  }
}
/// 48 rows of each matrix are whole panels, and 50 are not.
TEST_P(BlockWeights, of_experts_give_the_same_bits_however_they_lie) {
  constexpr int64_t rows = 6, experts = 3;
  const std::vector<int32_t> ends{2, 2, 5};
  const std::vector<float> x = eager::randn({rows, width}).to_vector<float>();
  for (const int64_t columns : {48, 50}) {
    Tensor w = ir::tensor_of(tests::random_blocks(GetParam(), {experts, columns, width}));
    const std::vector<float> want =
        eager::grouped_mm(Tensor::from(x, {rows, width}), w.unpacked().transpose(1, 2),
                          Tensor::from(ends, {experts}))
            .to_vector<float>();
    float most = 0;
    for (const float v : want) most = std::max(most, std::fabs(v));
    w.set_name("w");
    for (const bool exact : {true, false}) {
      std::vector<float> first;
      for (const std::string target : {"", "host"}) {
        Exporter exporter;
        exporter.method("forward",
                        [&](const Tensor& a, const Tensor& e) {
                          return eager::grouped_mm(a, w.transpose(1, 2), e);
                        },
                        {input("x", {rows, width}), input("ends", {experts}, DType::i32)});
        ExportOptions options;
        options.exact = exact, options.quiet = true;
        if (!target.empty()) options.target = Target(target);
        const std::string path = tests::scratch_file("experts.taper").string();
        exporter.write(path, options);
        for (const PackWeights pack : {PackWeights::always, PackWeights::never}) {
          SCOPED_TRACE(testing::Message() << columns << " " << exact << " " << target);
          ModuleOptions load;
          std::string why;
          load.pack_weights = pack, load.message = &why;
          Result<Module> module = Module::load(path, load);
          ASSERT_TRUE(module.ok()) << why;
          std::vector<float> y(want.size());
          ASSERT_EQ(module.value().forward(
                        {Input(x.data(), {rows, width}), Input(ends.data(), {experts})}, {y}),
                    Error::ok)
              << module.value().message();
          if (first.empty()) first = y;
          ASSERT_EQ(y, first) << "packing changes no bit";
        }
      }
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(first[i], want[i], (exact ? 1e-5 : 0.02) * most) << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(formats, BlockWeights,
                         testing::Values(Layout::q4_0, Layout::q4_1, Layout::q5_1, Layout::q8_0,
                                         Layout::q4_k, Layout::q6_k, Layout::iq3_s, Layout::mxfp4,
                                         Layout::nf4, Layout::mxfp6_e2m3, Layout::mxfp6_e3m2,
                                         Layout::mxfp8_e4m3, Layout::mxfp8_e5m2));

/// The layouts of constants in a program for a target.
std::vector<Layout> stored_layouts(const std::string& target, bool exact) {
  Tensor w = ir::tensor_of(tests::random_blocks(Layout::q4_0, {words, width}));
  w.set_name("w");
  Exporter exporter;
  exporter.method("forward", [&](const Tensor& x) { return eager::linear(x, w); },
                  {input("x", {4, width})});
  ExportOptions options;
  options.exact = exact, options.quiet = true, options.target = Target(target);
  const std::vector<std::byte> bytes = exporter.write(options);
  std::vector<Layout> layouts;
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (const auto* constant :
       *format::GetProgram(bytes.data() + header.metadata_offset)->constants())
    for (const auto* encoding : *constant->encodings())
      layouts.push_back(static_cast<Layout>(encoding->layout()));
  return layouts;
}

// Records with NEON are not linked on another architecture, and ask for the same panels.
TEST(block_weights, are_packed_for_targets_of_another_architecture) {
  for (const bool exact : {true, false})
    for (const char* target : {"arm64", "x86-64-v3"})
      EXPECT_THAT(stored_layouts(target, exact), testing::Contains(Layout::q4_0_panels))
          << target << exact;
  EXPECT_THAT(stored_layouts("cortex-m3", false), testing::Contains(Layout::q4_0));
}

TEST(block_weights, are_tensors_that_eager_reads_and_never_writes) {
  const auto payload = tests::random_blocks(Layout::q4_1, {4, 64});
  Tensor w = ir::tensor_of(payload);
  EXPECT_EQ(w.layout(), Layout::q4_1);
  const std::vector<float> values = w.unpacked().to_vector<float>();
  EXPECT_EQ(w.to_vector<float>(), values);
  EXPECT_EQ((w + 0.0).to_vector<float>(), values);
  EXPECT_EQ(w.reshape({8, 32}).to_vector<float>(), values);
  EXPECT_EQ(eager::permute(eager::permute(w, {1, 0}), {1, 0}).to_vector<float>(), values);
  EXPECT_EQ(w.detach().clone().to_vector<float>(), values);
  EXPECT_EQ(eager::array_of(w).values<float>()[5], values[5]);
  EXPECT_EQ(w.contiguous().layout(), Layout::dense);
  EXPECT_THROW_MESSAGE(w.set_requires_grad(), "elements in halves or in blocks have no gradient");
  EXPECT_THROW_MESSAGE(w.data<float>(), "call unpacked() first");
  EXPECT_THROW_MESSAGE(w.zero_(),
                       "elements in halves or in blocks cannot be written; write to unpacked()");
  EXPECT_THROW_MESSAGE(Tensor::stored(payload->bytes.get(), Layout::q4_1, {4, 48}, payload),
                       "the last dimension of (4, 48) is not a multiple of the 32 elements");
  EXPECT_THROW_MESSAGE(Tensor::stored(payload->bytes.get(), Layout::q4_1_panels, {4, 64}, payload),
                       "elements in panels cannot be a tensor");
}

TEST(block_weights, give_the_bits_of_their_dense_copies_in_eager) {
  for (const Layout layout : {Layout::q4_0, Layout::q4_k, Layout::q6_k}) {
    const Tensor w = ir::tensor_of(tests::random_blocks(layout, {words, width})),
                 f32 = w.unpacked();
    const Tensor x = eager::randn({3, 2, width}), bias = eager::randn({words}),
                 indices = Tensor::from<int64_t>({4, 49, 0, 4}, {2, 2});
    EXPECT_EQ(eager::linear(x, w, bias).to_vector<float>(),
              eager::linear(x, f32, bias).to_vector<float>());
    EXPECT_EQ(eager::embedding(w, indices).to_vector<float>(),
              eager::embedding(f32, indices).to_vector<float>());
  }
}

/// The weight is 18 MB in blocks of 8 bits, and would be 64 MB in f32.
TEST(block_weights, are_widened_by_parts_where_a_gradient_goes_through_a_large_one) {
  constexpr int64_t rows = 16384 + 5, depth = 1024;
  const Tensor w = ir::tensor_of(tests::random_blocks(Layout::q8_0, {rows, depth}));
  const Tensor x = eager::randn({2, depth}), dy = eager::randn({2, rows});
  x.set_requires_grad();
  sum(eager::linear(x, w) * dy).backward();
  const Tensor want = eager::mm(dy, w.unpacked());
  const double most = eager::max(eager::abs(want)).item();
  EXPECT_LE(eager::max(eager::abs(x.grad() - want)).item(), 1e-5 * most);
}

/// A LoRA adapter of the second of two layers, and a factor in front of it, whose gradient goes
/// through the layer's weight.
TEST(block_weights, stay_in_blocks_while_an_adapter_beside_them_is_trained) {
  constexpr int64_t rows = 6, rank = 4;
  const Tensor w = ir::tensor_of(tests::random_blocks(Layout::q4_0, {width, width}));
  w.set_name("w");
  Tensor factor = eager::full({width}, 1.0), down = eager::randn({rank, width}),
         up = eager::zeros({width, rank});
  factor.set_name("factor"), down.set_name("down"), up.set_name("up");
  for (Tensor* t : {&factor, &down, &up}) t->set_requires_grad();
  optim::SGD optimizer({factor, down, up}, {.lr = 0.01});
  const auto train_step = [&](const Tensor& x, const Tensor& y) {
    const Tensor h = x * factor;
    const Tensor added = eager::linear(eager::linear(h, down), up);
    const Tensor loss = eager::mse_loss(eager::linear(h, w) + added, y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };
  const Tensor x = eager::randn({rows, width}), y = eager::randn({rows, width});
  Exporter exporter;
  exporter.method("train_step", train_step, {input("x", {rows, width}), input("y", {rows, width})},
                  {"loss"});
  const std::string path = tests::scratch_file("trained.taper").string();
  exporter.write(path, {.exact = true, .quiet = true});
  EXPECT_LT(std::filesystem::file_size(path), width * width * sizeof(float) / 4);
  Module module = Module::load(path).value();
  std::vector<double> losses;
  for (int step = 0; step < 8; ++step) {
    const auto results = module.execute("train_step", {x.ref(), y.ref()});
    ASSERT_TRUE(results.ok()) << module.message();
    losses.push_back(static_cast<double>(*results.value()[0].data<float>()));
    EXPECT_EQ(losses.back(), train_step(x, y).item()) << "as in eager, bit for bit";
  }
  EXPECT_LT(losses.back(), losses.front());
  const OwnedTensor trained = module.state("up").value();
  const std::vector<float> want = up.to_vector<float>();
  EXPECT_TRUE(std::equal(want.begin(), want.end(), trained.data<float>()));
}

}  // namespace
}  // namespace taper
