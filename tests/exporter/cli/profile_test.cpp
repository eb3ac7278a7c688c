#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "taper/exporter/cli/profile_html.h"
#include "taper/exporter/cli/profile_report.h"
#include "taper/exporter/cli/sampler.h"
#include "taper/exporter/cli/steps.h"
#include "taper/exporter/cli/symbols.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/support/page.h"

namespace taper::cli {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using tests::count;
using tests::data_of;
using tests::scratch_file;

nlohmann::json profile_of(const std::filesystem::path& program) {
  const Outcome o = taper_command("profile", program.string(), "--repeat", "2", "--json");
  EXPECT_EQ(o.code, success) << o.err;
  return nlohmann::json::parse(o.out);
}

nlohmann::json profile_of_graph(const std::string& graph) {
  return profile_of(tests::write_program("profiled.taper", {graph}));
}

TEST(taper_profile, measures_every_instruction_at_the_sizes_asked_for) {
  const auto trace = scratch_file("trace.json");
  const Outcome o = taper_command("profile", tests::classifier().string(), "--dim", "batch=5",
                                  "--repeat", "4", "--trace", trace.string());
  EXPECT_EQ(o.code, success) << o.err;
  for (const char* text : {"x: f32[5, 2]", "addmm", "GFLOP/s", "-> f32[5, 3]", "4 runs"})
    EXPECT_THAT(o.out, HasSubstr(text));
  const auto events = nlohmann::json::parse(content(trace))["traceEvents"];
  EXPECT_EQ(std::ranges::count_if(
                events, [](const auto& e) { return e["ph"] == "X" && e["name"] == "addmm"; }),
            4);
}

TEST(taper_profile, prints_json) {
  const auto trace = scratch_file("trace.json");
  const Outcome o = taper_command("profile", tests::classifier().string(), "--dim", "batch=5",
                                  "--repeat", "4", "--json", "--trace", trace.string());
  EXPECT_EQ(o.code, success) << o.err;
  const auto profile = nlohmann::json::parse(o.out);
  EXPECT_EQ(profile["runs"], 4);
  EXPECT_EQ(profile["threads"], 1);
  EXPECT_GT(profile["median_us"], 0);
  EXPECT_EQ(profile["inputs"][0]["type"], "f32[5, 2]");
  const auto addmm = std::ranges::find_if(profile["instructions"],
                                          [](const auto& in) { return in["operator"] == "addmm"; });
  ASSERT_NE(addmm, profile["instructions"].end());
  EXPECT_EQ((*addmm)["operations"], 2 * 5 * 2 * 3);
  EXPECT_GT((*addmm)["median_us"], 0);
  EXPECT_TRUE(std::filesystem::exists(trace));
}

TEST(taper_profile, refuses_a_size_that_the_program_does_not_have) {
  const std::string program = tests::classifier().string();
  const Outcome name = taper_command("profile", program, "--dim", "time=5"),
                range = taper_command("profile", program, "--dim", "batch=17"),
                below = taper_command("profile", program, "--dim", "batch=0"),
                form = taper_command("profile", program, "--dim", "batch");
  EXPECT_THAT(name.err, HasSubstr("its symbolic sizes are batch"));
  EXPECT_THAT(range.err, HasSubstr("batch = 17 is outside 1..16"));
  EXPECT_THAT(below.err, HasSubstr("batch = 0 is outside 1..16"));
  EXPECT_EQ(name.code, failure);
  EXPECT_EQ(range.code, failure);
  EXPECT_EQ(form.code, usage);
}

// ---- work ----

TEST(taper_profile, counts_only_the_rows_of_a_table_that_are_read) {
  const auto profile = profile_of_graph(
      "graph forward\ninput \"table\" = %w: f32[1000, 4]\ninput \"ids\" = %ids: i64[3]\n"
      "%y: f32[3, 4] = embedding(%w, %ids, -1, false, false)\noutput \"rows\" = %y\n");
  EXPECT_EQ(profile["instructions"][0]["bytes"], 3 * 8 + 2 * 3 * 4 * 4);
}

TEST(taper_profile, counts_the_operations_of_attention) {
  const std::string inputs =
      "graph forward\ninput \"q\" = %q: f32[1, 2, 3, 8]\ninput \"k\" = %k: f32[1, 2, 5, 8]\n"
      "input \"v\" = %v: f32[1, 2, 5, 4]\n";
  for (const char* call :
       {"%y: f32[1, 2, 3, 4] = "
        "scaled_dot_product_attention(%q, %k, %v, none, 0.0, false, none, false)\n",
        "%y: f32[1, 3, 2, 4] = taper::attention(%q, %k, %v, none, false, none, false)\n"}) {
    const auto profile = profile_of_graph(inputs + call + "output \"y\" = %y\n");
    EXPECT_EQ(profile["operators"][0]["operations"], 2 * 2 * 3 * 5 * (8 + 4));
  }
}

TEST(taper_profile, looks_for_operands_where_the_whole_run_leaves_them) {
  const auto program = tests::write_program(
      "two.taper",
      {"graph forward\ninput \"x\" = %x: f32[1, 256]\ninput \"a\" = %a: f32[256, 256]\n"
       "input \"b\" = %b: f32[256, 256]\n%y: f32[1, 256] = mm(%x, %a)\n"
       "%z: f32[1, 256] = mm(%y, %b)\n%r: f32[1, 256] = relu(%z)\noutput \"r\" = %r\n"});
  RunningMethod running(program, "", nullptr);
  running.execute();
  const std::vector<roofline::Work> works = works_of(running.method());
  constexpr double weight_bytes = 4 * 256 * 256;
  EXPECT_GE(works[0].operands[1].footprint, 2 * weight_bytes) << "b is read between two runs";
  EXPECT_LT(works[2].operands[0].footprint, weight_bytes) << "it was just computed";
}

// ---- roofs ----

TEST(taper_profile, tells_what_bounds_each_instruction) {
  const Outcome o = taper_command("profile", tests::classifier().string(), "--repeat", "4");
  for (const char* text : {"  peak: ", " GB/s read, ", "larger operands: ", "of the roof", " % "})
    EXPECT_THAT(o.out, HasSubstr(text));
  const auto profile = profile_of(tests::classifier());
  EXPECT_GT(profile["peaks"]["gflops"], 0);
  EXPECT_TRUE(profile["peaks"]["bandwidths"].back()["up_to_bytes"].is_null());
  EXPECT_GT(profile["roof_share"], 0);
  for (const char* list : {"instructions", "operators"})
    for (const auto& row : profile[list]) {
      EXPECT_THAT(row["roof"], AnyOf("compute", "cache", "memory"));
      EXPECT_GT(row["roof_share"], 0);
    }
}

TEST(taper_profile, leaves_roofs_out_if_told) {
  const std::string program = tests::classifier().string();
  const Outcome text = taper_command("profile", program, "--repeat", "4", "--no-roof"),
                json = taper_command("profile", program, "--repeat", "4", "--no-roof", "--json");
  EXPECT_THAT(text.out, Not(HasSubstr("roof")));
  EXPECT_THAT(text.out, Not(HasSubstr("peak")));
  EXPECT_THAT(json.out, Not(HasSubstr("roof")));
  EXPECT_THAT(json.out, Not(HasSubstr("peaks")));
}

/// A profile whose every name is `name`; its instruction runs in a loop.
Profile named(const std::string& name) {
  Profile profile;
  profile.method = name, profile.inputs = {{name, "f32[2]"}};
  profile.peaks =
      roofline::Peaks{100, {{1e6, 50, 80}, {std::numeric_limits<double>::infinity(), 10, 20}}};
  InstructionTiming in{name, name, name, name, name, 30, 20, 3, {}};
  in.work = {1e6, {{8, false, 16}, {8, true, 16}}};
  profile.timing.instructions = {in, in};
  profile.timing.median_us = 60, profile.timing.runs = 5;
  profile.timing.events = {{0, 0, 5000, 35000}, {1, 0, 35000, 65000}};
  profile.timing.median_run = profile.timing.events;
  return profile;
}

TEST(taper_profile, counts_every_round_of_a_loop) {
  const Profile profile = named("mm");
  EXPECT_DOUBLE_EQ(profile.roof(profile.timing.instructions[0]).us, 30);
  EXPECT_DOUBLE_EQ(profile.roof().us, 60);
  std::ostringstream out;
  print_text(out, profile, false);
  EXPECT_THAT(out.str(), HasSubstr("100 % compute"));
  EXPECT_THAT(out.str(), HasSubstr("100.0 GFLOP/s"));
  EXPECT_THAT(out.str(), HasSubstr("3 times"));
}

// ---- steps inside a kernel ----

TEST(taper_profile, shows_the_steps_inside_a_product) {
  if (!Sampler::is_supported()) GTEST_SKIP() << "--detail needs Linux";
  const auto program = tests::write_program(
      "product.taper",
      {"graph forward\ninput \"x\" = %x: f32[192, 256]\ninput \"w\" = %w: f32[256, 256]\n"
       "%y: f32[192, 256] = mm(%x, %w)\n%z: f32[192, 256] = relu(%y)\noutput \"z\" = %z\n"});
  const ThreadPool others(3);  // their threads sleep, and are not the method's
  const auto html = scratch_file("steps.html");
  const Outcome o = taper_command("profile", program.string(), "--detail", "--json", "--no-roof",
                                  "--html", html.string());
  ASSERT_EQ(o.code, success) << o.err;
  const auto instructions = nlohmann::json::parse(o.out)["instructions"];
  ASSERT_EQ(instructions.size(), 2);
  double us = 0;
  std::map<std::string, double> steps;
  for (const auto& step : instructions[0]["steps"])
    us += steps[step["name"]] = step["us"].get<double>();
  EXPECT_NEAR(us, instructions[0]["median_us"].get<double>(), 1e-6 * us);
  EXPECT_GT(steps["tiles"], 0.5 * us) << "both operands have at least 192 uses";
  EXPECT_GT(steps["pack"], 0);
  EXPECT_FALSE(instructions[1].contains("steps")) << "relu has one loop";
  const auto page = data_of(content(html))["instructions"];
  EXPECT_EQ(page[0]["steps"].size(), instructions[0]["steps"].size());
  EXPECT_FALSE(page[1].contains("steps"));
}

TEST(taper_profile, shows_steps_below_their_instruction) {
  Profile profile = named("mm");
  profile.timing.instructions[0].steps = {{"tiles", 21}, {"pack", 9}};
  std::ostringstream out;
  print_text(out, profile, false);
  EXPECT_THAT(out.str(), HasSubstr("21.0   35.0 %"));
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("9\\.0 +15\\.0 % .*  pack +30\\.0 % of the kernel"));
}

TEST(taper_profile, knows_the_step_of_a_function) {
  const std::string tiles = "taper::optimized::N_AVX3::(anonymous namespace)::",
                    at_level = "taper::optimized::AtLevel<(taper::optimized::CpuLevel)2, &(float ";
  EXPECT_EQ(step_of("void " + tiles + "tile<2, 3>(long, float const*)"), "tiles");
  EXPECT_EQ(step_of("void " + tiles + "depthwise_tile<3, 1, 7, 1, true>(long)"), "tiles");
  EXPECT_EQ(step_of(tiles + "pack(float const*, long)"), "pack");
  EXPECT_EQ(step_of(tiles + "finish(long, long, float*, taper::optimized::Epilogue const&)"),
            "store");
  EXPECT_EQ(step_of(at_level + "taper::optimized::exponentials<int>(float*, long))>::call(float*)"),
            "softmax");
  // the types of parameters name tiles and packed matrices, too
  EXPECT_EQ(step_of("taper::optimized::run_gemm(taper::optimized::tiles const&)"), "other");
}

int a_function_with_a_name() { return 1; }

TEST(symbols, finds_the_function_that_an_address_lies_in) {
  const Symbols symbols = Symbols::of_this_program();
  if (symbols.empty()) GTEST_SKIP() << "there is no table of symbols";
  const auto* place = reinterpret_cast<const char*>(&a_function_with_a_name);
  EXPECT_THAT(symbols.name_of(place + 1), HasSubstr("a_function_with_a_name()"));
  EXPECT_EQ(symbols.name_of(&symbols), "") << "the stack has no functions";
}

// ---- the page ----

std::string page_of(const std::string& title, const Profile& profile) {
  std::ostringstream out;
  write_profile_html(out, title, profile);
  return out.str();
}

TEST(profile_page, holds_one_run_with_all_that_is_known_of_it) {
  const auto html = scratch_file("profile.html");
  const Outcome o = taper_command("profile", tests::classifier().string(), "--repeat", "3",
                                  "--html", html.string());
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("wrote " + html.string()));
  const auto data = data_of(content(html));
  EXPECT_EQ(data["title"], "classifier.taper: forward");
  EXPECT_EQ(data["runs"], 3);
  EXPECT_EQ(data["events"].size(), data["instructions"].size());
  for (const auto& event : data["events"]) EXPECT_LE(event["begin"], event["end"]);
  EXPECT_EQ(data["events"][0]["begin"], 0);
  EXPECT_THAT(data["instructions"][0]["kernel"].get<std::string>(), HasSubstr("addmm"));
  EXPECT_GT(data["instructions"][0]["roof_us"], 0);
}

TEST(profile_page, does_without_roofs) {
  Profile profile = named("mm");
  profile.peaks.reset();
  EXPECT_FALSE(data_of(page_of("m", profile))["instructions"][0].contains("roof"));
}

TEST(profile_page, refuses_a_name_of_another_kind) {
  const Outcome o = taper_command("profile", "lenet.taper", "--html", "x.png");
  EXPECT_EQ(o.code, usage);
  EXPECT_THAT(o.err, HasSubstr("x.png: the name of a page must end in .html"));
}

TEST(profile_page, needs_no_other_file) {
  const std::string page = page_of("m", named("m"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* reference : {" src=", " href=", "@import", "url(http", "fetch(", "import "})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  EXPECT_EQ(count(page, "http"), 2u) << "http-equiv, and the name of SVG";
  EXPECT_EQ(count(page, "{{"), 0u) << "a part of the page is missing";
}

TEST(profile_page, shows_any_name_as_text) {
  const std::string clean = page_of("m", named("m"));
  for (const char* name :
       {"</script><script>alert(1)</script>", "<!--<script>", "\"><img src=x onerror=alert(1)>",
        "]]>", "&lt;/script&gt;", "{{data}}", "\\u003c/script>", "\xe2\x80\xa8\xe2\x80\xae"}) {
    const std::string page = page_of(name, named(name));
    EXPECT_EQ(count(page, "<"), count(clean, "<")) << name;
    const auto data = data_of(page);
    EXPECT_EQ(data["title"], name);
    for (const char* field : {"operator", "kernel", "types", "source", "module"})
      EXPECT_EQ(data["instructions"][0][field], name);
  }
  const auto broken = data_of(page_of("\x1b[31m", named(std::string("a\0\n\xff\xc3", 5))));
  EXPECT_EQ(broken["title"], "\\x1b[31m");
  EXPECT_EQ(broken["instructions"][0]["module"], "a\\x00\\n\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace taper::cli
