// Programs whose weights lie in another file.
#include <gmock/gmock.h>

#include <fstream>
#include <numeric>

#include "taper/exporter/cli/taper.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/npy.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::HasSubstr, testing::Not;
using tests::scratch_file;

std::shared_ptr<const ir::Payload> weight(float first) {
  std::vector<float> elements(32 * 32);
  std::iota(elements.begin(), elements.end(), first);
  return ir::Payload::from(elements, {32, 32});
}

/// forward(x: f32[1, 32]) -> x w + b, with b in the program.
std::string write_program(const std::string& name, float first, const std::string& weights,
                          const Target& target = {}, emit::Report* report = nullptr) {
  const auto w = weight(first);
  const auto b = ir::Payload::from<float>(std::vector<float>(32, 1.0f), {32});
  const auto graph = ir::parse(
      "graph forward\ninput \"x\" = %x: f32[1, 32]\nconstant \"fc.weight\" = %w: f32[32, 32] " +
          ir::digest(*w) + "\nconstant \"fc.bias\" = %b: f32[32] " + ir::digest(*b) +
          "\n%y: f32[1, 32] = addmm(%b, %x, %w, 1, 1)\noutput \"y\" = %y\n",
      {{ir::digest(*w), w}, {ir::digest(*b), b}});
  emit::EmitOptions options;
  options.weights = weights, options.target = target;
  const std::string path = scratch_file(name).string();
  const emit::Report written = emit::write(path, {{"forward", graph.get()}}, options);
  if (report != nullptr) *report = written;
  return path;
}

/// The bytes of the result, or the message. `folder`: that of the weights, if not the program's.
std::string result_of(const std::string& program, std::string folder = "") {
  if (folder.empty()) folder = std::filesystem::path(program).parent_path().string();
  const std::string x = scratch_file("x.npy").string(), y = scratch_file("y.npy").string();
  io::write_npy(x, io::Array::of<float>({1, 32}, std::vector<float>(32, 0.5f)));
  const Outcome outcome =
      taper_command("run", program, "--input", "x=" + x, "--output", y, "--weights-folder", folder);
  if (outcome.code != success) return outcome.err;
  const io::Bytes bytes = io::read_file(y);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(weights_file, is_shared_by_programs_which_compute_the_same) {
  const std::string weights = scratch_file("shared.weights.taper").string();
  std::filesystem::remove(weights);  // of an earlier run
  const std::string plain = write_program("plain.taper", 1, ""),
                    first = write_program("first.taper", 1, weights);
  const auto one = std::filesystem::file_size(weights);
  EXPECT_GT(std::filesystem::file_size(plain), 4096 + std::filesystem::file_size(first) - 512);
  const io::Bytes before = io::read_file(weights);
  const std::string again = write_program("again.taper", 1, weights);
  EXPECT_EQ(io::read_file(weights), before);
  const std::string second = write_program("second.taper", 2, weights);
  EXPECT_GT(std::filesystem::file_size(weights), one + 4096);
  for (const std::string& program : {first, again}) EXPECT_EQ(result_of(program), result_of(plain));
  EXPECT_EQ(result_of(second), result_of(write_program("plain2.taper", 2, "")));
  EXPECT_NE(result_of(second), result_of(plain));

  EXPECT_THAT(taper_command("inspect", first).out, HasSubstr("in shared.weights.taper"));
  EXPECT_THAT(taper_command("inspect", weights).out, HasSubstr("fc.weight"));
}

TEST(weights_file, is_compared_with_its_checksum_by_check) {
  const std::string model = scratch_file("checked.taper").string();
  const std::string weights = scratch_file("checked.weights.taper").string();
  std::filesystem::remove(weights);  // of an earlier run
  const Outcome written = taper_command("export", tests::test_data("pt2/experts.pt2").string(),
                                        "-o", model, "--weights", weights);
  ASSERT_EQ(written.code, 0) << written.err;
  ASSERT_TRUE(std::filesystem::exists(weights)) << written.out;
  EXPECT_EQ(taper_command("check", model).code, 0);
  EXPECT_THAT(taper_command("export", model, "--array", scratch_file("array.cpp").string()).err,
              HasSubstr("lies in a weights file, which --array does not write"));
  std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-100, std::ios::end).put('X');
  file.close();
  EXPECT_THAT(taper_command("check", model).err, HasSubstr("the file is damaged"));
}

/// The report is printed, too: it is right without the weights.
TEST(weights_file, is_verified_by_inspect) {
  const std::string weights = scratch_file("inspected.weights.taper").string();
  std::filesystem::remove(weights);  // of an earlier run
  const std::string program = write_program("inspected.taper", 1, weights);
  EXPECT_EQ(taper_command("inspect", program).code, success);
  const auto refused = [&](const std::string& why) {
    const Outcome o = taper_command("inspect", program);
    EXPECT_EQ(o.code, failure);
    EXPECT_THAT(o.err,
                HasSubstr(program + ": constant fc.weight lies in another file: " + weights));
    EXPECT_THAT(o.err, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("in inspected.weights.taper"));
  };
  std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-100, std::ios::end).put('X');
  file.close();
  refused("the file is damaged");
  std::filesystem::remove(weights);
  refused("No such file or directory; put the file there, or name its folder (--weights-folder)");
  const std::filesystem::path folder = scratch_file("elsewhere");
  std::filesystem::create_directory(folder);
  const std::string moved = (folder / "inspected.weights.taper").string();
  std::filesystem::remove(moved);  // of an earlier run
  write_program("elsewhere/inspected.taper", 1, moved);
  EXPECT_EQ(taper_command("inspect", program, "--weights-folder", folder.string()).code, success);
}

TEST(weights_file, is_missed_and_not_overwritten) {
  const std::string weights = scratch_file("gone.weights.taper").string();
  const std::string program = write_program("program.taper", 1, weights);
  std::filesystem::remove(weights);
  EXPECT_THAT(result_of(program), HasSubstr("constant fc.weight lies in another file: "));

  const auto refused = [&](const std::string& path) {
    try {
      write_program("other.taper", 1, path);
    } catch (const ExportError& e) {
      return std::string(e.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refused(program), HasSubstr("this is a program with methods"));
  const std::string text = scratch_file("notes.txt").string();
  std::ofstream(text) << "no weights";
  EXPECT_THAT(refused(text), HasSubstr("this is not a weights file"));

  const Outcome elsewhere = taper_command("export", tests::linear_model(), "-o", program,
                                          "--weights", "elsewhere/w.taper");
  EXPECT_EQ(elsewhere.code, usage);
  EXPECT_THAT(elsewhere.err, HasSubstr("must lie in the folder of the program"));
}

TEST(weights_file, is_said_to_hold_weights_that_are_packed_at_load) {
  const auto report = [](const Target& target) {
    emit::Report report;
    write_program("dense.taper", 1, scratch_file("dense.weights.taper").string(), target, &report);
    std::ostringstream text;
    text << report;
    return text.str();
  };
  EXPECT_THAT(report(Target()), HasSubstr("1 weight to pack at load"));
  EXPECT_THAT(report(Target("host")), HasSubstr("1 weight to pack at load"));
  EXPECT_THAT(report(Target("portable")), Not(HasSubstr("to pack at load")));
}

TEST(weights_file, may_lie_in_a_folder_that_an_option_names) {
  const std::string weights = scratch_file("moved.weights.taper").string();
  const std::string program = write_program("moved.taper", 1, weights), result = result_of(program);
  const std::string folder = scratch_file("elsewhere").string();
  std::filesystem::create_directory(folder);
  std::filesystem::rename(weights, folder + "/moved.weights.taper");
  EXPECT_THAT(result_of(program), HasSubstr("or name its folder (--weights-folder)"));
  EXPECT_EQ(result_of(program, folder), result);
}

TEST(weights_file, lies_in_the_programs_folder_however_that_is_spelled) {
  const std::filesystem::path folder = scratch_file("folder"), link = scratch_file("link");
  std::filesystem::create_directory(folder);
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(folder, link);
  const std::string program = (folder / "model.taper").string(),
                    model = tests::test_data("pt2/experts.pt2").string();
  for (const std::filesystem::path& same :
       {std::filesystem::relative(folder), folder / ".." / "folder", link}) {
    const std::filesystem::path weights = same / "w.taper";
    std::filesystem::remove(weights);
    const Outcome o = taper_command("export", model, "-o", program, "--weights", weights.string());
    EXPECT_EQ(o.code, success) << o.err;
    EXPECT_TRUE(std::filesystem::exists(weights)) << weights;
    EXPECT_EQ(taper_command("check", program).code, success);
    EXPECT_THAT(
        taper_command("export", model, "-o", program, "--weights", (same / "model.taper").string())
            .err,
        HasSubstr("two outputs have this name"));
  }
}

TEST(weights_file, is_not_written_where_no_weight_is_large) {
  const std::string program = scratch_file("small.taper").string(),
                    weights = scratch_file("small.weights.taper").string();
  const Outcome o =
      taper_command("export", tests::linear_model(), "-o", program, "--weights", weights);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("no weight has 1 KiB or more, so none went to " + weights));
  EXPECT_FALSE(std::filesystem::exists(weights));
}

TEST(weights_file, is_asked_to_be_copied_again_where_it_is_damaged) {
  const std::string weights = scratch_file("cut.weights.taper").string();
  const std::string program = write_program("cut.taper", 1, weights);
  std::ofstream(weights) << "cut short";
  EXPECT_THAT(result_of(program), HasSubstr("copy it again from where it was made"));
  EXPECT_THAT(result_of(program), Not(HasSubstr("put the file there")));
  std::filesystem::remove(weights);
  EXPECT_THAT(result_of(program), HasSubstr("No such file or directory; put the file there"));
}

}  // namespace
}  // namespace taper::cli
