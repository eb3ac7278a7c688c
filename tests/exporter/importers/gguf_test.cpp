// The reader of GGUF files: files that llama.cpp's own writer made, and damaged ones.
#include "taper/exporter/importers/gguf/gguf.h"

#include <gmock/gmock.h>

#include <cstring>

#include "taper/tests/support/data.h"
#include "taper/tests/support/peak_memory.h"

namespace taper::gguf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Writes a file piece by piece.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto* b = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), b, b + sizeof(T));
    return *this;
  }
  Bytes& text(const std::string& t) {
    number<uint64_t>(t.size());
    const auto* b = reinterpret_cast<const std::byte*>(t.data());
    bytes_.insert(bytes_.end(), b, b + t.size());
    return *this;
  }
  Bytes& header(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    return number<uint32_t>(0x46554747).number(version).number(tensors).number(pairs);
  }
  Bytes& tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                uint64_t offset) {
    text(name).number(static_cast<uint32_t>(extents.size()));
    for (const uint64_t e : extents) number(e);
    return number(type).number(offset);
  }
  Bytes& fill(size_t multiple, size_t more) {
    bytes_.resize((bytes_.size() + multiple - 1) / multiple * multiple + more);
    return *this;
  }
  Bytes& cut(size_t size) { return bytes_.resize(size), *this; }
  size_t size() const { return bytes_.size(); }
  Content parse() const { return gguf::parse(bytes_, "x.gguf"); }
  std::string refusal() const {
    try {
      (void)parse();
    } catch (const io::FileError& e) {
      return e.what();
    }
    return "";
  }

 private:
  std::vector<std::byte> bytes_;
};

Bytes small_file() {
  Bytes b;
  b.header(1, 5);
  b.text("general.alignment").number<uint32_t>(4).number<uint32_t>(64);
  b.text("name").number<uint32_t>(8).text("tiny");
  b.text("half").number<uint32_t>(6).number(0.5f);
  b.text("flags").number<uint32_t>(9).number<uint32_t>(7).number<uint64_t>(2);
  b.number<uint8_t>(1).number<uint8_t>(0);
  b.text("words").number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(2).text("a").text("bc");
  b.tensor("w", {32, 2}, 2, 64);
  return b.fill(64, 64 + 36);
}

TEST(gguf, reads_typed_metadata_and_the_place_of_tensors) {
  const Bytes file = small_file();
  const Content content = file.parse();
  EXPECT_EQ(content.version, 3u);
  EXPECT_EQ(content.text("name"), "tiny");
  EXPECT_EQ(content.number("half"), 0.5);
  EXPECT_EQ(content.integer("general.alignment"), 64);
  EXPECT_FALSE(content.integer("missing").has_value());
  EXPECT_THAT(content.list("flags")->integers(), ElementsAre(1, 0));
  EXPECT_THAT(content.list("words")->texts(), ElementsAre("a", "bc"));
  const TensorInfo& w = content.tensors.at("w");
  EXPECT_EQ(type_name(w.type), "Q4_0");
  EXPECT_THAT(w.sizes, ElementsAre(2, 32));
  EXPECT_EQ(w.bytes.size(), 36u);
}

TEST(gguf, says_which_metadata_has_another_type) {
  const Bytes file = small_file();
  const Content content = file.parse();
  EXPECT_THROW((void)content.integer("name"), io::FileError);
  EXPECT_THROW((void)content.text("half"), io::FileError);
  EXPECT_THROW((void)content.list("name"), io::FileError);
  EXPECT_THROW((void)content.list("words")->integers(), io::FileError);
  EXPECT_THROW((void)content.list("flags")->texts(), io::FileError);
}

TEST(gguf, refuses_a_file_that_is_cut_anywhere) {
  for (size_t size = 0; size < small_file().size(); ++size)
    EXPECT_THAT(small_file().cut(size).refusal(), HasSubstr("x.gguf: ")) << size;
}

TEST(gguf, refuses_counts_that_the_file_cannot_hold) {
  EXPECT_THAT(Bytes().header(uint64_t{1} << 40, 0).refusal(), HasSubstr("tensors"));
  EXPECT_THAT(Bytes().header(0, UINT64_MAX).refusal(), HasSubstr("pairs"));
  Bytes list;
  list.header(0, 1).text("k").number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(1 << 30);
  EXPECT_THAT(list.refusal(), HasSubstr("elements of a list"));
  Bytes text;
  text.header(0, 1).number<uint64_t>(UINT64_MAX - 4).fill(1, 100);
  EXPECT_THAT(text.refusal(), HasSubstr("cut short"));
}

TEST(gguf, takes_no_memory_for_a_gigabyte_that_is_only_claimed) {
  constexpr uint64_t gigabyte = uint64_t{1} << 30;
  const auto list = [](uint32_t type, uint64_t count) {
    return Bytes().header(0, 1).text("k").number<uint32_t>(9).number(type).number(count);
  };
  const size_t before = tests::peak_memory();
  EXPECT_THAT(Bytes().header(0, 1).number(gigabyte).fill(1, 100).refusal(),
              HasSubstr("cut short: a key at byte 32 needs 1073741824 bytes, and 100 are left"));
  EXPECT_THAT(list(0, gigabyte).refusal(), HasSubstr("claims 1073741824 elements of a list"));
  EXPECT_THAT(list(8, gigabyte / 8).refusal(), HasSubstr("claims 134217728 elements of a list"));
  EXPECT_THAT(Bytes().header(gigabyte / 24, 0).refusal(), HasSubstr("claims 44739242 tensors"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("w", {gigabyte / 4}, 0, 0).fill(32, 64).refusal(),
              HasSubstr("cut short"));
  EXPECT_LT(tests::peak_memory() - before, size_t{16} << 20);
}

TEST(gguf, refuses_what_is_no_gguf_file_of_these_versions) {
  EXPECT_THAT(Bytes().text("hello").refusal(), HasSubstr("not a GGUF file"));
  EXPECT_THAT(Bytes().header(0, 0, 1).refusal(), HasSubstr("version 1"));
  EXPECT_THAT(Bytes().header(0, 0, 0x03000000).refusal(), HasSubstr("big-endian"));
}

TEST(gguf, refuses_tensors_that_do_not_fit) {
  const auto one = [](const std::vector<uint64_t>& extents, uint32_t type, uint64_t offset) {
    Bytes b;
    b.header(1, 0).tensor("w", extents, type, offset);
    return b.fill(32, 64).refusal();
  };
  EXPECT_EQ(one({16}, 0, 0), "");
  EXPECT_THAT(one({16}, 0, 16), HasSubstr("no multiple of 32"));
  EXPECT_THAT(one({17}, 0, 0), HasSubstr("cut short"));
  EXPECT_THAT(one({16}, 0, uint64_t{1} << 63), HasSubstr("cut short"));
  EXPECT_THAT(one({16, 1, 1, 1, 1}, 0, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(one({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(one({UINT64_MAX}, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(one({16}, 4, 0), HasSubstr("unknown type 4"));
  EXPECT_THAT(one({33}, 2, 0), HasSubstr("no multiple of the 32"));
}

TEST(gguf, refuses_names_that_occur_twice_and_unknown_types) {
  Bytes pairs;
  for (int i = 0; i < 2; ++i) {
    if (i == 0) pairs.header(0, 2);
    pairs.text("k").number<uint32_t>(4).number<uint32_t>(1);
  }
  EXPECT_THAT(pairs.refusal(), HasSubstr("metadata k occurs twice"));
  Bytes tensors;
  tensors.header(2, 0).tensor("w", {1}, 0, 0).tensor("w", {1}, 0, 0).fill(32, 64);
  EXPECT_THAT(tensors.refusal(), HasSubstr("tensor w occurs twice"));
  EXPECT_THAT(Bytes().header(0, 1).text("k").number<uint32_t>(13).fill(1, 8).refusal(),
              HasSubstr("unknown type 13"));
  Bytes nested;
  nested.header(0, 1).text("k").number<uint32_t>(9).number<uint32_t>(9).number<uint64_t>(0);
  EXPECT_THAT(nested.refusal(), HasSubstr("a list of type 9"));
  Bytes alignment;
  alignment.header(0, 1).text("general.alignment").number<uint32_t>(4).number<uint32_t>(48);
  EXPECT_THAT(alignment.refusal(), HasSubstr("a power of two"));
}

TEST(gguf, reads_the_files_of_the_reference_writer) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/gguf");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const File file(entry.path());
    EXPECT_TRUE(file.content().text("general.architecture").has_value()) << entry.path();
    EXPECT_GE(file.content().tensors.size(), 20u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 16);
}

}  // namespace
}  // namespace taper::gguf
