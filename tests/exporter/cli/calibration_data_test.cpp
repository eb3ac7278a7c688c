// Examples for calibration, from files of each kind.
#include "taper/exporter/cli/calibration_data.h"

#include <gmock/gmock.h>

#include <fstream>

#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/png.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/ir/parser.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::cli {
namespace {

using testing::ElementsAre;
using Inputs = std::vector<Callable::Input>;

Inputs inputs_of_text(const std::string& lines) {
  return inputs_of(*ir::parse("graph f\n" + lines + "output \"y\" = %x\n"));
}
const std::string free_batch =
    "symbol n in [1, 64]\ninput \"x\" = %x: f32[n, 3]\nbind n = extent 0 of input 0\n";

/// Elements 0, 1, 2, …
io::Array counting(const std::vector<int64_t>& sizes, DType dtype = DType::f32) {
  io::Array array = io::Array::zeros(dtype, sizes);
  if (dtype == DType::f32)
    for (int64_t i = 0; i < array.numel(); ++i)
      array.values<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  return array;
}

/// A new folder for the files of a test.
std::filesystem::path folder() {
  const std::filesystem::path made = tests::scratch_file("data");
  std::filesystem::remove_all(made);
  std::filesystem::create_directories(made);
  return made;
}

std::vector<std::string> sizes_of(const quantize::Examples& examples) {
  std::vector<std::string> list;
  for (size_t i = 0; i < examples.count; ++i)
    for (const eager::Tensor& t : examples.at(i)) list.push_back(eager::to_string(t.sizes()));
  return list;
}

TEST(calibration_data, cuts_arrays_into_calls) {
  const std::filesystem::path file = folder() / "x.npy";
  const Inputs any = inputs_of_text(free_batch),
               fixed = inputs_of_text("input \"x\" = %x: f32[2, 3]\n"),
               one = inputs_of_text("input \"x\" = %x: f32[1, 3]\n");
  const auto sizes = [&](const std::vector<int64_t>& given, const Inputs& inputs) {
    io::write_npy(file, counting(given));
    return sizes_of(read_calibration(file, inputs));
  };
  EXPECT_THAT(sizes({70, 3}, any), ElementsAre("(32, 3)", "(32, 3)", "(6, 3)"));
  EXPECT_THAT(sizes({6, 3}, fixed), ElementsAre("(2, 3)", "(2, 3)", "(2, 3)"));
  EXPECT_THAT(sizes({2, 2, 3}, fixed), ElementsAre("(2, 3)", "(2, 3)"));
  EXPECT_THAT(sizes({3}, one), ElementsAre("(1, 3)"));
  EXPECT_THAT(sizes({3}, any), ElementsAre("(1, 3)"));

  io::write_npy(file, counting({4, 3}));
  const quantize::Examples examples = read_calibration(file, fixed);
  EXPECT_EQ(examples.at(1)[0].to_vector<float>(), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(read_calibration(file, fixed, {.most = 1}).count, 1u);

  for (const std::vector<int64_t>& wrong :
       std::vector<std::vector<int64_t>>{{5, 3}, {2, 4}, {3}, {1, 1, 2, 3}, {}}) {
    io::write_npy(file, counting(wrong));
    EXPECT_EXPORT_ERROR(read_calibration(file, fixed), "does not fit the input x: f32[2, 3]");
  }
  io::write_npy(file, counting({2, 3}, DType::i64));
  EXPECT_EXPORT_ERROR(read_calibration(file, fixed), "i64 (2, 3) does not fit the input");
  io::write_npy(file, counting({0, 3}));
  EXPECT_EXPORT_ERROR(read_calibration(file, any), "has no examples");
}

TEST(calibration_data, reads_tensors_by_the_names_of_inputs) {
  const std::filesystem::path file = folder() / "data.safetensors";
  const Inputs two =
      inputs_of_text("input \"x\" = %x: f32[1, 3]\ninput \"ids\" = %ids: i64[1, 2]\n");
  const auto write = [&](io::ArrayMap tensors) {
    io::write_safetensors(file, {std::move(tensors), {}});
  };
  write({{"x", counting({2, 3})}, {"ids", counting({2, 2}, DType::i64)}});
  EXPECT_THAT(sizes_of(read_calibration(file, two)),
              ElementsAre("(1, 3)", "(1, 2)", "(1, 3)", "(1, 2)"));
  write({{"x", counting({2, 3})}, {"ids", counting({3, 2}, DType::i64)}});
  EXPECT_EXPORT_ERROR(read_calibration(file, two), "has 2 examples of x, but 3 of ids");
  write({{"x", counting({2, 3})}});
  EXPECT_EXPORT_ERROR(read_calibration(file, two),
                      "has no tensor ids for the input ids: i64[1, 2]");
  io::write_npy(file.parent_path() / "x.npy", counting({1, 3}));
  EXPECT_EXPORT_ERROR(read_calibration(file.parent_path() / "x.npy", two),
                      "is for one input, but the model takes 2 inputs");
}

TEST(calibration_data, reads_one_tensor_of_a_file) {
  const std::filesystem::path file = folder() / "data.safetensors";
  const Inputs one = inputs_of_text("input \"x\" = %x: f32[1, 3]\n");
  io::write_safetensors(file, {{{"a", counting({2, 3})}, {"b", counting({5, 3})}}, {}});
  EXPECT_EQ(read_calibration(file.string() + ":b", one).count, 5u);
  EXPECT_THROW(read_calibration(file.string() + ":c", one), ExportError);
}

TEST(calibration_data, begins_texts_of_a_language_model_at_position_0) {
  const std::filesystem::path file = folder() / "tokens.npy";
  const Inputs tokens = inputs_of_text(
      "symbol n in [1, 64]\ninput \"ids\" = %ids: i64[1, n]\ninput \"start\" = %start: i64[1]\n"
      "bind n = extent 1 of input 0\n%x: i64[1, n] = alias(%ids)\n");
  io::Array ids = io::Array::zeros(DType::i16, {2, 5});
  ids.values<int16_t>()[7] = 300;
  io::write_npy(file, ids);
  const quantize::Examples examples = read_calibration(file, tokens);
  ASSERT_EQ(examples.count, 2u);
  EXPECT_EQ(examples.at(1)[0].to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 300, 0, 0}));
  EXPECT_EQ(examples.at(1)[1].to_vector<int64_t>(), (std::vector<int64_t>{0}));
  // caches of several texts, and adapters to choose among
  const Inputs chosen = inputs_of_text(
      "symbol n in [1, 64]\ninput \"ids\" = %ids: i64[1, n]\ninput \"start\" = %start: i64[1]\n"
      "input \"rows\" = %rows: i64[1]\ninput \"adapters\" = %adapters: i64[1]\n"
      "bind n = extent 1 of input 0\n%x: i64[1, n] = alias(%ids)\n");
  EXPECT_THAT(sizes_of(read_calibration(file, chosen, {.most = 1})),
              ElementsAre("(1, 5)", "(1)", "(1)", "(1)"));
  EXPECT_EQ(read_calibration(file, chosen).at(1)[3].to_vector<int64_t>(),
            (std::vector<int64_t>{0}));
  const Inputs other = inputs_of_text(
      "symbol n in [1, 64]\ninput \"ids\" = %ids: i64[1, n]\ninput \"start\" = %start: i64[1]\n"
      "input \"mask\" = %mask: i64[1]\n"
      "bind n = extent 1 of input 0\n%x: i64[1, n] = alias(%ids)\n");
  EXPECT_EXPORT_ERROR(read_calibration(file, other), "the model takes 3 inputs");
  const Inputs pictures = inputs_of_text(free_batch);
  std::ofstream(file.parent_path() / "story.txt") << "once";
  EXPECT_EXPORT_ERROR(read_calibration(file.parent_path() / "story.txt", pictures),
                      "a text is for language models");
}

TEST(calibration_data, reads_recorded_calls_and_leaves_constants_out) {
  const std::filesystem::path file = folder() / "calls.safetensors";
  io::write_safetensors(file, {{{"set0.input.0", counting({4, 3})},
                                {"set0.input.1", counting({}, DType::i64)},
                                {"set1.input.0", counting({1, 3})},
                                {"set1.input.1", counting({}, DType::i64)}},
                               {}});
  EXPECT_THAT(sizes_of(read_calibration(file, inputs_of_text(free_batch))),
              ElementsAre("(4, 3)", "(1, 3)"));
  EXPECT_EXPORT_ERROR(read_calibration(file, inputs_of_text("input \"x\" = %x: f32[2, 3]\n")),
                      "the recorded arguments of call 0 do not fit the 1 input of the model");
}

TEST(calibration_data, reads_folders_in_the_order_of_names) {
  const std::filesystem::path data = folder();
  const Inputs image = inputs_of_text("input \"x\" = %x: f32[1, 1, 2, 2]\n");
  EXPECT_EXPORT_ERROR(read_calibration(data, image), "has no examples; give pictures");
  EXPECT_EXPORT_ERROR(read_calibration(data / "none", image), "there is no such file or folder");
  io::write_npy(data / "b.npy", counting({2, 1, 2, 2}));
  io::write_npy(data / "a.npy", counting({1, 1, 2, 2}));
  EXPECT_EQ(read_calibration(data, image).count, 3u);
  for (const auto& [name, grey] : {std::pair("2.PNG", 51), std::pair("1.png", 255)}) {
    const std::vector<uint8_t> samples(4, static_cast<uint8_t>(grey));
    io::write_png(data / name, io::Array::of<uint8_t>({2, 2, 1}, samples));
  }
  const quantize::Examples pictures =
      read_calibration(data, image, {.pictures = {.scale = {{0.0}, {0.5}}}});
  ASSERT_EQ(pictures.count, 2u);
  EXPECT_EQ(pictures.at(0)[0].to_vector<float>(), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_NEAR(pictures.at(1)[0].to_vector<float>()[0], 0.4, 1e-6);
  const Inputs large = inputs_of_text("input \"x\" = %x: f32[1, 1, 3, 3]\n");
  EXPECT_EXPORT_ERROR(read_calibration(data, large).at(0), "1.png");
  EXPECT_EXPORT_ERROR(
      read_calibration(data / "1.png", inputs_of_text("input \"x\" = %x: i64[1, 1, 2, 2]\n")),
      "a picture becomes f32, but the input is x: i64[1, 1, 2, 2]");
}

TEST(calibration_data, refuses_other_files) {
  const std::filesystem::path file = folder() / "data.csv";
  std::ofstream(file) << "1,2,3\n";
  EXPECT_EXPORT_ERROR(read_calibration(file, inputs_of_text(free_batch)),
                      "is no calibration data; give .safetensors, .npy, a folder of pictures, or "
                      "a .txt file for a language model");
  const std::filesystem::path broken = file.parent_path() / "broken.npy";
  std::ofstream(broken) << "no array";
  EXPECT_THROW(read_calibration(broken, inputs_of_text(free_batch)), ExportError);
}

}  // namespace
}  // namespace taper::cli
