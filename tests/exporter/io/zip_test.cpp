#include "taper/exporter/io/zip.h"

#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

// What torch.export.save wrote: two weights, JSON and text.
Bytes program_of_pytorch() { return read_file(tests::test_data("pt2/v2_9_linear.pt2")); }

size_t place_of(std::span<const std::byte> record, const Bytes& file) {
  return static_cast<size_t>(record.data() - file.data());
}

void write_u32(Bytes& file, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) file[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

/// Where the directory's entry of a record begins; the name stands 46 bytes behind that.
size_t directory_entry(const Bytes& file, std::string_view name) {
  const Bytes wanted = bytes_of(name);
  const auto at = std::find_end(file.begin(), file.end(), wanted.begin(), wanted.end());
  return static_cast<size_t>(at - file.begin()) - 46;
}

TEST(zip, gives_the_bytes_of_each_record) {
  const Bytes file = program_of_pytorch();
  const ZipArchive archive(file, "test");
  EXPECT_EQ(archive.records().size(), 11u);
  EXPECT_EQ(archive.read("linear/data/weights/weight_0").size(), 60u);
  EXPECT_EQ(archive.read_text("linear/byteorder"), "little");
  EXPECT_FILE_ERROR((void)archive.read("linear/absent"), "it has no record linear/absent");
}

TEST(zip, refuses_a_change_in_any_record) {
  Bytes file = program_of_pytorch();
  const ZipArchive archive(file, "test");
  for (const auto& [name, record] : archive.records()) {
    const size_t first = place_of(record.bytes, file), last = first + record.bytes.size() - 1;
    for (const size_t at : {first, (first + last) / 2, last}) {
      file[at] ^= std::byte{1};
      EXPECT_FILE_ERROR(ZipArchive(file, "test"), name + " is damaged: its CRC-32 differs");
      file[at] ^= std::byte{1};
    }
  }
}

TEST(zip, refuses_a_wrong_checksum_in_the_directory) {
  Bytes file = program_of_pytorch();
  const ZipArchive archive(file, "test");
  for (const auto& [name, record] : archive.records()) {
    file[directory_entry(file, name) + 16] ^= std::byte{1};
    EXPECT_FILE_ERROR(ZipArchive(file, "test"), "record " + name + " is damaged");
    file[directory_entry(file, name) + 16] ^= std::byte{1};
  }
}

// Both entries of the directory point to one record, and say the same of it.
TEST(zip, refuses_records_that_overlap) {
  Bytes file = program_of_pytorch();
  const size_t from = directory_entry(file, "linear/data/weights/weight_0");
  const size_t to = directory_entry(file, "linear/data/weights/weight_1");
  constexpr size_t checksum = 16, name = 28, place = 42;
  std::copy_n(file.begin() + from + checksum, name - checksum, file.begin() + to + checksum);
  std::copy_n(file.begin() + from + place, 4, file.begin() + to + place);
  EXPECT_FILE_ERROR(ZipArchive(file, "test"), "two of its records overlap");
}

// The names are as long as linear/data/weights/weight_0, which both headers of the record give.
TEST(zip, refuses_names_that_lead_outside_the_archive) {
  const std::string old = "linear/data/weights/weight_0";
  const auto renamed = [&](const std::string& name) {
    EXPECT_EQ(name.size(), old.size());
    Bytes file = program_of_pytorch();
    const size_t entry = directory_entry(file, old) + 46;
    const Bytes from = bytes_of(old), to = bytes_of(name);
    const auto local = std::search(file.begin(), file.end(), from.begin(), from.end());
    std::copy(to.begin(), to.end(), file.begin() + static_cast<std::ptrdiff_t>(entry));
    std::copy(to.begin(), to.end(), local);
    return file;
  };
  for (const std::string name : {"linear/../ata/weights/weight", "../ear/data/weights/weight_0",
                                 "linear/data/weights/weigh/..", "/inear/data/weights/weight_0",
                                 "l:near/data/weights/weight_0", "linear\\data/weights/weight_0"})
    EXPECT_FILE_ERROR(ZipArchive(renamed(name), "test"),
                      "record " + name + " has a name that leads outside the archive");
  for (const std::string name : {"linear/..ta/weights/weight_0", "linear/da../weights/weight_0"})
    EXPECT_TRUE(ZipArchive(renamed(name), "test").has(name));
}

TEST(zip, refuses_a_record_that_reaches_outside_the_file) {
  Bytes file = program_of_pytorch();
  const size_t entry = directory_entry(file, "linear/data/weights/weight_0");
  constexpr size_t compressed_size = 20, size = 24;
  write_u32(file, entry + compressed_size, 0x7fffffff);
  write_u32(file, entry + size, 0x7fffffff);
  EXPECT_FILE_ERROR(ZipArchive(file, "test"), "linear/data/weights/weight_0");
}

}  // namespace
}  // namespace taper::io
