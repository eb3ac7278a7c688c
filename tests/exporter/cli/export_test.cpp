// `taper export` of a program: tables of kernels, arrays and headers.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/runtime/programs.h"
#include "taper/tests/support/environment.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::scratch_file;

TEST(taper_export, writes_a_table_of_exactly_the_kernels_needed) {
  const auto kernels = scratch_file("kernels.cpp"), array = scratch_file("array.cpp"),
             header = scratch_file("c.h");
  const auto program = tests::classifier();
  const Outcome o =
      taper_command("export", program.string(), "--target", "portable", "--kernels",
                    kernels.string(), "--array", array.string(), "--header", header.string());
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(content(kernels),
              HasSubstr("classifier_kernels[1] = {\n    &taper::portable::addmm_f32,\n}"));
  EXPECT_THAT(content(array), HasSubstr("= {\n84,65,80,69,82,13,10,26,"));  // "TAPER\r\n\x1a"
  EXPECT_THAT(
      content(header),
      HasSubstr("classifier_taper[" + std::to_string(std::filesystem::file_size(program)) + "]"));
  EXPECT_THAT(content(header), HasSubstr("classifier_forward_bytes = "));
}

// Narrow weights stay dense: a panel of sixteen would be mostly zeros.
TEST(taper_export, names_records_of_packed_weights_alone_where_all_are_packed) {
  const auto table_of = [](const std::vector<int>& features, const std::string& rows = "4") {
    const std::string input = "f32[" + rows + ", 32]";
    std::string graph = "graph forward\n", rest;
    if (rows == "n") graph += "symbol n in [1, 8]\n", rest = "bind n = extent 0 of input 0\n";
    graph += "input \"x\" = %x: " + input + "\n";
    ir::Payloads payloads;
    for (const int n : features) {
      const std::string sizes = "f32[" + std::to_string(n), name = "w" + std::to_string(n);
      const auto w =
          ir::Payload::from<float>(std::vector<float>(static_cast<size_t>(n) * 32, 1), {n, 32});
      payloads[ir::digest(*w)] = w;
      graph +=
          "constant \"" + name + "\" = %" + name + ": " + sizes + ", 32] " + ir::digest(*w) + "\n";
      rest.insert(0, "%y" + name + ": f32[" + rows + ", " + std::to_string(n) + "] = linear(%x, %" +
                         name + ", none)\noutput \"" + name + "\" = %y" + name + "\n");
    }
    const auto program = tests::write_program("linear.taper", {graph + rest}, payloads);
    const std::string kernels = scratch_file("kernels.cpp").string();
    const Outcome o = taper_command("export", program.string(), "--kernels", kernels);
    EXPECT_EQ(o.code, success) << o.err;
    return content(kernels);
  };
  EXPECT_THAT(table_of({32, 16}), HasSubstr("&taper::optimized::linear_f32_panels,"));
  EXPECT_THAT(table_of({32, 16}, "n"), HasSubstr("&taper::optimized::linear_f32_panels,"));
  EXPECT_THAT(table_of({32, 16}, "1"), HasSubstr("&taper::optimized::linear_f32_panels_row,"));
  EXPECT_THAT(table_of({32, 16}), Not(HasSubstr("&taper::optimized::linear_f32,")));
  EXPECT_THAT(table_of({32, 3}), HasSubstr("&taper::optimized::linear_f32,"));
  EXPECT_THAT(table_of({32, 3}), Not(HasSubstr("_panels,")));
}

// Taper writes no such program.
TEST(taper_export, takes_steps_behind_a_convolution_that_are_computed) {
  test::ProgramFile p;
  const uint32_t convolution = p.kernel(
      ops::taper_convolution, {DType::f32, DType::f32, DType::f32, DType::f32, DType::f32});
  const uint32_t weight = p.constant<float>("w", {1, 1, 1, 1}, {1});
  test::MethodTables& m = p.methods.emplace_back();
  const auto list = [&](std::vector<int64_t> v) {
    return m.list(v, test::ArgumentKind::integer, test::ArgumentForm::list);
  };
  const uint32_t one = m.literal(1), two = m.literal(2);
  const uint32_t x = test::io_tensor(m, {one, two, two, one}),
                 y = test::io_tensor(m, {one, two, two, one});
  const uint32_t w = m.value(test::Storage::constant, weight, m.shape({one, one, one, one}));
  const int64_t zero = m.literal(0), relu = m.literal(8);
  const auto steps = m.list({relu, one, zero, zero, zero}, test::ArgumentKind::integer,
                            test::ArgumentForm::expression_list);
  m.run(convolution, {m.tensor(x), m.tensor(w), m.absent(), list({1, 1}), list({0, 0}),
                      list({1, 1}), m.integer(1), m.tensors({}), steps,
                      m.list({}, test::ArgumentKind::real, test::ArgumentForm::list), m.tensor(y)});
  m.input("x", x);
  m.output("y", y);
  const auto program = scratch_file("computed.taper");
  const test::AlignedBytes bytes = p.bytes();
  std::ofstream(program, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const std::string kernels = scratch_file("kernels.cpp").string();
  const Outcome o = taper_command("export", program.string(), "--kernels", kernels);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(content(kernels), HasSubstr("&taper::optimized::taper_convolution_f32_plain"));
}

TEST(taper_export, takes_a_name_that_c_plus_plus_takes) {
  const std::string program = tests::classifier().string(), header = scratch_file("h.h").string();
  for (const char* name : {"9net", "my net", "a;b", "größe"}) {
    const Outcome o = taper_command("export", program, "--header", header, "--name", name);
    EXPECT_EQ(o.code, failure) << name;
    EXPECT_THAT(o.err, HasSubstr("cannot begin a C++ name")) << name;
  }
  EXPECT_EQ(taper_command("export", program, "--header", header, "--name", "net_2").code, success);
  EXPECT_THAT(content(header), HasSubstr("net_2_forward_bytes"));
}

TEST(taper_export, wants_to_know_what_to_write) {
  EXPECT_EQ(taper_command("export", tests::classifier().string()).code, usage);
}

}  // namespace
}  // namespace taper::cli
