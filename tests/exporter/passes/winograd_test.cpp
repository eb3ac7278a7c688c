// Which convolutions use Winograd's algorithm, and what it changes.
#include <gmock/gmock.h>

#include <algorithm>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

/// Of one taper::convolution with filters of `height` x `width`.
struct Source {
  int64_t channels = 32, outputs = 32, size = 8, height = 3, width = 3, stride = 1, padding = 1,
          dilation = 1, groups = 1;
  std::string extra;  ///< lines behind it

  std::unique_ptr<ir::Graph> graph() const {
    ir::Payloads payloads;
    const auto pair = [](int64_t n) {
      return "[" + std::to_string(n) + ", " + std::to_string(n) + "]";
    };
    const auto rows = [&](int64_t kernel) {
      return std::to_string((size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1);
    };
    const auto image = [](const std::string& h, const std::string& w, int64_t c) {
      return "f32[1, " + h + ", " + w + ", " + std::to_string(c) + "]";
    };
    const std::string out = image(rows(height), rows(width), outputs), in = std::to_string(size);
    std::string text = "graph f\ninput \"x\" = %x: " + image(in, in, channels) + "\n";
    text += constant("w", random_payload({outputs, channels / groups, height, width}, 1), payloads);
    text += constant("b", random_payload({outputs}, 2), payloads);
    text += "%y: " + out + " = taper::convolution(%x, %w, %b, " + pair(stride) + ", " +
            pair(padding) + ", " + pair(dilation) + ", " + std::to_string(groups) +
            ", [%x], [0, 0, 0, 1, 0], [])\n" + extra + "output \"y\" = %y\n";
    auto graph = ir::parse(text, payloads);
    ir::verify(*graph);
    return graph;
  }
  std::vector<std::string> after() const {
    const auto g = graph();
    apply(winograd, *g);
    ir::verify(*g);
    return operators(*g);
  }
};

TEST(winograd, replaces_a_convolution_and_keeps_its_program_and_its_name) {
  const auto graph = Source().graph();
  const Tensor x = random_tensor({1, 8, 8, 32}, 3);
  const std::vector<float> want = run(*graph, {x});
  EXPECT_EQ(apply(winograd, *graph), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), ElementsAre("taper::winograd_convolution"));
  EXPECT_EQ(graph->outputs()[0].value->name, "y");
  const std::vector<float> got = run(*graph, {x});
  float most = 0;
  for (size_t i = 0; i < want.size(); ++i) most = std::max(most, std::abs(got[i] - want[i]));
  EXPECT_LT(most, 3e-5);
  EXPECT_GT(most, 0) << "other sums give other roundings";
}

TEST(winograd, leaves_other_filters) {
  const auto unchanged = ElementsAre("taper::convolution");
  const auto with = [](auto change) {
    Source s;
    change(s);
    return s.after();
  };
  // the program adds the input, so sizes and channels stay
  EXPECT_THAT(with([](Source& s) { s.height = s.width = 1, s.padding = 0; }), unchanged);
  EXPECT_THAT(with([](Source& s) { s.height = s.width = 5, s.padding = 2; }), unchanged);
  EXPECT_THAT(with([](Source& s) { s.dilation = s.padding = 2; }), unchanged);
  EXPECT_THAT(with([](Source& s) { s.groups = 2; }), unchanged);
  EXPECT_THAT(with([](Source& s) { s.groups = 32; }), unchanged);
  EXPECT_THAT(with([](Source& s) { s.stride = 2, s.size = 3, s.padding = 2; }), unchanged);
}

TEST(winograd, says_why_a_convolution_stays) {
  const auto note = [](const Source& s, const Target& target = {}) {
    const auto graph = s.graph();
    PassContext context(target);
    winograd(*graph, context);
    const auto notes = context.take_notes();
    return notes.empty() ? std::string() : notes[0].text;
  };
  Source few, small, shared;
  few.channels = few.outputs = 8;
  EXPECT_THAT(note(few), HasSubstr("channels"));
  small.size = 3;
  EXPECT_THAT(note(small), HasSubstr("image is small"));
  shared.extra = "%s: f32[32, 32, 3, 3] = relu(%w)\noutput \"s\" = %s\n";
  EXPECT_THAT(note(shared), HasSubstr("other users"));
  EXPECT_THAT(note(few, Target("portable")), IsEmpty()) << "no kernel reads such filters";
}

}  // namespace
}  // namespace taper::passes
