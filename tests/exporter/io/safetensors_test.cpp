#include "taper/exporter/io/safetensors.h"

#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/peak_memory.h"

namespace taper::io {
namespace {

Bytes file_of(const std::string& header, std::string_view data = "") {
  std::string text(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  return bytes_of(text + header + std::string(data));
}

TEST(safetensors, gives_back_every_dtype_and_the_metadata) {
  SafeTensors content;
  for (const DType dtype : all_dtypes) {
    content.tensors[std::string("layer.") + name_of(dtype)] = counted(dtype, {2, 3});
    content.tensors[std::string("scalar ") + name_of(dtype)] = counted(dtype, {});
    content.tensors[std::string("empty\"") + name_of(dtype)] = counted(dtype, {0, 3});
  }
  content.metadata = {{"format", "taper"}, {"größe", "\"1\""}};
  const auto path = tests::scratch_file("all.safetensors");
  write_safetensors(path, content);
  const SafeTensors read = read_safetensors(path);
  EXPECT_EQ(read.metadata, content.metadata);
  ASSERT_EQ(read.tensors.size(), content.tensors.size());
  for (const auto& [name, array] : content.tensors) expect_same(read.at(name), array);
}

TEST(safetensors, aligns_every_tensor_to_its_element) {
  SafeTensors content;
  content.tensors["a"] = counted(DType::u8, {3});
  content.tensors["b"] = counted(DType::f64, {1});
  content.tensors["c"] = counted(DType::i16, {1});
  const Bytes file = format_safetensors(content);
  const std::string text(reinterpret_cast<const char*>(file.data()) + 8, file.size() - 8);
  EXPECT_THAT(
      text,
      testing::StartsWith(
          R"({"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"c":{"dtype":"I16","shape":[1],"data_offsets":[8,10]},"a":)"));
  EXPECT_EQ((file.size() - 13) % 8, 0u);
}

TEST(safetensors, lists_near_names_when_one_is_missing) {
  SafeTensors content;
  content.tensors["fc.bias"] = content.tensors["fc.weight"] = counted(DType::u8, {1});
  EXPECT_FILE_ERROR(content.at("fc.wieght"), "no tensor 'fc.wieght'; there are fc.bias, fc.weight");
}

TEST(safetensors, refuses_tensors_that_do_not_fit_the_data) {
  const auto one = [](const std::string& entry, std::string_view data) {
    return file_of("{\"w\":" + entry + "}", data);
  };
  EXPECT_EQ(
      parse_safetensors(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "1234"), "x")
          .tensors.size(),
      1u);
  EXPECT_FILE_ERROR(
      parse_safetensors(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", "1234"), "x"),
      "do not fit its dtype and shape");
  EXPECT_FILE_ERROR(
      parse_safetensors(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", "1234"), "x"),
      "do not fit its dtype and shape");
  EXPECT_FILE_ERROR(
      parse_safetensors(
          one(R"({"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,4]})",
              "1234"),
          "x"),
      "do not fit");
  EXPECT_FILE_ERROR(
      parse_safetensors(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "12345"), "x"),
      "need 4 bytes, the file holds 5");
  EXPECT_FILE_ERROR(
      parse_safetensors(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", "12345678"),
                        "x"),
      "begins at byte 4, the one before it ends at 0");
  EXPECT_FILE_ERROR(
      parse_safetensors(one(R"({"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]})", "1"), "x"),
      "Taper has no dtype 'F8_E8M0'");
}

TEST(safetensors, reads_complex_numbers) {
  const SafeTensors file =
      parse_safetensors(file_of(R"({"w":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})",
                                std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)),
                        "x");
  const Array& z = file.at("w");
  EXPECT_EQ(z.dtype, DType::c64);
  EXPECT_EQ(z.values<Complex64>()[0].real, 1);
  EXPECT_EQ(z.values<Complex64>()[0].imag, -2);
}

TEST(safetensors, refuses_overlaps) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  EXPECT_FILE_ERROR(parse_safetensors(file_of(header, "1234"), "x"),
                    "tensor 'b' begins at byte 2, the one before it ends at 3");
}

TEST(safetensors, refuses_headers_of_another_form) {
  const auto refused = [](const std::string& header, const char* why) {
    EXPECT_FILE_ERROR(parse_safetensors(file_of(header, "1234"), "x"), why);
  };
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  refused("{\"w\":" + entry + ",\"w\":" + entry + "}", "'w' stands in the header twice");
  refused(R"({"w":{"dtype":"F32","shape":[1]}})", "lacks dtype, shape or data_offsets");
  refused(R"({"w":{"dtype":"F32","dtype":"F32"}})", "has 'dtype' twice");
  refused(R"({"w":{"color":"red"}})", "unknown key 'color'");
  refused(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
          "a negative number in a wrong place");
  refused(R"({"w":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
          "a fraction in a wrong place");
  refused(R"({"w":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
          "an array in a wrong place");
  refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", "must be [begin, end]");
  refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "must be [begin, end]");
  refused(R"({"w":4})", "a number in a wrong place");
  refused(R"({"__metadata__":{"a":1}})", "a number in a wrong place");
  refused(R"({"__metadata__":{"a":"1","a":"2"}})", "metadata 'a' stands in the header twice");
  refused("{\"w\"", "not JSON at byte");
  refused("{\"w\xff\":" + entry + "}", "not JSON at byte");
  refused("[1]", "does not begin with '{'");
}

TEST(safetensors, stops_at_the_first_wrong_bracket_of_a_deep_header) {
  std::string header = "{\"w\":{\"shape\":";
  header.append(1 << 20, '[');
  EXPECT_FILE_ERROR(parse_safetensors(file_of(header), "x"), "an array in a wrong place");
}

TEST(safetensors, takes_no_memory_for_a_gigabyte_that_is_only_claimed) {
  constexpr uint64_t gigabyte = uint64_t{1} << 30;
  Bytes header(1000, std::byte{' '});
  std::memcpy(header.data(), &gigabyte, 8);
  const std::string tensor =
      R"({"w":{"dtype":"F32","shape":[268435456],"data_offsets":[0,1073741824]}})";
  const size_t before = tests::peak_memory();
  EXPECT_FILE_ERROR(parse_safetensors(header, "x"), "its header would have 1073741824 bytes");
  EXPECT_FILE_ERROR(parse_safetensors(file_of(tensor, "1234"), "x"),
                    "the tensors need 1073741824 bytes, the file holds 4");
  EXPECT_LT(tests::peak_memory() - before, size_t{16} << 20);
}

TEST(safetensors, refuses_to_write_what_it_could_not_read) {
  SafeTensors content;
  content.tensors["a\xff"] = counted(DType::u8, {1});
  EXPECT_FILE_ERROR(format_safetensors(content), "not UTF-8");
  content.tensors = {{"__metadata__", counted(DType::u8, {1})}};
  EXPECT_FILE_ERROR(format_safetensors(content), "no tensor can be called '__metadata__'");
}

TEST(safetensors, refuses_every_shortened_file) {
  SafeTensors content;
  content.tensors["w"] = counted(DType::f32, {2, 3});
  const Bytes whole = format_safetensors(content);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(parse_safetensors(std::span(whole).first(n), "x"), FileError) << n;
}

TEST(safetensors, reads_files_that_the_reference_implementation_wrote) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/optimizers.safetensors");
  const SafeTensors content = read_safetensors(path);
  EXPECT_EQ(content.metadata.count("cases"), 1u);
  EXPECT_EQ(content.at("y").describe(), "i64 (16,)");
}

}  // namespace
}  // namespace taper::io
