#include "taper/exporter/io/gzip.h"

#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

// `printf 'candle' | gzip -n`
const unsigned char candle[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                0x03, 0x4b, 0x4e, 0xcc, 0x4b, 0xc9, 0x49, 0x05, 0x00,
                                0x1a, 0xd0, 0x47, 0xfb, 0x06, 0x00, 0x00, 0x00};

Bytes stream() {
  const auto* begin = reinterpret_cast<const std::byte*>(candle);
  return Bytes(begin, begin + sizeof candle);
}

TEST(gunzip, expands_a_stream) { EXPECT_EQ(gunzip(stream(), "test"), bytes_of("candle")); }

TEST(gunzip, expands_members_behind_each_other) {
  Bytes two = stream();
  const Bytes more = stream();
  two.insert(two.end(), more.begin(), more.end());
  EXPECT_EQ(gunzip(two, "test"), bytes_of("candlecandle"));
}

TEST(gunzip, refuses_every_shortened_stream) {
  const Bytes whole = stream();
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FILE_ERROR(gunzip(std::span(whole).first(n), "test"), "cut short");
}

TEST(gunzip, refuses_damage_and_more_than_the_limit) {
  Bytes damaged = stream();
  damaged[19] ^= std::byte{1};  // the checksum
  EXPECT_FILE_ERROR(gunzip(damaged, "test"), "damaged gzip stream");
  EXPECT_FILE_ERROR(gunzip(stream(), "test", 5), "limit of 5 bytes");
}

TEST(write_file, replaces_a_file_as_a_whole) {
  const auto path = tests::scratch_file("text");
  write_file(path, bytes_of("first, longer"));
  write_file(path, bytes_of("second"));
  EXPECT_EQ(read_file_or_gzip(path), bytes_of("second"));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

TEST(read_file, names_the_file_and_the_reason) {
  EXPECT_FILE_ERROR(read_file("no/such/file.npy"),
                    "no/such/file.npy: cannot open: No such file or directory");
  EXPECT_FILE_ERROR(read_file("/"), "is a folder");
}

}  // namespace
}  // namespace taper::io
