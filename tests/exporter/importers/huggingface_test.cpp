// The reader of model folders: shards, and folders that are damaged.
#include <gmock/gmock.h>

#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/tests/support/data.h"

namespace taper::huggingface {
namespace {

using testing::HasSubstr;

void write(const std::filesystem::path& file, const std::string& text) {
  io::write_file(file, std::as_bytes(std::span(text)));
}

/// A folder with a weight "a" in one shard and "b" in another.
std::filesystem::path folder_with(const std::string& name, const std::string& index,
                                  const std::string& config = "{}") {
  const std::filesystem::path folder = tests::scratch_file(name);
  std::filesystem::create_directories(folder);
  write(folder / "config.json", config);
  write(folder / "model.safetensors.index.json", index);
  for (const char* weight : {"a", "b"}) {
    io::SafeTensors content;
    content.tensors[weight] = io::Array::zeros(DType::bf16, {2, 3});
    io::write_safetensors(folder / (std::string(weight) + ".safetensors"), content);
  }
  return folder;
}

std::string refusal(const std::filesystem::path& folder) {
  try {
    const Folder opened(folder);
  } catch (const io::FileError& e) {
    return e.what();
  }
  return "";
}

TEST(model_folder, reads_numbers_that_only_python_writes) {
  const std::filesystem::path file = tests::scratch_file("numbers.json");
  write(file, R"({"limits": [0.0, Infinity, NaN], "Infinity": "a \" NaN \\", "x": 1})");
  const nlohmann::json json = read_json_object(file);
  EXPECT_EQ(json["limits"][1], "Infinity");
  EXPECT_EQ(json["limits"][2], "NaN");
  EXPECT_EQ(json["Infinity"], "a \" NaN \\");
  EXPECT_EQ(json["x"], 1);
}

TEST(model_folder, maps_all_shards_of_the_index) {
  const Folder folder(folder_with(
      "two", R"({"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})", R"({"x": 1})"));
  EXPECT_EQ(folder.config()["x"], 1);
  EXPECT_TRUE(folder.generation_config().empty());
  ASSERT_EQ(folder.tensors().size(), 2u);
  EXPECT_EQ(folder.tensors().at("a").dtype, DType::bf16);
  EXPECT_EQ(folder.tensors().at("a").bytes.size(), 12u);
}

TEST(model_folder, refuses_an_index_that_does_not_fit) {
  EXPECT_THAT(refusal(folder_with("other", R"({"weight_map": {"a": "b.safetensors"}})")),
              HasSubstr("a is not in b.safetensors"));
  EXPECT_THAT(refusal(folder_with("outside", R"({"weight_map": {"a": "../a.safetensors"}})")),
              HasSubstr("is no name of a file"));
  EXPECT_THAT(refusal(folder_with("number", R"({"weight_map": {"a": 3}})")), HasSubstr("no shard"));
  EXPECT_THAT(refusal(folder_with("none", "{}")), HasSubstr("weight_map"));
  EXPECT_THAT(refusal(folder_with("missing", R"({"weight_map": {"a": "c.safetensors"}})")),
              HasSubstr("c.safetensors"));
}

TEST(model_folder, refuses_a_configuration_that_is_no_object) {
  const std::string index = R"({"weight_map": {"a": "a.safetensors"}})";
  EXPECT_THAT(refusal(folder_with("list", index, "[1]")), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(folder_with("cut", index, R"({"a": )")), HasSubstr("config.json"));
  EXPECT_THAT(refusal(folder_with("deep", index, R"({"a": )" + std::string(100000, '['))),
              HasSubstr("nested too deeply"));
}

TEST(model_folder, refuses_a_folder_without_weights) {
  const std::filesystem::path folder = tests::scratch_file("empty");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(is_model_folder(folder));
  write(folder / "config.json", "{}");
  EXPECT_TRUE(is_model_folder(folder));
  EXPECT_THAT(refusal(folder), HasSubstr("neither model.safetensors nor"));
}

}  // namespace
}  // namespace taper::huggingface
