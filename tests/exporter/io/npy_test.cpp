#include "taper/exporter/io/npy.h"

#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

Bytes npy(const std::string& header, std::string_view data, char version = 1) {
  std::string text = std::string("\x93NUMPY", 6) + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes_of(text + header + std::string(data));
}

TEST(npy, gives_back_every_dtype_and_shape) {
  for (const DType dtype : all_dtypes) {
    if (dtype == DType::bf16) continue;
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{}, {0}, {3}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4, 5}}) {
      const Array array = counted(dtype, sizes);
      const Bytes file = format_npy(array);
      EXPECT_EQ((file.size() - array.size_bytes()) % 64, 0u)
          << "the data of a mapped file must be aligned";
      expect_same(parse_npy(file, "test"), array);
    }
  }
}

TEST(npy, writes_what_numpy_writes) {  // numpy.save of numpy.arange(3, dtype='<i2')
  const Bytes file = format_npy(Array::of<int16_t>({3}, std::array<int16_t, 3>{0, 1, 2}));
  const std::string expected = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.data()) + 10, expected.size()),
            expected);
  EXPECT_EQ(file.size(), 128u + 6u);
}

TEST(npy, reads_versions_1_to_3) {
  for (char version : {1, 2, 3}) {
    const Array array =
        parse_npy(npy("{'shape': (2, 1), 'fortran_order': False, \"descr\": '<i2'}\n",
                      std::string_view("\1\0\2\0", 4), version),
                  "test");
    EXPECT_EQ(array.values<int16_t>()[1], 2);
  }
  EXPECT_FILE_ERROR(parse_npy(npy("{}", "", 4), "x.npy"),
                    "x.npy: .npy format version 4 is not known");
}

TEST(npy, converts_fortran_order) {
  const Array array = parse_npy(
      npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "adbecf"), "test");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(array.bytes.get()), 6), "abcdef");
}

TEST(npy, makes_bools_0_or_1) {
  const Array array = parse_npy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }",
                                    std::string_view("\0\x55", 2)),
                                "test");
  EXPECT_EQ(array.raw()[1], std::byte{1});
}

TEST(npy, keeps_complex_numbers) {
  const std::vector<Complex64> z = {{1, 2}, {-0.5f, 0}};
  const Array array = Array::of<Complex64>({2}, z);
  const Array read = parse_npy(format_npy(array), "x");
  EXPECT_EQ(read.dtype, DType::c64);
  EXPECT_TRUE(std::ranges::equal(read.raw(), array.raw()));
  const Array given = parse_npy(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
                                    std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)),
                                "x");
  EXPECT_EQ(given.values<Complex64>()[0].real, 1);
  EXPECT_EQ(given.values<Complex64>()[0].imag, -2);
}

TEST(npy, refuses_what_it_has_no_place_for) {
  const auto with = [](const std::string& descr) {
    return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (), }", "12345678");
  };
  EXPECT_FILE_ERROR(parse_npy(with("'>f8'"), "x"), "big-endian; save with array.astype('<f8')");
  EXPECT_FILE_ERROR(parse_npy(with("'<c16'"), "x"), "Taper has no dtype '<c16'");
  EXPECT_FILE_ERROR(parse_npy(with("'|O'"), "x"), "pickled Python objects are not read");
  EXPECT_FILE_ERROR(parse_npy(with("[('a', '<f8')]"), "x"), "structured arrays are not read");
  EXPECT_FILE_ERROR(format_npy(counted(DType::bf16, {2})),
                    "NumPy has no dtype bf16: convert to f32, or write safetensors");
}

TEST(npy, refuses_damaged_headers) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  EXPECT_EQ(parse_npy(npy(good, "1234"), "x").numel(), 1);
  EXPECT_FILE_ERROR(parse_npy(npy(good, "12345"), "x"),
                    "cut short or damaged: it holds 5 bytes of data, and its header says 4");
  EXPECT_FILE_ERROR(parse_npy(npy(good, "123"), "x"), "holds 3 bytes of data");
  EXPECT_FILE_ERROR(parse_npy(npy(good + "x", "1234"), "x"), "text behind the header");
  EXPECT_FILE_ERROR(parse_npy(npy("{'descr': '<f4', 'shape': (1,)}", "1234"), "x"),
                    "lacks descr, fortran_order or shape");
  for (const std::string twice : {"'descr': '<f4'", "'fortran_order': False", "'shape': (1,)"})
    EXPECT_FILE_ERROR(parse_npy(npy(good.substr(0, good.size() - 1) + twice + "}", "1234"), "x"),
                      "unexpected key " + twice.substr(0, twice.find(':')));
  EXPECT_FILE_ERROR(parse_npy(npy("{'shape': (1)}", "1234"), "x"), "shape is not a tuple");
  EXPECT_FILE_ERROR(parse_npy(npy("{'shape': (99999999999999999999,)}", "1234"), "x"),
                    "does not fit into 64 bits");
  EXPECT_FILE_ERROR(
      parse_npy(
          npy("{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 4)}", ""),
          "x"),
      "more than 63 bits can count");
  EXPECT_FILE_ERROR(parse_npy(bytes_of("PK\3\4 something else"), "x.npy"),
                    "x.npy: not an .npy file");
}

TEST(npy, refuses_every_shortened_file) {
  const Bytes whole = format_npy(counted(DType::f32, {2, 3}));
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(parse_npy(std::span(whole).first(n), "x"), FileError) << n;
}

TEST(npy, reads_golden_logits) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "checkpoints/cifar10_resnet/resnet20_golden_logits.npy");
  const Array logits = read_npy(path);
  EXPECT_EQ(logits.describe(), "f32 (1000, 10)");
}

}  // namespace
}  // namespace taper::io
